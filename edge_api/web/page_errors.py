"""How a problem is told to a person at a browser: in a page of the site."""

from typing import Final

from edge_api.api.markdown import escape
from edge_api.api.preferences import prefers_markdown
from edge_api.api.reply import MARKDOWN
from edge_api.api.service import Pages
from edge_api.schema.problems import Problem
from edge_api.web.errors import error_answer
from edge_api.web.forms import answer_page
from edge_api.web.wire import Wire

_TITLE: Final = "This did not work"


async def error_page(pages: Pages, problem: Problem, accepted: str = "") -> Wire:
    """Return the page that tells of a problem; without a build that has one, as JSON.

    It is Markdown for whoever prefers that by `accepted`, the field `Accept`.
    """
    headers = (*problem.headers.items(), ("Vary", "Accept"))
    if prefers_markdown(accepted):
        text = f"# {_TITLE}\n\n{escape(problem.sentence)}.\n"
        return answer_page(text.encode(), problem.status, headers, MARKDOWN)
    sentences = [f"{problem.sentence}."]
    try:
        body = await pages.render("notice", _TITLE, sentences=sentences)
    except Problem:
        return error_answer(problem)
    return answer_page(body, problem.status, headers)
