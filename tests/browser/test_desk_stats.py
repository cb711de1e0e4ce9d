"""The screen Stats in a real browser: axe, the width of a phone, and no script."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser

from edge_api.open_store import command_store
from edge_api.settings import read_settings
from tests.browser.conftest import Journal, serve, signed_in
from tests.browser.test_desk import AXE, look
from tests.edge.conftest import CONTENT
from tests.edge.stats.figures import FIGURES, FIRST, VIEWS, fill

pytestmark = pytest.mark.size("test")
PATH = "/desk/stats/"
LONG = f"/journal/{'a-slug-that-goes-on-and-on-' * 8}/"
WHOLE = f"{LONG.replace('-', '')}"
"""A path without a place where it could be broken."""


async def store_counts(settings: dict[str, str]) -> None:
    """Store a week, with long names in it."""
    views = {
        **VIEWS,
        (1, LONG, "person", ""): 12_345_678,
        (1, WHOLE, "person", ""): 2,
        (2, "/feed.xml", "feed_reader", "a-feed-reader.example/" + "x" * 150): 9_876_543,
    }
    figures = {**FIGURES, (1, "referrer", f"{'sub-domain.' * 15}example"): 8}
    async with command_store(read_settings(settings, dotenv=None)) as store:
        await fill(store, views, figures, datetime.now(UTC).date())


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return a journal that was read, whose desk has all entries."""
    folder = tmp_path_factory.mktemp("counted")
    given = {
        "WRITING": "on",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "The Journal <post@journal-keepers.net>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "SMTP_URL": f"maildir:{folder}/mail",
    }
    with serve(folder, CONTENT, **given) as served:
        asyncio.run(store_counts({"DATABASE_URL": f"sqlite:///{folder}/var/edge.db"}))
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_screen_is_accessible_and_fits(
    counted: Journal, browser: Browser, width: int, scheme: Any
) -> None:
    """No finding of axe, nothing wider than the screen, and the current entry of seven in view."""
    given: dict[str, Any] = {"color_scheme": scheme, "bypass_csp": True}
    given["viewport"] = {"width": width, "height": 844}
    found = []
    with signed_in(browser, counted, PATH, **given) as page:
        for query in ("", "?span=month", "?span=year", f"?page={FIRST}", "?page=/none/"):
            page.goto(f"{counted.url}{PATH}{query}")
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            found += [f"{query} {each}" for each in look(page, AXE.read_text())]
        assert page.locator(".desk-line li").count() == 7
        entry = page.locator(".desk-line [aria-current]").bounding_box()
        assert entry
        assert 0 <= entry["x"] <= width - entry["width"]
    assert found == []


def test_a_page_and_a_span_are_chosen_without_scripts(counted: Journal, browser: Browser) -> None:
    """By links; the policy of the page refuses nothing of it."""
    with signed_in(browser, counted, PATH, java_script_enabled=False) as page:
        refused: list[str] = []
        page.on("console", lambda message: refused.append(message.text))
        page.get_by_role("link", name="30 days").click()
        page.get_by_text("people read you in 30 days").wait_for()
        assert page.locator("svg rect").count() == 30
        page.get_by_role("link", name="The first edge").click()
        page.get_by_text("“The first edge” was opened 80 times in 30 days").wait_for()
        page.get_by_text("The same as a table").click()
        assert page.get_by_role("cell", name="50", exact=True).is_visible()
        page.get_by_role("link", name="All pages").click()
        page.get_by_text("people read you in 30 days").wait_for()
        with page.expect_download() as got:
            page.get_by_role("link", name="All counts of these days as CSV").click()
        assert got.value.path().read_text().startswith("day,figure,name")
    assert refused == []
