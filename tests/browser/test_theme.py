"""The look of the journal at work: day and night, where one is, what is copied and printed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import ARGUMENTS, Journal, serve, settle
from tests.browser.watching import OVERFLOW
from tests.edge.conftest import CONTENT
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

POST = "/journal/chapters/"
AUTHOR = "/authors/fore-edge/"
LISTS = ("/journal/", "/tags/", "/tags/paper/", "/archive/", AUTHOR)
PATHS = ("/", POST, *LISTS, "/about/", "/contact/")
WIDTHS = (320, 360, 540, 768, 1024, 1280, 1920, 2560)
DARK, LIGHT = "rgb(23, 24, 29)", "rgb(248, 245, 238)"

# The scheme when the page's body begins, and the paper's colour in each frame that is shown.
_WATCH_PAPER = """
window.papers = [];
new MutationObserver(() => {
  if (document.body) window.begun ??= document.documentElement.dataset.scheme ?? "none";
}).observe(document, { childList: true, subtree: true });
(function look() {
  if (document.body) window.papers.push(getComputedStyle(document.body).backgroundColor);
  requestAnimationFrame(look);
})();
"""
_WATCH_SHIFTS = """
window.shifts = 0;
new PerformanceObserver(list => list.getEntries().forEach(entry => window.shifts += entry.value))
  .observe({ type: "layout-shift", buffered: true });
"""
# The colour of the browser's own frame.
_FRAME = """
[...document.querySelectorAll("meta[name=theme-color]")]
  .filter(({ media }) => matchMedia(media).matches)
  .map(({ content }) => content)
  .join()
"""
# Milliseconds until which modules wait (the first paint, or a second after all else is there),
# and those at which each was asked for.
_ORDER = """() => [
  Math.min(performance.getEntriesByName("first-contentful-paint")[0].startTime,
    performance.getEntriesByType("navigation")[0].loadEventStart + 1_000),
  performance.getEntriesByType("resource")
    .filter(({ name }) => name.endsWith(".js") && !name.includes("/before_paint."))
    .map(({ startTime }) => startTime),
]"""
# The page's colour is painted at once, its words three tenths of a second later.
_WORDS_LATE = """<style>
  @keyframes show { to { visibility: visible } }
  body > * { visibility: hidden; animation: show 0s .3s forwards !important }
