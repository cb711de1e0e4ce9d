"""Search in the posts of an edition: what is found and how it is ranked; no text is an error."""

# ruff: noqa: ASYNC240  a test has its event loop to itself

import sqlite3
import string
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_api.schema.problems import Problem
from edge_api.schema.search import SearchText, Segments
from edge_api.store.search import SNIPPET_LONGEST, Search, build_search, open_search
from edge_api.store.search.marks import CLOSING, OPENING
from edge_api.store.search.question import TERMS_MOST, make_question


def post(slug: str, title: str, prose: str = "", tags: str = "", code: str = "") -> SearchText:
    """Return the text of a post."""
    return SearchText(slug, title, f"About {slug}", tags, prose, code)


POSTS = (
    post("newest", "A plain title", "Nothing but gardens here, and one café."),
    post("build", "Building the site", "How we build a static site quickly.", "tools"),
    post("deploy", "Deploying", "The site is deployed; see `make run` and C++ in file_name.py."),
    post("tagged", "On something else", "No word of it.", "site, Ops"),
    post("mention", "Yet another", "Long text. " * 50 + "A site, once. Running a mile."),
    post("umlaut", "Zwölf Äpfel", "日本語 テスト и привет"),
    post("operators", "Words", "to be OR not, AND so NEAR the end"),
)


@pytest.fixture
async def search() -> AsyncIterator[Search]:
    """Return the search in POSTS."""
    opened = await open_search(POSTS)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.mark.parametrize(
    ("words", "slugs"),
    [
        ("site", ["build", "tagged", "deploy", "mention"]),
        ("SITE", ["build", "tagged", "deploy", "mention"]),
        ("sites", ["build", "tagged", "deploy", "mention"]),
        ("building", ["build"]),
        ("build quick", ["build"]),
        ("quickly build", ["build"]),
        ("site garden", []),
        ("garden", ["newest"]),
        ("gard", ["newest"]),
        ("gard plain", []),
        ("cafe", ["newest"]),
        ("CAFÉ", ["newest"]),
        ("g", []),
        ("é", []),
        ("e\u0301", []),
        ("ж", []),
        ("п", []),
        ("static s", []),
        ("static-s", []),
        ("日", ["umlaut"]),
        ("zwolf", ["umlaut"]),
        ("äpfel", ["umlaut"]),
        ("приве", ["umlaut"]),
        ("日本語", ["umlaut"]),
        ('"static site"', ["build"]),
        ('"site static"', []),
        ('quickly "static site"', ["build"]),
        ('"static site" quic', ["build"]),
        ('"static site', ["build"]),
        ('"gard"', []),
        ("file_name", ["deploy"]),
        ("file_name.py", ["deploy"]),
        ("make run", ["deploy"]),
        ("c++", ["deploy"]),
        ('"ops"', ["tagged"]),
        ("OR", ["operators"]),
        ("be OR not", ["operators"]),
        ("NEAR(the", ["operators"]),
        ("title:site", []),
        ("-site", ["build", "tagged", "deploy", "mention"]),
        ("^site", ["build", "tagged", "deploy", "mention"]),
        ("slug", []),
        ("", []),
        ("   ", []),
        ("...", []),
        ('""', []),
        ('"', []),
        ("* ( ) : ^ + - { } ,", []),
        ("site ...", ["build", "tagged", "deploy", "mention"]),
    ],
)
async def test_words_are_found(search: Search, words: str, slugs: list[str]) -> None:
    """All of them, by their stem, in any case; the last may be half; the title counts most."""
    assert await search.find(words, 10) == slugs


def spell(segments: Segments) -> str:
    """Return a text with brackets around its matches."""
    return "".join(f"[{text}]" if is_match else text for text, is_match in segments)


async def look(texts: Iterable[SearchText], words: str, **more: int) -> list[tuple[str, str, str]]:
    """Return slug, title and snippet of each finding."""
    search = await open_search(texts)
    found = await search.look_up(words, **{"limit": 10, **more})
    await search.close()
    return [(each.slug, spell(each.title), spell(each.snippet)) for each in found.findings]


