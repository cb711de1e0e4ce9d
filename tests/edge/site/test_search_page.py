"""The search of a real build over HTTP: the page, its Markdown, and the same as data."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser

from edge_api.journal.builds import BuildManager, PostSearch
from edge_api.schema.index import MAX_QUERY_LENGTH
from tests.edge.small_builds import make_post, point_at, write_build
from tests.page_scripts import has_own_scripts_alone

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PAGE, DATA = "/search", "/api/public/v1/search"
LIST = "/api/public/v1/posts"
HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(2)> \ufdd0forged\ufdd1 {{ 7*7 }}"""
POSTS = 23
"""The number of posts below that have the word `sheet`."""

ODD = [
    "",
    " ",
    "\x00",
    "si\x00te",
    "*",
    "a*",
    "**",
    "(",
    ")",
    "NEAR(",
    "NEAR(a b, 2)",
    "a NEAR b",
    "AND",
    "OR",
    "NOT",
    "a AND",
    "OR b",
    "NOT NOT",
    "title:edge",
    "{title body}:x",
    "-edge",
    '"',
    '""',
    '"""',
    '"a',
    'a"',
    '"a" "',
    "'",
    "''",
    "`",
    "\\",
    "\\\\",
    "/",
    "//",
    "^edge",
    "+a",
    "%",
    "%%",
    "%41",
    "%zz",
    "&",
    "&amp;",
    "&lt;b&gt;",
    "#",
    "?",
    "=",
    ";",
    ":",
    ",",
    ".",
    "...",
    "<",
    ">",
    "<b>",
    "</title>",
    "<!--",
    "-->",
    "]]>",
    "<!-- content -->",
    "<!-- title -->",
    "{{ 7*7 }}",
    "{% raw %}",
    "${7*7}",
    "javascript:alert(1)",
    HOSTILE,
    "'; DROP TABLE post; --",
    "\U0001f4d6",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u2764\ufe0f",
    "\U0010ffff",
    "\u05d0\u05d1\u05d2",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u202eabc",
    "\u2066x",
    "\u200b",
    "\ufeff",
    "\ufffe",
    "\uffff",
    "\ufdd0",
    "\ufdd0edge\ufdd1",
    "\ue000",
    "\x1b[31m",
    "\x7f",
    "a\r\nSet-Cookie: a=b",
    "a\nb",
    "\t",
    "\u2028",
    "\u0301",
    "e\u0301dge",
    "\u00e9" * 500,
    "\u7d19",
    "\u7d19" * 999,
    "a" * 10_000,
    "a " * 5000,
    '"' * 9999,
    "(" * 9000,
    "-" * 9000,
    "edge " * 2000,
    '"edge" ' * 1000,
    "0",
    "-1",
    "1e309",
    "NaN",
    "null",
    "true",
    "../../etc",
    "\u0130",
    "\u00df",
    "\ufb01",
    "\u1e9e",
    "\u0f0b",
    "\u0e01\u0e34",
    "\uac00",
    "\u3042\u30fc",
]


