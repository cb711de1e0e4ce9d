"""Pages whose browser runs no scripts: the text is there, the way is there, forms can be sent."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import open_browser
from tests.judges.pages.places import places
from tests.judges.pages.served import Served

pytestmark = pytest.mark.size("test", grows=True)

WORDS_LEAST = 8
"""In the main part of a page that says anything."""
_SENT_BY_SCRIPT = "form:not([action]), button[type=button]:not([hidden], [popovertarget])"
"""Elements that need a script. A button with `popovertarget` works by itself (HTML, 6.12)."""


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return the system's Chromium."""
    with open_browser(chromium) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page of somebody who has switched scripts off."""
    with browser.new_context(java_script_enabled=False) as context:
        yield context.new_page()


def lacks(page: Page) -> list[str]:
    """Return what somebody without scripts misses on a page."""
    words = page.locator("main").inner_text().split()
    links = page.get_by_role("navigation", name="Main").get_by_role("link")
    dead = page.locator(_SENT_BY_SCRIPT)
    return [
        *([f"only {len(words)} words"] if len(words) < WORDS_LEAST else []),
        *(["no way to other pages"] if links.count() < 3 or not links.first.is_visible() else []),
        *[
            f"does nothing: {each.evaluate('node => node.outerHTML')[:100]}"
            for each in dead.all()
            if each.is_visible()
        ],
    ]


def test_pages_work(journal: Served, page: Page) -> None:
    """Each page that needs no steps shows its text, the way on, and nothing that is dead."""
    found = {}
    for place in places(journal):
        if place.steps is None:
            page.goto(journal.origin + place.path(journal))
            found[place.name] = lacks(page)

    assert len(found) > 10
    assert {name: missed for name, missed in found.items() if missed} == {}


def test_a_search_works(journal: Served, page: Page) -> None:
    """Words are typed, sent with a plain form, and results come as a page."""
    page.goto(f"{journal.origin}/search")
    page.get_by_role("searchbox").fill("edge")
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_url("**/search?q=edge*")

    results = page.locator("ol.results > li a")
    assert results.count() > 0
    results.first.click()
    page.wait_for_url("**/journal/*/")
    assert urlsplit(page.url).path != "/journal/"


@pytest.mark.size("ci")
def test_a_page_that_needs_scripts_is_detected(page: Page) -> None:
    """A page that its scripts would have filled, and a button for them, are noticed."""
    page.set_content("<main><form><button type=button>Load</button></form></main>")

    assert len(lacks(page)) == 4
