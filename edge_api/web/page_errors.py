"""How a problem is told to a person at a browser: in a page of the site."""

from edge_api.api.service import Pages
from edge_api.schema.problems import Problem
from edge_api.web.errors import error_answer
from edge_api.web.forms import answer_page
from edge_api.web.wire import Wire


async def error_page(pages: Pages, problem: Problem) -> Wire:
    """Return the page that tells of a problem; without a build that has one, as JSON."""
    sentences = [f"{problem.sentence}."]
    try:
        body = await pages.render("notice", "This did not work", sentences=sentences)
    except Problem:
        return error_answer(problem)
    return answer_page(body, problem.status, tuple(problem.headers.items()))