def write_post(folder: Path, slug: str, title: str, body: str, **front: Any) -> None:
    """Write one post of a journal."""
    head = {"title": title, "date": "2026-01-05T09:00:00Z", "slug": slug, **front}
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    text = "\n".join(["---", *lines, "---", "", body, ""])
    (folder / "posts" / f"{slug}.md").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory, build_journal: Callable[..., None]) -> Path:
    """Return a BUILD_DIR with a journal of many posts, some of which mean harm."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "content" / "posts").mkdir(parents=True)
    content = folder / "content"
    for number in range(POSTS - 1):
        write_post(content, f"sheet-{number:02}", f"Number {number}", f"A *sheet* of `{number}`.")
    write_post(content, "about", "Of a sheet", "Nothing **more** [here](https://a.example/).")
    write_post(content, "hostile", f"Bad {HOSTILE}", f"Worse: `{HOSTILE}`", tags=["a&b <i>"])
    write_post(content, "draft", "A secret sheet", "Secret sheet.", status="draft")
    write_post(content, "later", "A secret sheet", "Secret.", date="2026-12-31T09:00:00Z")
    build_journal(content, folder / "build")
    return folder / "build"


@pytest.fixture
async def edge(make_edge: Any, builds: Path) -> Any:
    """Return an edge that serves that journal."""
    async with make_edge(BUILD_DIR=str(builds)) as running:
        yield running


async def look(edge: Any, query: str = "", **headers: str) -> tuple[Any, LexborHTMLParser]:
    """Return the answer and the page."""
    async with edge.ask("GET", f"{PAGE}{query}", headers=headers) as answer:
        return answer, LexborHTMLParser(await answer.text())


async def ask(edge: Any, query: str) -> tuple[int, dict[str, Any]]:
    """Return status and data."""
    async with edge.ask("GET", f"{DATA}{query}") as answer:
        return answer.status, await answer.json()


def found(page: LexborHTMLParser) -> list[str]:
    """Return the addresses of the results."""
    return [link.attributes["href"] or "" for link in page.css(".results h2 a")]


def said(page: LexborHTMLParser) -> str:
    """Return what the page says of how much was found."""
    (status,) = page.css("[role=status]")
    return status.text().strip()


async def test_without_words_there_is_the_form_alone(edge: Any) -> None:
    """It says how to search, and nothing of results."""
    answer, page = await look(edge)

    assert answer.status == 200
    assert page.css("title")[0].text() == "Search \u00b7 Fore-edge"
    assert (page.css("h1")[0].text(), said(page), found(page)) == ("Search", "", [])
    form = page.css("search form")[0].attributes
    assert (form["action"], form.get("method")) == ("/search", None)
    assert page.css('label[for="q"]')
    assert page.css("#q")[0].attributes["maxlength"] == str(MAX_QUERY_LENGTH)
    assert "side by side" in page.css("#search-hint")[0].text()
    assert "hidden" in page.css("#search-help")[0].attributes


async def test_words_are_found_best_first(edge: Any) -> None:
    """A post that has them in its title is first; words are marked, the rest is plain."""
    answer, page = await look(edge, "?q=Sheets")

    assert answer.status == 200
    assert page.css("title")[0].text() == "Search: Sheets \u00b7 Fore-edge"
    assert said(page) == f"{POSTS} posts have these words, best first."
    assert found(page)[0] == "/journal/about/"
    assert page.css("#q")[0].attributes["value"] == "Sheets"
    entry = page.css(".results > li.entry")[1]
    assert re.search(r"A <mark>sheet</mark> of \d+\.", entry.css(".snippet")[0].html or "")
    assert entry.css("time")[0].attributes["datetime"] == "2026-01-05T09:00:00Z"
    assert page.css('meta[name="robots"]')[0].attributes["content"] == "noindex"
    assert page.css('link[rel="canonical"]') == []


async def test_pages_follow_one_another(edge: Any) -> None:
    """Each result is on one page; links lead on and back; a page beyond the last is the last.

    A number that is none is the first.
    """
    seen, query = [], "?q=sheet"
    for number in (1, 2, 3):
        _, page = await look(edge, query)
        assert f"Page {number} of 3" in page.css(".pagination")[0].text()
        assert len(page.css('[rel="prev"]')) == (number > 1)
        seen += found(page)
        onward = [link.attributes["href"] or "" for link in page.css('[rel="next"]')]
        query = onward[0].removeprefix(PAGE) if onward else ""

    assert (len(seen), len(set(seen)), query) == (POSTS, POSTS, "")
    for query, page_number in (
        ("page=99", 3),
        ("page=1000000", 3),
        ("page=" + "9" * 5000, 3),
        ("page=0", 1),
        ("page=x", 1),
        ("page=-1", 1),
    ):
        answer, page = await look(edge, f"?q=sheet&{query}")
        assert answer.status == 200
        assert f"Page {page_number} of 3" in page.css(".pagination")[0].text()


async def test_where_nothing_is_found_there_is_help(edge: Any) -> None:
    """With links to the lists of all posts."""
    answer, page = await look(edge, "?q=xyzzy")

    assert (answer.status, said(page)) == (200, "No post has all of these words.")
    links = {link.attributes["href"] for link in page.css("#search-help:not([hidden]) a")}
    assert links == {"/tags/", "/archive/"}


async def test_a_misspelt_word_is_asked_about_and_found(edge: Any) -> None:
    """On the page, in its Markdown and as data: the same words, with what they find."""
    _, page = await look(edge, "?q=hostle+sheeet&page=1")
    _, data = await ask(edge, "?q=hostle+sheeet")
    async with edge.ask(
        "GET", f"{PAGE}?q=hostle+sheeet", headers={"Accept": "text/markdown"}
    ) as answer:
        text = await answer.text()
    (link,) = page.css("#search-suggestion a")

    assert page.css("#search-suggestion")[0].text().strip() == "Did you mean hostle sheet?"
    assert link.attributes["href"] == "/search?q=hostle+sheet"
    assert (data["count"], data["suggestion"]) == (0, "hostle sheet")
    assert said(page) == "No post has all of these words; 10 come near."
    assert len(found(page)) == len(data["results"]) == 10
    assert "Did you mean [hostle sheet](http://journal.test/search?q=hostle+sheet)?" in text
    assert "No post has all of these words; 10 come near. [Every tag]" in text
    _, page = await look(edge, "?q=sheet")
    assert page.css("#search-suggestion")[0].text() == ""


async def test_posts_with_some_of_the_words_follow(edge: Any) -> None:
    """They are said to come near; the count is that of the posts with all of the words."""
    _, page = await look(edge, "?q=sheet+nothing+more")
    _, data = await ask(edge, "?q=sheet+nothing+more")
    async with edge.ask("GET", "/api/public/v1/posts?q=sheet+nothing", await edge.key()) as answer:
        listed = await answer.json()

    assert said(page) == "1 post has these words; 9 more come near."
    assert found(page)[0] == "/journal/about/"
    assert (data["count"], len(data["results"])) == (1, 10)
    assert [post["slug"] for post in listed["posts"]] == ["about"]


@pytest.mark.parametrize("words", ["secret", "draft", "later"])
async def test_unpublished_posts_are_not_found(edge: Any, words: str) -> None:
    """Neither a draft nor a post of the future, on the page or as data."""
    _, page = await look(edge, f"?q={words}")

    assert found(page) == []
    assert (await ask(edge, f"?q={words}"))[1]["count"] == 0


async def test_no_words_break_the_search(edge: Any) -> None:
    """A hundred odd questions: each is answered with a whole page, and the words are text in it."""
    assert len(ODD) >= 100
    for words in ODD:
        answer, page = await look(edge, f"?q={quote(words, errors='replace')}")
        assert answer.status == 200, words[:40]
        assert len(page.css("h1")) == len(page.css("#q")) == len(page.css("#results")) == 1
        assert has_own_scripts_alone(page)
        assert page.css("main img, main b, main i") == []
        status, data = await ask(edge, f"?q={quote(words, errors='replace')}")
        assert status in (200, 400), words[:40]
        members = ["query", "count", "suggestion", "results"]
        assert list(data) == (members if status == 200 else ["error"])


@pytest.mark.parametrize(
    "query", ["q=%ff", "q=%c3%28", "q=%ed%a0%80", "q=%", "q=%u0041", "q", "&&", "q=a&q=b", "x=1"]
)
async def test_no_query_breaks_the_page(edge: Any, query: str) -> None:
    """Bytes that are not UTF-8, half an escape, the same twice, and what is not known."""
    answer, page = await look(edge, f"?{query}")

    assert (answer.status, len(page.css("#q"))) == (200, 1)


async def test_invalid_utf8_in_the_query_is_accepted(edge: Any) -> None:
    """Invalid bytes are answered with a page or as a malformed request."""
    port = int(edge.url.rpartition(":")[2])
    for raw in (b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\xf0\x9f"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /search?q=" + raw + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        assert head.split()[1] in (b"200", b"400")


async def test_the_text_of_a_post_is_escaped(edge: Any) -> None:
    """A title, a text and a tag that look like markup are shown as they are, and marked as text."""
    _, page = await look(edge, "?q=alert")

    (entry,) = page.css(".results > li.entry")
    assert "<script>alert(1)</script>" in entry.css("h2")[0].text()
    assert "{{ 7*7 }}" in entry.css("h2")[0].text()
    assert [mark.text() for mark in entry.css("h2 mark")] == ["alert", "alert"]
    assert "onerror=alert(2)" in entry.css(".snippet")[0].text()
    assert entry.css(".tag-list li")[0].text() == "a&b <i>"
    assert entry.css("script, img, i") == []
    _, page = await look(edge, "?q=forged")
    assert [mark.text() for mark in page.css(".results h2 mark")] == ["forged"]


async def test_a_long_question_has_a_short_title(edge: Any) -> None:
    """The title says the beginning of it; the field has what counts."""
    _, page = await look(edge, f"?q={'word+' * 400}")

    assert len(page.css("h1")[0].text()) < 80
    assert page.css("h1")[0].text().endswith("\u2026")
    assert len(page.css("#q")[0].attributes["value"] or "") <= 1000


async def test_the_page_is_kept_and_asked_for_again(edge: Any) -> None:
    """A validator brings 304; each form has one of its own; no search engine lists it."""
    answer, _ = await look(edge, "?q=sheet")
    headers = answer.headers

    assert headers["Cache-Control"] == "public, no-cache"
    assert headers["Vary"] == "Accept, Accept-Encoding"
    assert headers["X-Robots-Tag"] == "noindex"
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    again, _ = await look(edge, "?q=sheet", **{"If-None-Match": headers["ETag"]})
    assert again.status == 304
    other, _ = await look(edge, "?q=paper", **{"If-None-Match": headers["ETag"]})
    assert other.status == 200
    plain, _ = await look(edge, "?q=sheet", **{"Accept-Encoding": "identity"})
    assert headers["Content-Encoding"] in ("br", "gzip")
    assert plain.headers["ETag"] != headers["ETag"]


@pytest.mark.parametrize("query", ["", "?q=sheet&page=2"])
async def test_a_slash_behind_leads_to_the_page(edge: Any, query: str) -> None:
    """An address with a slash, like those of built pages, is redirected with the words."""
    async with edge.ask("GET", f"{PAGE}/{query}") as answer:
        assert (answer.status, answer.headers["Location"]) == (301, f"{PAGE}{query}")
    async with edge.ask("OPTIONS", f"{PAGE}/") as answer:
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"


async def test_head_is_a_get_without_its_body(edge: Any) -> None:
    """The same headers for the page, its Markdown and the data."""
    for path, accept in ((PAGE, "*/*"), (PAGE, "text/markdown"), (DATA, "*/*")):
        found = {}
        for method in ("GET", "HEAD"):
            headers = {"Accept": accept, "Accept-Encoding": "identity"}
            async with edge.ask(method, f"{path}?q=sheet", headers=headers) as answer:
                kept = ("Content-Type", "Content-Length", "ETag", "Vary", "Cache-Control")
                found[method] = answer.status, [answer.headers[name] for name in kept]
                assert bool(await answer.read()) == (method == "GET")
        assert found["GET"] == found["HEAD"]


async def test_the_page_comes_as_markdown(edge: Any) -> None:
    """A list of results with the addresses of their Markdown, for clients that prefer it."""
    headers = {"Accept": "text/markdown"}
    async with edge.ask("GET", f"{PAGE}?q=sheet", headers=headers) as answer:
        text = await answer.text()

    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert text.startswith(f"# Search: sheet\n\n{POSTS} posts have these words, best first.")
    address = "http://journal.test/journal/about/index.md"
    assert f"- [Of a sheet]({address}) (2026-01-05): Nothing" in text
    assert "Page 1 of 3" in text
    assert "[More results](http://journal.test/search?q=sheet&page=2)" in text
    async with edge.ask("GET", address.removeprefix("http://journal.test")) as twin:
        assert twin.status == 200


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", "# Search\n"),
        ("?q=xyzzy", "No post has all of these words."),
        ("?q=more", "1 post has these words."),
        ("?q=%5Bx%5D%28y%29%20%23%20*z*", r"# Search: \[x\](y) \# \*z\*"),
        ("?q=alert", r"\<script\>**alert**(1)\</script\>"),
    ],
)
async def test_markdown_says_what_the_page_says(edge: Any, query: str, wanted: str) -> None:
    """For any results, and nothing of them is markup."""
    async with edge.ask("GET", f"{PAGE}{query}", headers={"Accept": "text/markdown"}) as answer:
        assert answer.status == 200
        assert wanted in await answer.text()


async def test_data_says_what_the_page_shows(edge: Any) -> None:
    """The same posts in the same order, in pieces that make up the texts; any origin may ask."""
    _, page = await look(edge, "?q=sheet")
    status, data = await ask(edge, "?q=sheet")

    assert (status, data["query"], data["count"]) == (200, "sheet", POSTS)
    paths = [each["url"].removeprefix("http://journal.test") for each in data["results"]]
    assert paths == found(page)
    first = data["results"][0]
    assert first == {
        "slug": "about",
        "title": "Of a sheet",
        "title_parts": [{"text": "Of a ", "match": False}, {"text": "sheet", "match": True}],
        "snippet": [{"text": "Nothing more here.", "match": False}],
        "url": "http://journal.test/journal/about/",
        "published_at": "2026-01-05T09:00:00Z",
        "reading_minutes": 1,
        "tags": [],
    }
    async with edge.ask("GET", f"{DATA}?q=sheet") as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Cache-Control"] == "public, no-cache"


@pytest.mark.parametrize(
    ("query", "count"),
    [("q=sheet", 10), ("q=sheet&limit=1", 1), ("q=sheet&limit=50", POSTS), ("limit=5", 0), ("", 0)],
)
async def test_data_is_as_long_as_asked_for(edge: Any, query: str, count: int) -> None:
    """Ten unless another limit is given; without words there is nothing."""
    status, data = await ask(edge, f"?{query}")

    assert (status, len(data["results"])) == (200, count)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("q=a&limit=0", "limit: must be 1 or more"),
        ("q=a&limit=51", "limit: must be 50 or less"),
        ("q=a&limit=x", "limit: "),
        (f"q={'a' * 1001}", "q: must have 1000 characters or fewer"),
        ("q=a%00", "q: "),
        ("q=a&q=b", "q: is given more than once"),
    ],
)
async def test_bad_parameters_are_refused(edge: Any, query: str, message: str) -> None:
    """A program gets its name, and what it must be."""
    status, data = await ask(edge, f"?{query}")

    assert (status, list(data)) == (400, ["error"])
    assert data["error"].startswith(message)


async def test_searches_are_limited(make_edge: Any, builds: Path) -> None:
    """For one address page and data count together; the refusal is a page, or an Error."""
    async with make_edge(BUILD_DIR=str(builds), RATE_SEARCH="2/minute") as edge:
        assert (await look(edge, "?q=sheet"))[0].status == 200
        assert (await ask(edge, "?q=sheet"))[0] == 200
        status, data = await ask(edge, "?q=sheet")
        answer, page = await look(edge, "?q=sheet")

    assert (status, list(data)) == (429, ["error"])
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert page.css("h1")[0].text() == "This did not work"


async def test_a_post_is_found_from_the_moment_of_its_build(make_edge: Any, tmp_path: Path) -> None:
    """Posts that a swap adds are found, and those that it removes are not."""
    posts = [make_post("old"), make_post("new", -1, content_html="<p>Marbled <b>paper</b>.</p>")]
    point_at(tmp_path, write_build(tmp_path, "build-0001", posts[:1]))
    async with make_edge(BUILD_DIR=str(tmp_path)) as edge:
        assert [(await ask(edge, f"?q={word}"))[1]["count"] for word in ("paper", "old")] == [0, 1]
        etag = (await _head(edge, "?q=paper"))["ETag"]
        point_at(tmp_path, write_build(tmp_path, "build-0002", posts[1:]))
        await edge.service[BuildManager].refresh()

        assert [(await ask(edge, f"?q={word}"))[1]["count"] for word in ("paper", "old")] == [1, 0]
        assert (await _head(edge, "?q=paper"))["ETag"] != etag


async def test_results_are_cached_while_the_build_is_served(make_edge: Any, tmp_path: Path) -> None:
    """The index is asked once by many, for each form and each number; the next build is asked."""
    paths = [f"{path}?q=ink&limit={limit}" for path in (DATA, LIST) for limit in (5, 6)]
    paths.append(f"{PAGE}?q=ink")
    asked: list[str] = []
    point_at(tmp_path, write_build(tmp_path, "build-0001", [make_post("ink")]))
    async with make_edge(BUILD_DIR=str(tmp_path)) as edge:
        builds, key = edge.service[BuildManager], await edge.key()

        async def read_all() -> set[str]:
            answers = await asyncio.gather(*(_text(edge, path, key) for path in 3 * paths))
            return set(answers)

        search = cast("PostSearch", Counted(builds.build().search, asked))
        builds.current = replace(builds.build(), search=search)
        first = await read_all()
        assert await read_all() == first
        assert len(asked) == len(paths)

        point_at(tmp_path, write_build(tmp_path, "build-0002", [make_post("ink", title="New")]))
        await builds.refresh()
        assert not await read_all() & first


class Counted:
    """A search that notes what it is asked."""

    def __init__(self, search: PostSearch, asked: list[str]) -> None:
        self._search, self._asked = search, asked

    def __getattr__(self, name: str) -> Any:
        """Return a method, and note that it was wanted."""
        self._asked.append(name)
        return getattr(self._search, name)


async def _text(edge: Any, path: str, key: str) -> str:
    markdown = {"Accept": "text/markdown, */*;q=0.1"}
    async with edge.ask("GET", path, key, headers=markdown) as answer:
        assert answer.status == 200
        return str(await answer.text())


async def _head(edge: Any, query: str) -> Any:
    async with edge.ask("HEAD", f"{DATA}{query}") as answer:
        return answer.headers


async def test_without_a_build_the_search_says_so(make_edge: Any, tmp_path: Path) -> None:
    """503, with a time to come again."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        for path in (PAGE, DATA):
            async with edge.ask("GET", f"{path}?q=a") as answer:
                assert (answer.status, "Retry-After" in answer.headers) == (503, True)