</style>"""
# Where the painted edge and the picture in it begin and end, in pixels of the window.
_PAINTED = """() => [".fore-edge", ".fore-edge .day"].map(each => {
  const { top, bottom, left, right } = document.querySelector(each).getBoundingClientRect();
  return { top, bottom, left, right };
})"""
# The scroll bar's width and the first words' position, with or without the rest of the page.
_PLACES = """hidden => {
  document.querySelector("main").hidden = hidden;
  const { x } = document.querySelector(".wordmark a").getBoundingClientRect();
  return [innerWidth - document.documentElement.clientWidth, x];
}"""
_SMALL_TARGETS = """() => {
  const outsideText = ":is(a, button, summary, select, input:not([type=hidden]))";
  return [...document.querySelectorAll(outsideText)]
    .filter(each => !each.closest(".prose, .skip, .trap, h2, .choice, .onward"))
    .map(each => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
    .filter(([_, box]) => box.height > 0 && (box.height < 23.9 || box.width < 23.9))
    .map(([html, box]) => `${Math.round(box.width)}x${box.height} ${html}`);
}"""
_CHARACTERS_A_LINE = """() => {
  const text = document.querySelector("#the-paint + p").firstChild;
  const range = document.createRange();
  const lines = new Map();
  for (let at = 0; at < text.length; at++) {
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    const line = range.getBoundingClientRect().bottom;
    lines.set(line, (lines.get(line) ?? 0) + 1);
  }
  const full = [...lines.values()].slice(0, -1);
  return full.reduce((sum, count) => sum + count, 0) / full.length;
}"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return the small journal with a long post more, served by a process of its own."""
    folder = tmp_path_factory.mktemp("theme")
    shutil.copytree(CONTENT, folder / "content")
    more = Path(__file__).resolve().parent / "content"
    shutil.copytree(more, folder / "content", dirs_exist_ok=True)
    with serve(folder, folder / "content") as served:
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page of a reader whose system is light."""
    context = browser.new_context(color_scheme="light")
    yield context.new_page()
    context.close()


@pytest.fixture
def page_without_scripts(browser: Browser) -> Iterator[Page]:
    """Return a page of a reader who runs no scripts."""
    context = browser.new_context(color_scheme="dark", java_script_enabled=False)
    yield context.new_page()
    context.close()


def paper(page: Page) -> str:
    """Return the colour of the page."""
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_the_choice_is_remembered_without_a_flash(journal: Journal, page: Page) -> None:
    """A reader turns to night by day; each further page is dark from its first frame on."""
    page.goto(journal.url)
    lamp = page.get_by_role("button", name="Dark page")
    assert paper(page) == LIGHT
    expect(lamp).to_have_attribute("aria-pressed", "false")

    lamp.click()
    assert paper(page) == DARK
    expect(lamp).to_have_attribute("aria-pressed", "true")

    page.add_init_script(_WATCH_PAPER)
    page.goto(f"{journal.url}{POST}")
    expect(lamp).to_have_attribute("aria-pressed", "true")
    papers = page.evaluate("window.papers")

    assert page.evaluate("window.begun") == "dark"
    assert papers
    assert set(papers) == {DARK}
    assert page.evaluate(_FRAME) == "#17181d"


@pytest.mark.size("ci")
def test_the_choice_of_scheme_can_be_reset_to_the_system(journal: Journal, page: Page) -> None:
    """Choosing the system's own scheme follows the system again, also when that changes."""
    page.goto(journal.url)
    lamp = page.get_by_role("button", name="Dark page")
    lamp.press("Enter")
    lamp.press("Space")

    assert page.evaluate("localStorage.length") == 0
    assert paper(page) == LIGHT
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", DARK)


def test_a_choice_holds_in_other_windows(journal: Journal, page: Page) -> None:
    """Two windows of the site are never of two schemes."""
    other = page.context.new_page()
    for each in (page, other):
        each.goto(journal.url)
    page.get_by_role("button", name="Dark page").click()

    expect(other.locator("body")).to_have_css("background-color", DARK)
    expect(other.locator(".lamp")).to_have_attribute("aria-pressed", "true")


@pytest.mark.size("ci")
def test_module_scripts_do_not_block_rendering(journal: Journal, page: Page) -> None:
    """They wait for the first words, not for a frame without any, and none is a stranger's."""

    def give_with_a_stranger(route: Route) -> None:
        answer = route.fetch()
        strange = '<p data-module="/images/strange.js">Strange.</p></main>'
        body = answer.text().replace("</main>", strange).replace("</head>", f"{_WORDS_LATE}</head>")
        headers = answer.headers
        # The policy admits no style of the page's own.
        del headers["content-security-policy"]
        route.fulfill(response=answer, headers=headers, body=body)

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route(f"**{POST}", give_with_a_stranger)
    page.goto(f"{journal.url}{POST}")
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    settle(page)
    waited, begun = page.evaluate(_ORDER)

    assert page.get_by_text("Strange.").count() == 1
    assert [module for module in begun if module <= waited] == []
    assert len(begun) == 2
    assert len([url for url in asked if url.endswith(".js")]) == 3


@pytest.mark.parametrize("path", [*PATHS[:1], *in_ci(*PATHS[1:])])
def test_pages_need_no_scripts(journal: Journal, page_without_scripts: Page, path: str) -> None:
    """Without scripts the system's scheme holds, and nothing is offered that would not work."""
    page = page_without_scripts
    page.goto(f"{journal.url}{path}")

    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", DARK)
    expect(page.locator(".lamp")).to_be_hidden()
    expect(page.locator(".copy")).to_have_count(0)


def test_a_post_begins_high_on_a_phone(journal: Journal, page_without_scripts: Page) -> None:
    """Its first paragraph begins within the upper 420 pixels, contents and all."""
    page_without_scripts.set_viewport_size({"width": 360, "height": 780})
    page_without_scripts.goto(f"{journal.url}{POST}")
    expect(page_without_scripts.get_by_text("Contents", exact=True)).to_be_visible()

    box = page_without_scripts.locator(".prose > p").first.bounding_box()
    assert box is not None
    assert box["y"] <= 420


def test_a_leaf_moves_on_keyboard_focus(journal: Journal, page: Page) -> None:
    """A leaf that has the focus is bent to the side, and leads to its post."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{journal.url}/")
    leaf = page.locator(".leaves a").nth(1)
    title = leaf.locator("bdi").inner_text()
    page.locator(".leaves a").first.focus()
    page.keyboard.press("Tab")
    expect(leaf).not_to_have_css("translate", "none")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text(title)


def test_a_leaf_is_tapped(journal: Journal, browser: Browser) -> None:
    """On a phone, where a sentence of the newest post is in sight too."""
    context = browser.new_context(
        viewport={"width": 360, "height": 780}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{journal.url}/")
    box = page.locator(".newest .prose").bounding_box()
    assert box is not None
    assert box["y"] + 27 <= 420
    leaf = page.locator(".leaves a").nth(1)
    title = leaf.locator("bdi").inner_text()
    leaf.tap()
    expect(page.locator("h1")).to_have_text(title)
    context.close()


def test_the_menu_of_a_phone_is_one_row(journal: Journal, page: Page) -> None:
    """All its links have the same height on the page, but for the search beside them."""
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto(f"{journal.url}/journal/")
    links = page.get_by_role("navigation", name="Main").get_by_role("link").all()
    rows = {round((each.bounding_box() or {"y": 0})["y"]) for each in links[:-1]}

    assert len(rows) == 1
    assert "Search" in links[-1].inner_text()


@pytest.mark.size("ci")
def test_contents_lead_without_scripts(journal: Journal, page_without_scripts: Page) -> None:
    """The table of contents is opened by a click, and is links."""
    page_without_scripts.goto(f"{journal.url}{POST}")
    page_without_scripts.get_by_text("Contents", exact=True).click()
    page_without_scripts.locator(".contents-list a", has_text="The gold").click()

    expect(page_without_scripts.locator("h2", has_text="The gold")).to_be_in_viewport()


@pytest.mark.size("ci")
def test_contents_say_where_one_is(journal: Journal, page: Page) -> None:
    """The entry of the section that is read is marked, one at a time, forth and back."""
    page.set_viewport_size({"width": 1280, "height": 400})
    page.goto(f"{journal.url}{POST}")
    current = page.locator(".contents-list [aria-current]")
    expect(current).to_have_count(0)

    for title in ("The paint", "Red", "The bench"):
        page.locator(".prose :is(h2, h3)", has_text=title).evaluate(
            "heading => scrollTo(0, heading.getBoundingClientRect().top + scrollY - 40)"
        )
        expect(current).to_have_text([title])
        expect(current).to_have_attribute("aria-current", "location")
    page.evaluate("scrollTo(0, 0)")
    expect(current).to_have_count(0)


def test_headings_are_linked_by_keyboard(journal: Journal, page: Page) -> None:
    """A heading's link is seen when the keyboard comes to it, and leads to the heading."""
    page.goto(f"{journal.url}{POST}")
    anchor = page.locator("#the-paint .heading-anchor")
    expect(anchor).to_have_css("opacity", "0")
    page.locator(".prose .footnote-ref").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if anchor.evaluate("each => each === document.activeElement"):
            break

    expect(anchor).to_have_css("opacity", "1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#the-paint")


def test_code_is_copied(journal: Journal, page: Page) -> None:
    """The button gives the code alone, without prompts, and announces it."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=journal.url)
    page.goto(f"{journal.url}{POST}")
    buttons = page.get_by_role("button", name="Copy this code")
    expect(buttons).to_have_count(2)

    for number, text in ((0, "leaves = 320\nprint(leaves)"), (1, "python -m site_build check")):
        buttons.nth(number).press("Enter")
        expect(page.get_by_role("status")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()").strip()
        assert copied.splitlines()[0].strip() == text.splitlines()[0]
        expect(page.get_by_role("status")).to_have_text("")


def test_no_page_is_wider_than_its_screen(journal: Journal, page: Page) -> None:
    """From the narrowest telephone to the widest screen nothing has to be scrolled sideways."""
    wide = {}
    for path in PATHS:
        page.goto(f"{journal.url}{path}")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            wide[path, width] = page.evaluate(OVERFLOW)

    assert {place: over for place, over in wide.items() if over > 0} == {}


@pytest.mark.parametrize("width", [1280, *in_ci(1024, 1920, 2560)])
def test_lines_are_of_a_good_length(journal: Journal, page: Page, width: int) -> None:
    """A line of a post has 60 to 75 characters wherever there is room for them."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{journal.url}{POST}")

    assert 60 <= page.evaluate(_CHARACTERS_A_LINE) <= 75


