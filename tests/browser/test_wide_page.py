"""The home page at first sight, and a post where there is room beside its text."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Journal, serve
from tests.browser.watching import OVERFLOW
from tests.edge.conftest import CONTENT
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

POST = "/journal/notes/"
BESIDE = ["1", "2", "3", "4", "5", "7", "8", "9", "10", "11", "15"]
"""Numbers of the notes that have a place beside the text."""
BELOW = ["6", "12", "13", "14"]

# Boxes of what is in sight, in pixels of the page.
_BOXES = """selector => [...document.querySelectorAll(selector)]
  .filter(each => !each.closest(".enlarged") && each.getClientRects().length)
  .map(each => {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    return { name: each.tagName + " " + each.innerText.slice(0, 20), left, right, top, bottom };
  })"""
_LINES = """() => [...document.querySelectorAll("td.amount")].map(each => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return new Set([...range.getClientRects()].map(({ top }) => top)).size;
})"""
# The numbers of the notes that can be read, wherever they are.
_READ = """() => [...document.querySelectorAll(".sidenote > sup, .footnote li")]
  .filter(each => each.getClientRects().length)
  .map(each => each.tagName === "SUP" ? each.textContent : String(each.value))"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return the small journal with a post of notes and a dozen short ones, served."""
    folder = tmp_path_factory.mktemp("wide")
    content = folder / "content"
    shutil.copytree(CONTENT, content)
    shutil.copytree(Path(__file__).resolve().parent / "wide", content, dirs_exist_ok=True)
    (content / "images").mkdir(exist_ok=True)
    Image.effect_noise((1600, 900), 60).save(content / "images" / "wide.jpg")
    notes = (content / "posts" / "notes.md").read_text(encoding="utf-8")
    turned = notes.replace("slug: notes", "slug: turned\nlang: he")
    (content / "posts" / "turned.md").write_text(turned, encoding="utf-8")
    for day in range(1, 13):
        head = f"title: Leaf number {day}\ndate: 2025-01-{day:02}\nslug: leaf-{day}\ntags: [leaves]"
        (content / "posts" / f"leaf-{day}.md").write_text(
            f"---\n{head}\ndescription: A leaf.\n---\n\nA leaf.\n", encoding="utf-8"
        )
    with serve(folder, content) as served:
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page of a reader who runs no scripts, for none is needed."""
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def boxes(page: Page, selector: str) -> list[dict[str, Any]]:
    """Return the name and the sides of each element in sight."""
    found: list[dict[str, Any]] = page.evaluate(_BOXES, selector)
    return found


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two boxes have a point in common."""
    is_beside = one["right"] <= other["left"] or other["right"] <= one["left"]
    return not is_beside and one["top"] < other["bottom"] and other["top"] < one["bottom"]


@pytest.mark.parametrize(("width", "height", "least"), [(1280, 800, 8), (390, 844, 7)])
def test_home_begins_with_what_is_written(
    journal: Journal, page: Page, width: int, height: int, least: int
) -> None:
    """A sentence of the newest post is above 420 pixels, and many titles are in sight."""
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{journal.url}/")
    (text,) = boxes(page, ".newest .prose > p:first-child")
    titles = boxes(page, ".newest h2, .leaves bdi")

    assert text["top"] + 30 <= 420
    assert sum(each["bottom"] <= height for each in titles) >= least


def test_a_list_shows_eight_titles_on_a_laptop(journal: Journal, page: Page) -> None:
    """At first sight, below its heading."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{journal.url}/journal/")

    assert sum(each["bottom"] <= 800 for each in boxes(page, ".leaves bdi")) >= 8


@pytest.mark.parametrize("width", [1280, *in_ci(360, 1440, 1920)])
def test_wide_blocks_end_at_the_right_edge_of_the_text(
    journal: Journal, page: Page, width: int
) -> None:
    """Code, a large picture and tables of several columns have one right edge with the text."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{journal.url}{POST}")
    (text,) = boxes(page, ".prose")
    wide = boxes(page, ".prose > .highlight, .prose pre, figure img, .table-scroll")
    tables = boxes(page, ".table-scroll > table")

    assert len(wide) == 5
    assert [each for each in wide if abs(each["right"] - text["right"]) > 1] == []
    assert [each for each in tables if each["right"] < text["right"] - 1] == []
    assert page.evaluate(OVERFLOW) <= 0


@pytest.mark.parametrize("path", [POST, *in_ci("/journal/turned/")])
@pytest.mark.parametrize("width", [1200, *in_ci(1280, 1440, 1920, 2560)])
def test_notes_beside_the_text_touch_nothing(
    journal: Journal, page: Page, path: str, width: int
) -> None:
    """Neither each other nor the text, nor the painted edge at the side of the page."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{journal.url}{path}")
    page.locator("summary", has_text="More").click()
    notes = boxes(page, ".sidenote")
    others = boxes(
        page, ".prose > :not(.footnote), .prose .footnote, .shoulder, .fore-edge, footer"
    )

    assert len(notes) == len(BESIDE)
    assert [
        (one["name"], other["name"])
        for place, one in enumerate(notes)
        for other in [*notes[place + 1 :], *others]
        if overlap(one, other)
    ] == []
    assert [note for note in notes if note["left"] < 0 or note["right"] > width] == []
    assert len({round(note["left"]) for note in notes}) == 1
    assert page.evaluate(OVERFLOW) <= 0


@pytest.mark.parametrize(
    ("width", "first"), [(1199, [*range(1, 16)]), (1200, [*map(int, BESIDE), *map(int, BELOW)])]
)
def test_each_note_is_read_once(journal: Journal, page: Page, width: int, first: list[int]) -> None:
    """Below the text where the window is narrow, else beside it, where there is a place."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{journal.url}{POST}")
    page.locator("summary", has_text="More").click()

    assert page.evaluate(_READ) == [str(number) for number in first]


def test_amounts_stay_on_a_line(journal: Journal, page: Page) -> None:
    """On a phone too, where the words beside them are broken."""
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto(f"{journal.url}{POST}")
    lines = page.evaluate(_LINES)

    assert len(lines) == 7
    assert set(lines) == {1}


def test_a_picture_is_enlarged_without_scripts(journal: Journal, page: Page) -> None:
    """A press shows it larger than the column, and Escape or another press takes it away."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{journal.url}{POST}")
    small, large = page.locator(".enlarge"), page.locator(".enlarged img")
    expect(large).to_be_hidden()
    ways: list[Callable[[], None]] = [lambda: page.keyboard.press("Escape"), large.click]
    for leave in ways:
        small.click()
        expect(large).to_be_visible()
        box = large.bounding_box()
        assert box is not None
        assert box["width"] > 1000
        leave()
        expect(large).to_be_hidden()