async def test_a_title_is_far_above_a_text() -> None:
    """However often and however briefly another post says the word, and whoever else tags it."""
    texts = [
        post("chant", "Another", "Edge, edge. " * 400, tags="edge"),
        post("brief", "Yet another", "Edge."),
        *(post(f"filler-{number}", "Something", "Nothing to see.") for number in range(9)),
        post("about", "The edge of a book", "A long text about paper. " * 300),
    ]

    assert [slug for slug, *_ in await look(texts, "edge")] == ["about", "chant", "brief"]


async def test_all_words_in_the_title_come_first() -> None:
    """Also where most posts have one of the words, so that it tells nothing by itself."""
    texts = [
        post("half", "Compiler, compiler", "Rust and the compiler. " * 20),
        *(post(f"rust-{number}", "Rust", "Nothing else.") for number in range(9)),
        post("whole", "The Rust compiler", "Text. " * 200),
    ]

    assert [slug for slug, *_ in await look(texts, "rust compiler")] == ["whole", "half"]


async def test_findings_are_counted_and_paged(search: Search) -> None:
    """The count is that of all, wherever the part begins and however short it is."""
    whole = await search.look_up("site", 10)
    parts = [await search.look_up("site", 2, offset) for offset in (0, 2, 4)]

    assert whole.total == 4
    assert {part.total for part in parts} == {4}
    assert [each for part in parts for each in part.findings] == list(whole.findings)
    assert [each.slug for each in whole.findings] == await search.find("site", 10)
    assert await search.look_up("...", 10) == (0, ())


async def test_the_words_are_marked_in_title_and_text() -> None:
    """As they are spelled there: by their stem, without their accents, from their beginning."""
    texts = [post("a", "Cafés of the sixties", "One café; two cafes. Cafeteria!")]

    assert await look(texts, "cafe") == [
        ("a", "[Cafés] of the sixties", "One [café]; two [cafes]. [Cafeteria]!")
    ]
    assert await look(texts, '"two cafes"') == [
        ("a", "Cafés of the sixties", "One café; [two cafes]. Cafeteria!")
    ]


@pytest.mark.parametrize(
    ("words", "snippet"),
    [
        ("prose", "The [prose] of it."),
        ("both", "About [both]"),
        ("listing", "print([listing])"),
        ("title", "About both"),
        ("tagged", "About both"),
    ],
)
async def test_a_snippet_is_of_the_text_that_has_the_words(words: str, snippet: str) -> None:
    """Prose before description before code; the description where none of them has any."""
    texts = [post("both", "A title", "The prose of it.", "tagged", "print(listing)")]

    ((_, _, shown),) = await look(texts, words)
    assert shown == snippet


async def test_a_snippet_is_short_and_shows_the_most_words() -> None:
    """It stands where different words stand together, and says where it was cut."""
    before, behind = "Lorem ipsum paper. " * 90, "dolor sit amet, edge. " * 90
    text = f"{before}Here the edge of the paper was painted. {behind}"
    ((_, _, snippet),) = await look([post("a", "Title", text)], "edge paper painted")

    assert "the [edge] of the [paper] was [painted]." in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet.replace("[", "").replace("]", "")) <= SNIPPET_LONGEST + 2
    assert snippet[1] != " "


@pytest.mark.parametrize("text", ["紙" * 20_000, "a" * 20_000, "紙 " * 20_000])
async def test_a_snippet_of_endless_words_is_short(text: str) -> None:
    """Scripts without spaces, and what is no word, are cut like everything else."""
    ((_, _, snippet),) = await look([post("a", "Title", text)], f"{text[:5]}")

    assert 0 < len(snippet.replace("[", "").replace("]", "")) <= SNIPPET_LONGEST + 2


