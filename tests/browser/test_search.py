"""The search in a real browser, with its script and without: what a reader sees and hears."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import brotli
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Journal, serve, settle
from tests.edge.edge_process import ROOT, Installation, free_port
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

DATA = "**/api/public/v1/search**"
SCRIPT_MOST = 3 * 1024
"""Bytes of the script, brotli."""
SOON_MS = 2000
"""Milliseconds of the page's clock: longer than the pause after a letter, less than the timeout."""
BEHIND = "/robots.txt"
"""The address that `come_back` requests."""
HOSTILE = '<script>window.hurt=1</script>"><img src=x onerror="window.hurt=2"> forged'


def open_search(page: Page, journal: Journal, words: str = "") -> list[str]:
    """Open the search; return what the browser complains about from now on."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{journal.url}/search" + (f"?q={words}" if words else ""))
    settle(page)
    return complaints


def results(page: Page) -> list[str]:
    """Return the addresses of the results."""
    return [link.get_attribute("href") or "" for link in page.locator(".results h2 a").all()]


def expect_status(page: Page, sentence: str | re.Pattern[str]) -> None:
    """Wait until the live region has this text."""
    expect(page.get_by_role("status")).to_have_text(sentence)


def come_back(page: Page) -> None:
    """Let the page request something and get it: all earlier answers have been shown by then."""
    page.evaluate(f"fetch('{BEHIND}').then(answer => answer.text()).then(() => null)")


def test_without_scripts_the_form_asks_for_a_page(journal: Journal, browser: Browser) -> None:
    """Words, Enter, results; and where there are none, a way on."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{journal.url}/search")
        page.get_by_label("Words").fill("sheet")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?q=sheet")
        assert results(page) == ["/journal/sewing-and-folding/", "/journal/marbled-paper/"]
        assert page.locator("mark").count() >= 2

        page.get_by_label("Words").fill("xyzzy")
        page.get_by_role("button", name="Search").click()
        expect_status(page, "No post has all of these words.")
        assert page.get_by_role("main").get_by_role("link", name="the archive").is_visible()


@pytest.mark.parametrize("width", [360, *in_ci(1280)])
def test_nothing_moves_while_somebody_types(journal: Journal, browser: Browser, width: int) -> None:
    """The field stays in its place, whatever is found, and help is below the count."""
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        open_search(page, journal)
        field = page.get_by_label("Words")
        before = field.bounding_box()
        for words in ("xyzzy", "xyzzy " + "and many more " * 8):
            field.fill(words)
            expect(page.locator("h1")).to_have_text(f"Search: {words.strip()}")
            expect_status(page, "No post has all of these words.")
            assert field.bounding_box() == before

        count, helping = page.get_by_role("status").bounding_box(), page.locator("#search-help")
        below = helping.bounding_box()
        assert count
        assert below
        assert below["y"] >= count["y"] + count["height"]


def test_results_come_as_somebody_types(journal: Journal, page: Page) -> None:
    """Without a page being loaded; address and titles follow, the focus stays in the field."""
    complaints = open_search(page, journal)
    page.evaluate("window.isTheSame = true")
    field = page.get_by_label("Words")
    field.press_sequentially("shee")
    expect_status(page, "2 posts have these words, best first.")

    assert results(page) == ["/journal/sewing-and-folding/", "/journal/marbled-paper/"]
    assert page.url == f"{journal.url}/search?q=shee"
    assert page.title().startswith("Search: shee \u00b7 ")
    assert page.locator("h1").inner_text() == "Search: shee"
    expect(field).to_be_focused()
    field.fill("painted")
    expect_status(page, "1 post has these words.")
    field.fill("xyzzy")
    expect_status(page, "No post has all of these words.")
    expect(page.locator("#search-help")).to_be_visible()
    field.fill("")
    expect_status(page, "")
    assert (results(page), page.url) == ([], f"{journal.url}/search")
    expect(page.locator("#search-help")).to_be_hidden()
    assert page.evaluate("window.isTheSame") is True
    assert complaints == []


@pytest.mark.size("ci")
def test_a_zero_character_is_no_word(journal: Journal, page: Page) -> None:
    """Only a script can put one into the field; what is found is what the page itself finds."""
    complaints = open_search(page, journal)
    page.evaluate("""() => {
      const field = document.getElementById("q");
      field.value = "sheet\\0";
      field.dispatchEvent(new Event("input"));
    }""")
    expect(page.locator(".results h2 a")).to_have_count(2)

    assert complaints == []


