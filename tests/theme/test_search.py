"""The search page's template: each control has its name, nothing said becomes markup."""

from typing import Any

import jinja2
import pytest

from site_build.build.edge_templates import PAGE_SAMPLES
from tests.theme.html_page import Page

HOSTILE = '"><script>alert(1)</script><mark>'


def render(templates: jinja2.Environment, values: Any) -> Page:
    """Return the content of the frame."""
    return Page(templates.get_template("search.html").render(values))


@pytest.mark.parametrize("number", range(len(PAGE_SAMPLES["search"])))
def test_the_form_can_be_used_by_everybody(templates: jinja2.Environment, number: int) -> None:
    """With any results there is a field with a name and a hint, and a live region."""
    page = render(templates, PAGE_SAMPLES["search"][number])
    field = page.one("input").attributes
    ids = {each.attributes["id"] for each in page.elements if "id" in each.attributes}

    assert page.one("label").attributes["for"] == field["id"] == field["name"] == "q"
    assert field["aria-describedby"] in ids
    assert page.one("p", role="status")
    assert page.one("form").attributes["action"] == "/search"
    assert page.one("form").attributes["data-module"].startswith("/theme/search.")


def test_results_are_numbered_through_their_pages(templates: jinja2.Environment) -> None:
    """The second page of ten begins with the eleventh, and leads both ways."""
    page = render(templates, PAGE_SAMPLES["search"][0])

    assert page.one("ol", id="results").attributes["start"] == "11"
    assert {each.attributes["rel"] for each in page.all("a") if "rel" in each.attributes} == {
        "prev",
        "next",
    }
    assert [each.text for each in page.all("mark")] == ["edge"] * 3


def test_another_spelling_is_a_link(templates: jinja2.Environment) -> None:
    """It is below the results, and absent without any."""
    page = render(templates, PAGE_SAMPLES["search"][2])
    without = render(templates, PAGE_SAMPLES["search"][0])

    assert page.one("p", id="search-suggestion").text == "Did you mean edge?"
    assert without.one("p", id="search-suggestion").text == ""


def test_nothing_that_is_said_becomes_markup(templates: jinja2.Environment) -> None:
    """Words, titles, snippets and tags are text."""
    values = PAGE_SAMPLES["search"][0]
    found: Any = values["results"]
    pieces = [(HOSTILE, True), (HOSTILE, False)]
    result = {**found["results"][0], "title": pieces, "snippet": pieces, "tags": (HOSTILE,)}
    given = {**values, "words": HOSTILE, "results": {**found, "results": [result]}}
    page = render(templates, given)

    assert page.all("script") == []
    assert [each.text for each in page.all("mark")] == [HOSTILE] * 2
    assert page.one("input").attributes["value"] == HOSTILE