@pytest.mark.parametrize("path", [PAGE, DATA, "/api/public/v1/posts"])
async def test_a_search_ends_with_its_client(edge: Any, path: str) -> None:
    """An abandoned search leaves its place in the queue; the next one is served."""
    release, key = Event(), await edge.key()
    search = edge.service[BuildManager].build().search
    holding = [asyncio.create_task(search.call(lambda _: release.wait(30))) for _ in range(2)]

    def count_reads() -> int:
        return int(search._readers.load)  # noqa: SLF001  to see who waits

    try:
        await asyncio.sleep(0)
        asking = asyncio.create_task(_read(edge, f"{path}?q=sheet", key))
        await _until(lambda: count_reads() == 3)
        asking.cancel()
        await _until(lambda: count_reads() == 2)
    finally:
        release.set()
        await asyncio.gather(*holding)
    assert await _read(edge, f"{path}?q=sheet", key) == 200


async def test_an_empty_query_is_no_error(edge: Any) -> None:
    """As data too: a form that is sent empty is no error."""
    assert await ask(edge, "?q=") == await ask(edge, "")
    assert (await ask(edge, "?q="))[0] == 200


async def test_the_page_names_its_other_form_and_what_describes_the_site(edge: Any) -> None:
    """In links of its head, as every page does."""
    answer, _ = await look(edge, "?q=sheet+of&page=2")
    links = ", ".join(answer.headers.getall("Link"))

    assert '</search?q=sheet+of&page=2>; rel="alternate"; type="text/markdown"' in links
    assert '</llms.txt>; rel="describedby"; type="text/plain"' in links
    assert 'rel="api-catalog"' in links


