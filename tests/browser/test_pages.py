"""Every kind of page in a browser: no error, no foreign request, nothing wider than the screen."""

import json
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Journal
from tests.browser.watching import OVERFLOW, Watched, watch
from tests.sizes import in_ci

pytestmark = pytest.mark.size("ci")

PATHS = {
    "home": "/",
    "index": "/journal/",
    "post": "/journal/first-edge/",
    "code": "/journal/sewing-and-folding/",
    "tag": "/tags/bindings/",
    "tags": "/tags/",
    "archive": "/archive/",
    "about": "/about/",
    "contact": "/contact/",
    "thanks": "/contact/thanks/",
    "missing": "/no-such-page/",
    "notice": "/api/public/oauth/authorize",
}
STATUSES = {"/no-such-page/": 404, "/api/public/oauth/authorize": 400}
"""Statuses of pages that say that something is wrong; of all others it is 200."""
HEIGHT = 800
NARROWEST = 320
_COLOURS = """(() => {
  const style = getComputedStyle(document.body);
  const root = getComputedStyle(document.documentElement);
  return [style.color, style.backgroundColor, root.backgroundColor];
})()"""


@pytest.fixture(params=["light", *in_ci("dark")])
def scheme(request: pytest.FixtureRequest) -> Literal["light", "dark"]:
    """Return each colour scheme."""
    return "dark" if request.param == "dark" else "light"


@pytest.fixture(params=[360, *in_ci(1280)])
def width(request: pytest.FixtureRequest) -> int:
    """Return the width of a telephone and of a desk, in CSS pixels."""
    return int(request.param)


@pytest.fixture
def watched(browser: Browser, scheme: Literal["light", "dark"], width: int) -> Iterator[Watched]:
    """Return a page that is watched."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
    )
    yield watch(context, STATUSES)
    context.close()


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_page_is_in_order(journal: Journal, watched: Watched, path: str) -> None:
    """It loads whole from its own origin, without a complaint, and fits the screen."""
    answer = watched.page.goto(f"{journal.url}{path}", wait_until="networkidle")

    assert answer is not None
    assert answer.status == STATUSES.get(path, 200)
    check_order(journal, watched)


def check_order(journal: Journal, watched: Watched) -> None:
    """Hold the page against what each page has to keep."""
    assert watched.page.locator("h1").count() == 1
    assert watched.complaints == []
    assert [url for url in watched.requests if not url.startswith((journal.url, "data:"))] == []
    assert any(url.endswith(".css") for url in watched.requests)
    assert watched.page.evaluate(OVERFLOW) <= 0


def test_the_question_of_a_client_is_in_order(journal: Journal, watched: Watched) -> None:
    """The page of the authorization server, however long the names in it are, and narrow."""
    words = ("--name", "A client with a name " + "o" * 60, "--json")
    redirect = f"https://{'a-long-label.' * 8}example/callback"
    _, said, _ = journal.installation.run("clients", "register", *words, "--redirect-uri", redirect)
    asked = {
        "response_type": "code",
        "client_id": json.loads(said)["client_id"],
        "redirect_uri": redirect,
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }
    watched.page.set_viewport_size({"width": NARROWEST, "height": HEIGHT})
    watched.page.goto(f"{journal.url}/api/public/oauth/authorize?{urlencode(asked)}")

    assert watched.page.get_by_role("button", name="Deny").is_visible()
    check_order(journal, watched)


def test_the_page_of_a_filed_request_is_in_order(journal: Journal, watched: Watched) -> None:
    """The page with the claim token, whose token is wider than a narrow screen."""
    watched.page.set_viewport_size({"width": NARROWEST, "height": HEIGHT})
    watched.page.goto(f"{journal.url}/contact/")
    watched.page.locator("#access-name").fill("Ann")
    watched.page.locator("#access-purpose").fill("Posts")
    watched.page.locator("#access-form button").click()
    watched.page.wait_for_url(f"{journal.url}/contact/access/")

    assert watched.page.locator(".secret").is_visible()
    check_order(journal, watched)


def test_a_long_file_name_stays_on_its_tab(journal: Journal, watched: Watched) -> None:
    """However long the name above a block of code is, the page is no wider than the screen."""
    watched.page.goto(f"{journal.url}/journal/sewing-and-folding/")
    watched.page.locator(".prose").evaluate(
        """each => each.insertAdjacentHTML("beforeend", `<figure class="code">
        <figcaption>${"a-long-name/".repeat(20)}app.py</figcaption><pre>x</pre></figure>`)"""
    )

    assert watched.page.locator("figure.code").is_visible()
    check_order(journal, watched)


def test_a_violation_would_be_seen(journal: Journal, watched: Watched) -> None:
    """The watching itself works: a script in the page is stopped, and that is noticed."""
    watched.page.goto(f"{journal.url}/")
    watched.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=https://elsewhere.invalid/x.png>')"
    )
    watched.page.wait_for_event("console", lambda message: "CSP" in message.text, timeout=30_000)

    assert any("CSP: img-src" in complaint for complaint in watched.complaints)


def test_the_schemes_differ(journal: Journal, browser: Browser) -> None:
    """The dark scheme has other colours than the light one."""
    seen = set()
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.goto(f"{journal.url}/")
        seen.add(tuple(page.evaluate(_COLOURS)))
        page.close()

    assert len(seen) == 2


def test_a_reader_finds_the_way(journal: Journal, watched: Watched) -> None:
    """From home to a post, to its tag, and back to another post, by links alone."""
    page = watched.page
    page.goto(f"{journal.url}/")
    page.locator("main").get_by_role("link", name="Marbled paper").first.click()
    page.wait_for_url("**/journal/marbled-paper/")
    page.get_by_role("link", name="Posts on paper", exact=True).first.click()
    page.wait_for_url("**/tags/paper/")
    page.locator("main").get_by_role("link", name="The first edge").first.click()
    page.wait_for_url("**/journal/first-edge/")

    assert watched.complaints == []