def test_script_and_service_make_the_same_page(journal: Journal, page: Page) -> None:
    """Results of typed words equal those of a loaded page, to the last element and attribute."""
    open_search(page, journal, "edge")
    loaded = markup(page)
    page.get_by_label("Words").fill("")
    expect(page.locator(".results > li")).to_have_count(0)
    page.get_by_label("Words").fill("edge")
    expect(page.locator(".results > li")).not_to_have_count(0)

    assert markup(page) == loaded


@pytest.mark.parametrize("words", ["shete", *in_ci("painted shete", "painted colours")])
def test_script_and_service_say_the_same_of_what_comes_near(
    journal: Journal, page: Page, words: str
) -> None:
    """The number of posts, and another spelling, which links to its results."""
    open_search(page, journal, words)
    loaded = [page.locator(name).inner_html() for name in ("#search-count", "#search-suggestion")]
    count = page.locator(".results > li").count()
    page.get_by_label("Words").fill("")
    expect(page.locator(".results > li")).to_have_count(0)
    expect(page.locator("#search-suggestion")).to_be_empty()
    page.get_by_label("Words").fill(words)
    expect(page.locator(".results > li")).to_have_count(count)

    assert [
        page.locator(name).inner_html() for name in ("#search-count", "#search-suggestion")
    ] == loaded
    assert "come" in loaded[0]
    if "shete" in words:
        page.get_by_role("link", name="sheet", exact=False).first.click()
        page.wait_for_url(f"**/search?q={words.replace('shete', 'sheet').replace(' ', '+')}")


def markup(page: Page) -> str:
    """Return the results' markup without the space between elements."""
    return re.sub(r">\s+<", "><", page.locator("#results").inner_html()).strip()


@pytest.mark.size("ci")
def test_typing_fast_sends_few_requests(journal: Journal, page: Page) -> None:
    """One question for words that are typed without a pause, and what is late counts no more."""
    asked: list[str] = []
    held: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route.request.url)
        if "q=painted" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    page.clock.install()
    open_search(page, journal)
    page.route(DATA, hold)
    field = page.get_by_label("Words")
    with page.expect_request(DATA):
        field.press_sequentially("painted")
    field.fill("sheet")
    expect_status(page, "2 posts have these words, best first.")
    for route in held:
        route.fulfill(json={"query": "painted", "count": 9, "results": []})
    page.clock.run_for(SOON_MS)
    come_back(page)

    expect_status(page, "2 posts have these words, best first.")
    assert len(results(page)) == 2
    assert len(asked) < len("painted") + len("sheet")


@pytest.mark.size("ci")
def test_ime_composition_sends_no_request(journal: Journal, page: Page) -> None:
    """An input method's unfinished letters are no question; what comes of them is."""
    page.clock.install()
    open_search(page, journal)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.get_by_label("Words").focus()
    session = page.context.new_cdp_session(page)
    session.send(
        "Input.imeSetComposition", {"selectionStart": 2, "selectionEnd": 2, "text": "\u304b\u307f"}
    )
    page.clock.run_for(SOON_MS)
    come_back(page)
    assert BEHIND in asked
    assert not [path for path in asked if "search" in path]
    session.send("Input.insertText", {"text": "\u7d19"})

    expect_status(page, "1 post has these words.")
    assert results(page) == ["/journal/sewing-and-folding/"]


@pytest.mark.size("ci")
def test_back_and_forward_lead_from_search_to_search(journal: Journal, page: Page) -> None:
    """A page of results is gone back to; what was typed meanwhile is one step, not one a letter."""
    open_search(page, journal, "painted")
    field = page.get_by_label("Words")
    field.press("End")
    for _ in "painted":
        field.press("Backspace")
    field.press_sequentially("sheet", delay=200)
    expect_status(page, "2 posts have these words, best first.")
    page.go_back()
    expect_status(page, "1 post has these words.")
    assert (field.input_value(), page.url) == ("painted", f"{journal.url}/search?q=painted")
    page.go_forward()
    expect_status(page, "2 posts have these words, best first.")
    assert field.input_value() == "sheet"

    page.locator(".results h2 a").first.click()
    page.wait_for_url("**/journal/**")
    page.go_back()
    expect_status(page, "2 posts have these words, best first.")
    assert len(results(page)) == 2