@pytest.mark.parametrize("accepted", ["text/markdown", "text/markdown;variant=GFM"])
async def test_errors_are_markdown_on_request(make_edge: Any, builds: Path, accepted: str) -> None:
    """The limit with its headers, and a wrong method; others have the page."""
    async with make_edge(BUILD_DIR=str(builds), RATE_SEARCH="1/hour") as edge:
        await look(edge, "?q=sheet", Accept=accepted)
        for method, status, name in (("GET", 429, "Retry-After"), ("PUT", 405, "Allow")):
            headers = {"Accept": accepted}
            async with edge.ask(method, f"{PAGE}?q=sheet", headers=headers) as answer:
                assert (answer.status, answer.content_type) == (status, "text/markdown")
                assert answer.headers["Vary"] == "Accept"
                assert name in answer.headers
                assert (await answer.text()).startswith("# This did not work\n\n")
        answer, page = await look(edge, "?q=sheet")
        assert (answer.status, answer.content_type) == (429, "text/html")
        assert len(page.css("h1")) == 1


async def _read(edge: Any, path: str, key: str) -> int:
    async with edge.ask("GET", path, key) as answer:
        await answer.read()
        return int(answer.status)


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came to be")


@pytest.mark.parametrize("path", [PAGE, DATA, "/api/public/v1/posts"])
async def test_too_many_searches_are_refused(
    edge: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 503, and when to come again."""
    monkeypatch.setattr("edge_api.db.fts.index.MAX_READS", 0)
    async with edge.ask("GET", f"{path}?q=sheet", await edge.key()) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert "Too many searches are under way" in await answer.text()