async def test_marks_cannot_be_forged() -> None:
    """The signs that stand for marks inside are taken out of what a post says."""
    forged = f"No {OPENING}match{CLOSING} here, {CLOSING}{OPENING}but edge\x00there"
    texts = [post("a", f"A {OPENING}title", forged)]

    assert await look(texts, "edge") == [("a", "A title", "No match here, but [edge] there")]


async def test_no_more_are_found_than_asked_for(search: Search) -> None:
    """The best come first."""
    assert await search.find("site", 2) == ["build", "tagged"]


async def test_of_equals_the_newer_comes_first() -> None:
    """That is the order in which posts went in."""
    search = await open_search([post(f"post-{number}", "Same title") for number in (3, 1, 2)])
    found = await search.find("same", 10)
    await search.close()

    assert found == ["post-3", "post-1", "post-2"]


@pytest.mark.parametrize(
    "words",
    [
        "\x00",
        "si\x00te",
        "\ud800 site",
        '"' * 999,
        '"a' * 50_000,
        "site " * 20_000,
        "(" * 100_000,
        "a" * 100_000,
        "a-" * 50_000,
        "NOT " * 1000,
        "a AND (b OR",
        "'; DROP TABLE post; --",
        'x" OR slug:"build',
        "\u0301\u0301",
        "\U0001e900",
        "\u200b\ufeff\u202e",
        string.punctuation,
    ],
)
async def test_hostile_text_finds_something_or_nothing(search: Search, words: str) -> None:
    """It is never an error, and the search goes on working."""
    assert isinstance(await search.find(words, 5), list)
    assert (await search.look_up(words, 5)).total >= 0
    assert await search.find("garden", 5) == ["newest"]


PIECES = ["AND", "OR", "NOT", "NEAR(", "site", "é", *"\"'*^:+-() "]


@settings(max_examples=500)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_whatever_is_typed_is_a_question_that_the_engine_takes(index: Path, words: str) -> None:
    """Text of any kind, and words and signs of the engine's own language in any order."""
    question = make_question(words)
    assert question.count(" AND ") < TERMS_MOST
    with closing(sqlite3.connect(index)) as connection:
        for asked in (question, f"title : ({question})") if question else ():
            connection.execute("SELECT slug FROM post WHERE post MATCH ?", (asked,)).fetchall()


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("the The THE " * 9, '"the"'),
        ("one two one thr", '"one" AND "two" AND "thr"*'),
        ("one two one", '"one" AND "two"'),
        ('"one two" "One Two" two', '"one two" AND "two"*'),
    ],
)
def test_a_repeated_term_is_looked_for_once(words: str, question: str) -> None:
    """It would find the same, and cost as much again."""
    assert make_question(words) == question


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of an index."""
    path = tmp_path_factory.mktemp("search") / "posts.db"
    build_search(path, POSTS)
    return path


async def test_an_edition_without_posts_finds_nothing() -> None:
    """A journal may be empty."""
    search = await open_search([])
    found = await search.find("site", 5)
    await search.close()

    assert found == []


async def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index has no name from the moment on that it serves: a crash leaves nothing behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    search = await open_search(POSTS)

    assert list(tmp_path.iterdir()) == []
    assert await search.find("garden", 5) == ["newest"]
    await search.close()


async def test_two_editions_do_not_mix() -> None:
    """Each has a file of its own, and closing one leaves the other."""
    old = await open_search([post("old", "Garden")])
    new = await open_search([post("new", "Garden")])
    assert (await old.find("garden", 5), await new.find("garden", 5)) == (["old"], ["new"])
    await old.close()
    await old.close()

    assert await new.find("garden", 5) == ["new"]
    with pytest.raises(Problem) as refusal:
        await old.find("garden", 5)
    assert refusal.value.code == "unavailable"
    await new.close()


async def test_a_disk_without_room_for_the_index_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where temporary files cannot be made, the edition is not opened."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(Problem) as refusal:
        await open_search(POSTS)

    assert refusal.value.code == "unavailable"