def test_offline_the_results_stay(journal: Journal, page: Page) -> None:
    """The page says what is wrong, shows what it had, and goes on when it can."""
    open_search(page, journal, "sheet")
    page.context.set_offline(True)
    field = page.get_by_label("Words")
    field.fill("painted")
    expect_status(page, "The connection failed: try again.")
    assert len(results(page)) == 2
    assert page.url == f"{journal.url}/search?q=sheet"

    page.context.set_offline(False)
    field.press("Enter")
    expect_status(page, "1 post has these words.")
    assert results(page) == ["/journal/first-edge/"]


@pytest.mark.size("ci")
def test_a_search_without_an_answer_times_out(journal: Journal, page: Page) -> None:
    """After ten seconds the page says that the connection failed; the results stay."""
    page.clock.install()
    open_search(page, journal, "sheet")
    page.route(DATA, lambda _: None)
    with page.expect_request(DATA):  # from before the words: the clock goes on by itself too
        page.get_by_label("Words").fill("painted")
        page.clock.run_for(1_000)
    page.clock.run_for(10_000)

    expect_status(page, "The connection failed: try again.")
    assert len(results(page)) == 2


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (429, "Too many searches from here: try again in 7 seconds."),
        (503, "The search failed: try again in 7 seconds."),
        (502, "The search failed: try again in 7 seconds."),
    ],
)
def test_a_rate_limit_is_explained_with_its_time(
    journal: Journal, page: Page, status: int, sentence: str
) -> None:
    """With the time that the service gives; the results stay."""
    open_search(page, journal, "sheet")
    refusal = {"status": status, "headers": {"Retry-After": "7"}, "body": "<h1>No</h1>"}
    page.route(DATA, lambda route: route.fulfill(**refusal))
    page.get_by_label("Words").fill("painted")

    expect_status(page, sentence)
    assert len(results(page)) == 2


@pytest.mark.size("ci")
def test_the_message_of_the_rate_limit_is_shown(journal: Journal, page: Page) -> None:
    """The page shows the service's own message."""
    port = free_port()
    store = f"sqlite:///{journal.installation.folder}/{port}/edge.db"
    url = f"http://127.0.0.1:{port}"
    changed = {"PORT": str(port), "SITE_URL": journal.url, "DATABASE_URL": store}
    limited: Installation = journal.installation.changed(**changed, RATE_SEARCH="1/minute")
    with limited.serving():
        page.goto(f"{url}/search?q=sheet")
        settle(page)
        page.get_by_label("Words").fill("painted")
        expect_status(
            page, re.compile(r"^Too many searches from here: try again in \d+ seconds\.$")
        )
        assert len(results(page)) == 2


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a journal whose one post means harm wherever it can."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "content" / "posts").mkdir(parents=True)
    quoted = json.dumps(HOSTILE)
    head = f"title: {quoted}\ndate: 2026-01-05T09:00:00Z\nslug: bad\ntags: [{quoted}]\n"
    text = f"---\n{head}description: {quoted}\n---\n\nText `{HOSTILE}` \ufdd0x\ufdd1.\n"
    (folder / "content" / "posts" / "bad.md").write_text(text, encoding="utf-8")
    with serve(folder, folder / "content") as served:
        yield served.url


@pytest.mark.parametrize("scripts", [True, False], ids=["typed", "loaded"])
def test_words_that_look_like_markup_are_text(
    hostile: str, browser: Browser, *, scripts: bool
) -> None:
    """Those of posts and of readers: nothing runs, nothing is loaded, all of it can be read."""
    with browser.new_context(java_script_enabled=scripts) as context:
        page = context.new_page()
        loaded: list[str] = []
        page.on("request", lambda request: loaded.append(request.url))
        page.goto(f"{hostile}/search")
        if scripts:
            settle(page)
        page.get_by_label("Words").fill(HOSTILE)
        if not scripts:
            page.keyboard.press("Enter")
        expect_status(page, "1 post has these words.")
        entry = page.locator(".results > li")

        assert HOSTILE in entry.locator("h2").inner_text()
        assert HOSTILE in entry.locator(".tag-list").inner_text()
        assert page.locator("h1").inner_text().startswith(f"Search: {HOSTILE[:40]}")
        assert page.locator("main img").count() == 0
        assert not any(url.endswith("/x") for url in loaded)
        assert not scripts or page.evaluate("window.hurt") is None


