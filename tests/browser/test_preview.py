"""The preview in a browser: pages that load themselves again, and what is laid over them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.site_build.previewing import Shown, previewing
from tests.site_build.workbench import Workbench

pytestmark = pytest.mark.size("test")


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    """Return a preview of two posts, one of them a draft."""
    bench = Workbench(tmp_path / "content", tmp_path / "build")
    bench.post("morning", text="The lamp is lit.")
    bench.post("evening", "2026-03-02", "Not yet.", status="draft")
    with previewing(bench) as preview:
        yield preview


@pytest.fixture
def complaints() -> list[str]:
    """Return what the browser's console has complained of."""
    return []


@pytest.fixture
def page(browser: Browser, shown: Shown, complaints: list[str]) -> Iterator[Page]:
    """Return a browser on the first post."""
    context = browser.new_context()
    page = context.new_page()

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    page.on("console", note)
    page.goto(f"{shown.url}/journal/morning/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Morning")
    yield page
    context.close()


def test_a_saved_post_shows_by_itself(page: Page, shown: Shown, complaints: list[str]) -> None:
    """The page is loaded again where it was, and nothing offends the site's policy."""
    shown.bench.post("morning", text="The lamp is out.")

    expect(page.get_by_text("The lamp is out.")).to_be_visible()
    assert page.url == f"{shown.url}/journal/morning/"
    assert complaints == []


def test_an_error_covers_the_page_until_it_is_fixed(
    page: Page, shown: Shown, complaints: list[str]
) -> None:
    """File, line and fix are read over the last good page; both go with the fixed file."""
    shown.bench.post("morning", "2026-02-30", "The lamp is out.")

    error = page.get_by_role("alert")
    expect(error).to_contain_text("1 error to fix")
    expect(error).to_contain_text("content/posts/morning.md:4:7")
    expect(error).to_contain_text("is not a date; fix the day or time")
    expect(page.get_by_text("The lamp is lit.")).to_be_visible()

    shown.bench.post("morning", "2026-02-28", "The lamp is out.")
    expect(page.get_by_text("The lamp is out.")).to_be_visible()
    expect(error).to_have_count(0)
    assert complaints == []


@pytest.mark.size("ci")
def test_an_error_can_be_dismissed(page: Page, shown: Shown) -> None:
    """The box over the page is hidden with a button, by keyboard too."""
    shown.bench.write("posts/other.md", "no front matter")
    page.get_by_role("button", name="Hide").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.size("ci")
def test_warnings_wait_in_a_corner(page: Page, shown: Shown) -> None:
    """Warnings of a check are counted, and listed on a press."""
    shown.bench.post("morning", text="See [nothing](/journal/nowhere/).")

    notes = page.locator(".preview-notes")
    expect(notes.locator("summary")).to_have_text("1 warning here")
    expect(notes.get_by_text("broken link")).to_be_hidden()
    notes.locator("summary").click()
    expect(notes.get_by_text("broken link")).to_be_visible()


@pytest.mark.size("ci")
def test_a_draft_is_marked(page: Page, shown: Shown) -> None:
    """Its badge is seen in the list and on its page, and readers' posts have none."""
    page.goto(f"{shown.url}/journal/")
    expect(page.locator(".preview-badge")).to_have_count(1)
    expect(page.locator(".preview-badge")).to_be_visible()
    page.get_by_role("link", name="Evening").click()

    expect(page.locator("h1 + p .preview-badge")).to_have_text("Draft")


@pytest.mark.size("ci")
def test_a_page_finds_its_preview_again(browser: Browser, shown: Shown) -> None:
    """A change between two views of an open page is shown at the second."""
    page = browser.new_page()
    page.goto(f"{shown.url}/journal/morning/")
    page.goto("about:blank")
    shown.bench.post("morning", text="The lamp is out.")
    page.go_back()

    expect(page.get_by_text("The lamp is out.")).to_be_visible()
    page.close()
