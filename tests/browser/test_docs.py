"""The reference of the API in a browser, and Swagger UI beside it."""

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from edge_api.schema.paths import DOCS_PAGES, TRY_OUT_PATH
from tests.browser.conftest import Journal
from tests.browser.watching import OVERFLOW, Watched, watch
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

_CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) =>
      c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = rgb(getComputedStyle(each).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const pair = [rgb(getComputedStyle(element).color), ground(element)].map(light);
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${element.className}: ${element.textContent}`);
  }
  return found;
}"""


_WIDE_TABLES = """() => {
  for (const closed of document.querySelectorAll("main details:not([name])")) closed.open = true;
  const column = document.querySelector(".reference > p").getBoundingClientRect();
  return [...document.querySelectorAll("main table")].flatMap((table) => {
    const box = (table.closest("[tabindex='0']") ?? table).getBoundingClientRect();
    return box.right > column.right + 1 ? [`${box.right}: ${table.textContent.slice(0, 60)}`] : [];
  });
}"""
"""Tables that reach beyond the text above them and do not scroll."""


@pytest.fixture(params=["light", *in_ci("dark")])
def scheme(request: pytest.FixtureRequest) -> Literal["light", "dark"]:
    """Return each colour scheme."""
    return "dark" if request.param == "dark" else "light"


@pytest.fixture(params=[360, *in_ci(1280)])
def watched(
    browser: Browser, scheme: Literal["light", "dark"], request: pytest.FixtureRequest
) -> Iterator[Watched]:
    """Return a page that is watched, on a telephone and on a desk."""
    context = browser.new_context(
        viewport={"width": request.param, "height": 800}, color_scheme=scheme
    )
    yield watch(context)
    context.close()


def hosts_of(watched: Watched) -> set[str]:
    """Return where requests went."""
    return {urlsplit(url).netloc for url in watched.requests}


def call(page: Page, operation: str) -> Locator:
    """Open an operation of Swagger UI, execute it, and return what it was answered."""
    block = page.locator(f"[id$='-{operation}']")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Execute").click()
    return block.locator(".live-responses-table .response").first


def test_the_reference_loads_without_errors(journal: Journal, watched: Watched) -> None:
    """No page is wider than the screen, complains, asks elsewhere, or is too pale to read."""
    for path in DOCS_PAGES:
        watched.page.goto(f"{journal.url}{path}")
        for closed in watched.page.locator("main details:not([name])").all():
            closed.evaluate("each => { each.open = true; }")
        assert watched.page.evaluate(OVERFLOW) <= 0, path
        assert watched.page.evaluate(_CONTRASTS) == [], path

    assert watched.complaints == []
    assert hosts_of(watched) == {urlsplit(journal.url).netloc}


def test_the_overview_fits_the_narrowest_screen(browser: Browser, journal: Journal) -> None:
    """At 320 pixels it is not scrolled sideways, and no name of a scope breaks."""
    with browser.new_context(viewport={"width": 320, "height": 800}) as context:
        page = context.new_page()
        page.goto(f"{journal.url}/docs/")

        assert page.evaluate(OVERFLOW) <= 0
        for name in page.locator("td:first-child > code").all():
            assert name.evaluate("each => each.getClientRects().length") == 1


def test_the_dialog_for_credentials_opens_at_the_key(page: Page, journal: Journal) -> None:
    """The field that most readers want has the focus."""
    page.goto(f"{journal.url}{TRY_OUT_PATH}")
    page.locator(".btn.authorize").click()

    expect(page.locator("#api_key_value")).to_be_focused()


@pytest.mark.parametrize("width", [390, *in_ci(1280)])
@pytest.mark.parametrize("size", [100, 200])
def test_tables_stay_within_the_column(
    browser: Browser, journal: Journal, width: int, size: int
) -> None:
    """At the usual size of letters and at twice that, a table fits the text or scrolls."""
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        for path in DOCS_PAGES:
            page.goto(f"{journal.url}{path}")
            page.evaluate("size => { document.documentElement.style.fontSize = size }", f"{size}%")
            assert page.evaluate(_WIDE_TABLES) == [], path


@pytest.mark.parametrize("width", [360, *in_ci(960, 1280)])
def test_a_link_leads_to_its_operation(browser: Browser, journal: Journal, width: int) -> None:
    """Also far down the longest page, whose parts are laid out only as they come near."""
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        page.goto(f"{journal.url}/docs/admin/")
        links = page.locator(".operations a")
        for number in (3, links.count() - 3):
            target = (links.nth(number).get_attribute("href") or "").removeprefix("#")
            page.goto(f"{journal.url}/docs/admin/")
            links.nth(number).click()
            top = "id => document.getElementById(id).getBoundingClientRect().top"
            page.wait_for_function(f"id => Math.abs(({top})(id)) < 60", arg=target)
            page.wait_for_timeout(300)

            assert abs(page.evaluate(top, target)) < 60


def test_a_language_is_chosen_without_a_script(browser: Browser, journal: Journal) -> None:
    """One example is open at a time, by the keyboard too, with JavaScript off."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{journal.url}/docs/posts/")
    examples = page.locator(".examples").first
    expect(examples.get_by_text("curl '")).to_be_visible()
    examples.get_by_text("Python", exact=True).focus()
    page.keyboard.press("Enter")

    expect(examples.get_by_text("urlopen(request")).to_be_visible()
    expect(examples.get_by_text("curl '")).to_be_hidden()
    context.close()


def test_operations_are_tried_from_the_page(journal: Journal, watched: Watched) -> None:
    """Swagger UI runs under the strict policy: ping is answered, and with a key the posts are."""
    page = watched.page
    page.goto(f"{journal.url}{TRY_OUT_PATH}")
    expect(call(page, "ping")).to_contain_text("200")
    page.get_by_role("button", name="Authorize").first.click()
    dialog = page.locator(".dialog-ux")
    dialog.locator("#api_key_value").fill(journal.key)
    dialog.get_by_role("button", name="Authorize", exact=True).first.click()
    dialog.get_by_role("button", name="Close", exact=True).first.click()
    answer = call(page, "list_posts")

    expect(answer).to_contain_text("200")
    expect(answer).to_contain_text("first-edge")
    assert page.evaluate(OVERFLOW) <= 0
    assert watched.complaints == []
    assert hosts_of(watched) <= {urlsplit(journal.url).netloc, ""}


def test_without_javascript_the_page_links_to_the_reference(
    browser: Browser, journal: Journal
) -> None:
    """The page says why it is empty, and where to find the same content."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{journal.url}{TRY_OUT_PATH}")
    page.get_by_role("link", name="The reference", exact=True).click()

    expect(page.locator("h1")).to_have_text("API")
    context.close()