def test_the_search_works_with_the_keyboard_alone(journal: Journal, page: Page) -> None:
    """From the field to the first result with Tab, and into it with Enter."""
    open_search(page, journal)
    page.get_by_label("Words").focus()
    page.keyboard.type("painted")
    expect_status(page, "1 post has these words.")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".results h2 a")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/journal/first-edge/")


@pytest.mark.size("ci")
def test_the_live_region_changes_only_with_its_words(journal: Journal, page: Page) -> None:
    """The live region is there from the start, and changes with its words."""
    open_search(page, journal)
    page.evaluate(
        """() => {
          window.said = [];
          const region = document.querySelector("[role=status]");
          new MutationObserver(() => window.said.push(region.textContent))
            .observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )
    field = page.get_by_label("Words")
    for words in ("shee", "sheet", "sheets"):
        field.fill(words)
        page.wait_for_url(f"**/search?q={words}")

    assert page.evaluate("window.said") == ["2 posts have these words, best first."]


@pytest.mark.parametrize("scheme", ["light", *in_ci("dark")])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_fits_and_is_whole(
    journal: Journal, browser: Browser, width: int, scheme: str
) -> None:
    """Nothing is wider than the screen, marks differ from the text, and there are no errors."""
    viewport = {"width": width, "height": 800}
    with browser.new_context(viewport=viewport, color_scheme=scheme) as context:  # type: ignore[arg-type]
        page = context.new_page()
        complaints = open_search(page, journal, f"edge%20{'w' * 200}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        page.get_by_label("Words").fill("edge")
        expect_status(page, re.compile("posts? ha"))
        wide = max(wide, page.evaluate("document.documentElement.scrollWidth"))
        mark = page.locator("mark").first.evaluate("node => getComputedStyle(node).backgroundColor")

    assert complaints == []
    assert wide <= width
    assert mark not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 0)")


@pytest.mark.size("ci")
def test_words_typed_before_the_script_loads_are_searched(journal: Journal, page: Page) -> None:
    """It comes after the first paint, and over a slow line a good while after."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/theme/search.*.js", hold)
    with page.expect_request("**/theme/search.*.js"):
        page.goto(f"{journal.url}/search")
    page.get_by_label("Words").fill("painted")
    come_back(page)
    assert results(page) == []

    held[0].continue_()

    expect_status(page, "1 post has these words.")


def test_the_script_is_small() -> None:
    """As the browser gets it."""
    script = (ROOT / "theme" / "static" / "search.js").read_bytes()
    assert len(brotli.compress(script)) <= SCRIPT_MOST


def test_an_agent_of_the_browser_finds_a_tool(journal: Journal, agent_page: Page) -> None:
    """It says what it is for and what it takes, and is called without a person's doing."""
    agent_page.goto(f"{journal.url}/search")
    settle(agent_page)
    (tool,) = agent_page.evaluate(
        "async () => (await document.modelContext.getTools())"
        ".map(({name, description, inputSchema}) => ({name, description, inputSchema}))"
    )

    assert tool["name"] == "search_journal"
    assert tool["description"]
    assert list(tool["inputSchema"]["properties"]) == ["q"]
    assert "side by side" in tool["inputSchema"]["properties"]["q"]["description"]


@pytest.mark.size("ci")
def test_an_agent_gets_results_as_data(journal: Journal, agent_page: Page) -> None:
    """And the person sees the same."""
    agent_page.goto(f"{journal.url}/search")
    settle(agent_page)
    said = agent_page.evaluate(
        """async () => {
          const [tool] = await document.modelContext.getTools();
          return String(await document.modelContext.executeTool(tool, {q: "painted"}));
        }"""
    )
    expect_status(agent_page, "1 post has these words.")
    found = json.loads(said)

    assert found["count"] == 1
    assert found["results"][0]["url"] == f"{journal.url}/journal/first-edge/"
    assert "painted" in found["results"][0]["snippet"]