@pytest.mark.parametrize(
    ("path", "width"), [("/", 412), (POST, 1280), *in_ci(*((path, 412) for path in PATHS[1:]))]
)
def test_the_layout_does_not_shift(
    journal: Journal, browser: Browser, path: str, width: int
) -> None:
    """From the first frame to rest nothing changes its place, for a first visit too."""
    context = browser.new_context(viewport={"width": width, "height": 823})
    page = context.new_page()
    page.add_init_script(_WATCH_SHIFTS)
    page.goto(f"{journal.url}{path}", wait_until="networkidle")
    shifts = page.evaluate("window.shifts")
    context.close()

    assert shifts == 0


@pytest.mark.size("ci")
def test_a_scroll_bar_pushes_nothing_aside(
    journal: Journal, browser: Browser, chromium: str
) -> None:
    """The first part of a page stays in place when the rest arrives, even if bars take room."""
    shown = browser.browser_type.launch(
        executable_path=chromium, args=list(ARGUMENTS), ignore_default_args=["--hide-scrollbars"]
    )
    page = shown.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{journal.url}{POST}", wait_until="networkidle")
    begun, whole = [page.evaluate(_PLACES, hidden) for hidden in (True, False)]
    shown.close()

    assert begun == whole
    assert whole[0] > 0


@pytest.mark.size("ci")
def test_the_theme_fonts_are_used(journal: Journal, page: Page) -> None:
    """The roman is fetched first, others where the page has what they are for, and each once."""
    fetched: list[str] = []
    page.on("request", lambda each: fetched.append(each.url) if ".woff2" in each.url else None)
    page.goto(f"{journal.url}{POST}", wait_until="networkidle")
    loaded = page.evaluate(
        "[...document.fonts].filter(face => face.status === 'loaded').map(face => face.family)"
    )

    assert "serif-roman" in fetched[0]
    assert len(fetched) == len(set(fetched))
    assert sum("Fore-edge Serif" in family for family in loaded) == len(fetched)


@pytest.mark.parametrize("path", [POST, *in_ci("/journal/first-edge/")], ids=["long", "short"])
@pytest.mark.parametrize(("width", "height"), [(360, 780), *in_ci((1280, 800), (2560, 1440))])
def test_a_post_has_its_part_of_the_picture_at_its_side(
    journal: Journal, page: Page, path: str, width: int, height: int
) -> None:
    """From the top to the bottom of the window, wherever in the text one is."""
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{journal.url}{path}")
    for place in ("0", "document.body.scrollHeight"):
        page.evaluate(f"scrollTo(0, {place})")
        edge, picture = page.evaluate(_PAINTED)
        assert (edge["top"], edge["bottom"], edge["right"]) == (0, height, width)
        assert picture["top"] <= 0
        assert picture["bottom"] >= height
        assert picture["left"] <= edge["left"]
        assert picture["right"] >= width


@pytest.mark.size("ci")
def test_letters_of_what_follows_wait_until_a_reader_is_near(journal: Journal, page: Page) -> None:
    """After a long text, the titles of others are laid out, and their letters fetched, in time."""
    page.set_viewport_size({"width": 390, "height": 400})
    asked: list[str] = []
    page.on("request", lambda each: asked.append(each.url))
    page.goto(f"{journal.url}{POST}", wait_until="networkidle")
    before = [url for url in asked if "serif-more" in url]
    with page.expect_request("**/serif-more.*"):
        page.mouse.wheel(0, 5000)

    assert before == []
    expect(page.locator(".neighbours")).to_contain_text("Tête-bêche")


@pytest.mark.parametrize("path", [*PATHS[:1], *in_ci(*PATHS[1:])])
@pytest.mark.parametrize("width", [360, 1280])
def test_touch_targets_are_large_enough(
    journal: Journal, page: Page, path: str, width: int
) -> None:
    """Targets outside of the text measure 24 pixels each way (WCAG 2.2, 2.5.8)."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{journal.url}{path}")

    assert page.evaluate(_SMALL_TARGETS) == []


def test_a_post_prints_black_on_white(journal: Journal, page: Page) -> None:
    """A printed post is black on white in any scheme, without chrome, and spells out its links."""
    page.goto(f"{journal.url}{POST}")
    page.get_by_role("button", name="Dark page").click()
    page.emulate_media(media="print")

    assert paper(page) == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    chrome = (".running-head nav", ".contents-list", ".lamp", ".fore-edge", ".copy", ".neighbours")
    for part in chrome:
        expect(page.locator(part).first).to_be_hidden()
    printed_address = (
        "getComputedStyle(document.querySelector('.prose a[href^=http]'), '::after').content"
    )
    assert "https://elsewhere.example/far" in page.evaluate(printed_address)
