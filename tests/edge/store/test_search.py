"""Search in the posts of an edition: what is found and how it is ranked; no text is an error."""

# ruff: noqa: ASYNC240  a test has its event loop to itself

import asyncio
import sqlite3
import string
import tempfile
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_api.db.fts.fts_query import MATCH_END, MATCH_START, MAX_TERMS, has_word, make_fts_query
from edge_api.db.fts.index import (
    MAX_SNIPPET_LENGTH,
    READERS,
    Search,
    build_index,
    open_index,
    open_search,
    update_index,
)
from edge_api.db.problems import Problem
from edge_api.schema.index import SearchText, Segments
from tests.sizes import scaled


def post(slug: str, title: str, prose: str = "", tags: str = "", code: str = "") -> SearchText:
    """Return the text of a post."""
    return SearchText(slug, title, f"About {slug}", tags, prose, code)


POSTS = (
    post("newest", "A plain title", "Nothing but gardens here, and one café."),
    post("build", "Building the site", "How we build a static site quickly.", "tools"),
    post("deploy", "Deploying", "The site is deployed; see `make run` and C++ in file_name.py."),
    post("tagged", "On something else", "No word of it.", "site, Ops"),
    post("mention", "Yet another", "Long text. " * 50 + "A site, once. Running a mile."),
    post("umlaut", "Zwölf Äpfel", "東京で日本語テスト。ภาษาไทยง่าย, 한국어를 и привет"),
    post("operators", "Words", "to be OR not, AND so NEAR the end"),
)


@pytest.fixture(autouse=True)
def lifted_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a search a minute: how long a busy machine takes is not the question here."""
    for limit in ("RUN_SECONDS", "WAIT_SECONDS"):
        monkeypatch.setattr(f"edge_api.db.fts.index.{limit}", 60.0)


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
        *(
            (part, ["umlaut"])
            for part in ("本", "語テ", "本語テス", "で日本語テスト", "ไทย", "국어")
        ),
        ("日語", []),
        ("東京 テスト", ["umlaut"]),
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
    found = await search.search(words, **{"limit": 10, **more})
    await search.close()
    return [(each.slug, spell(each.title), spell(each.snippet)) for each in found.hits]


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

    assert [slug for slug, *_ in await look(texts, "rust compiler")][:2] == ["whole", "half"]


async def test_a_word_as_typed_comes_before_its_other_forms() -> None:
    """Also where they are in the title, and where the stem is that of quite another word."""
    texts = [
        post("general", "Generally speaking", "Generally, a general generates. " * 9),
        post("exact", "Another", "Long text. " * 99 + "Some generics."),
        post("near", "Generic generation", "Nothing else."),
    ]

    found = [slug for slug, *_ in await look(texts, "generics")]
    assert (found[0], set(found)) == ("exact", {"exact", "general", "near"})


async def test_a_whole_word_comes_before_longer_ones() -> None:
    """The last word may be a beginning, but says more where it is a word."""
    texts = [post("longer", "Catalogue", "A catalogue."), post("whole", "Another", "A cat.")]

    assert [slug for slug, *_ in await look(texts, "cat")] == ["whole", "longer"]


async def test_adjacent_words_rank_higher() -> None:
    """As they do in a sentence that somebody remembers."""
    texts = [
        post("apart", "One", "The handling of paper. " + "Text. " * 20 + "An error."),
        post("together", "Two", "A word. " * 20 + "The error handling of paper."),
    ]

    assert [slug for slug, *_ in await look(texts, "error handling")] == ["together", "apart"]


NEAR = (
    post("one", "One", "Marbled things."),
    post("both", "Both", "Marbled or painted things. " * 5),
    post("all", "All", "Text. " * 200 + "Marbled and painted, and gilded too."),
    post("none", "None", "Nothing of the kind."),
)


async def test_where_few_have_all_words_those_with_some_follow() -> None:
    """The more words they have the higher; the count is that of posts with all of them."""
    search = await open_search(NEAR)
    found = await search.search("marbled painted gilded", 10)
    nothing = await search.search("marbled painted unheard", 10)
    parts = [await search.search("marbled painted gilded", 1, offset) for offset in range(4)]
    strict = await search.find("marbled painted gilded", 10)
    await search.close()

    assert (found.total, [each.slug for each in found.hits]) == (1, ["all", "both", "one"])
    assert spell(found.hits[1].snippet).startswith("[Marbled] or [painted]")
    assert (nothing.total, [each.slug for each in nothing.hits][-1]) == (0, "one")
    assert [each.slug for part in parts for each in part.hits] == ["all", "both", "one"]
    assert strict == ["all"]


async def test_no_more_come_near_than_fill_a_page() -> None:
    """And none at all where enough posts have all the words."""
    some = [post(f"some-{number}", "Some", "Marbled.") for number in range(20)]
    search = await open_search([post("all", "All", "Marbled and painted."), *some])
    few = await search.search("marbled painted", 50)
    enough = await search.search("marbled", 50)
    await search.close()

    assert (few.total, len(few.hits)) == (1, 10)
    assert (enough.total, len(enough.hits)) == (21, 21)


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        ("mabled", "marbled"),
        ("marbeld", "marbled"),
        ('"MARBELD" painted', '"marbled" painted'),
        ("marbeld.paintd", "marbled.painted"),
        ("zwolff", "zwolf"),
        ("приветы", "привет"),
        ("marb", None),
        ("marbling", None),
        ("marbled unheard", None),
        ("margled", "marbled"),
        ("mardles", None),
        ("xyzzy", None),
        ("日語", None),
        ("1.2.345678", None),
    ],
)
async def test_a_misspelt_word_gets_one_suggestion(words: str, suggestion: str | None) -> None:
    """From the words of the posts; and what it finds is there at once."""
    search = await open_search([*NEAR, POSTS[5]])
    found = await search.search(words, 10)
    meant = await search.search(suggestion, 10) if suggestion else found
    await search.close()

    assert found.suggestion == suggestion
    assert {each.slug for each in meant.hits} <= {each.slug for each in found.hits}


@pytest.mark.parametrize("words", ["painted c", "7 painted", "painted's", "painted <b>x</b>"])
async def test_a_letter_or_a_possessive_hides_no_post(words: str) -> None:
    """A word of one letter need not be there, and the English genitive is the word itself."""
    search = await open_search(NEAR)
    found = await search.search(words, 10)
    await search.close()

    assert {each.slug for each in found.hits} == {"both", "all"}


async def test_a_slip_of_a_post_is_no_reason_to_suggest_nothing() -> None:
    """A word that one post misspells is rare all the same."""
    many = [post(f"right-{number}", "Right", "We receive.") for number in range(60)]
    names = [post("name", "Name", "Receizel."), post("slip", "Slip", "We recieve.")]
    search = await open_search([*many, *names])
    found = await search.search("recieve", 10)
    name = await search.search("receizel", 10)
    await search.close()

    assert (found.total, found.hits[0].slug, found.suggestion) == (1, "slip", "receive")
    assert (name.total, name.suggestion) == (1, None)


async def test_a_common_word_need_not_be_there() -> None:
    """Unless there is no other, or it is quoted."""
    texts = [post("a", "Binding", "Glue a spine."), post("b", "Other", "How the west was won.")]
    search = await open_search(texts)
    found = [await search.find(words, 5) for words in ("how to glue a spine", "how", '"to" glue')]
    await search.close()

    assert found == [["a"], ["b"], []]


async def test_parts_of_scripts_without_spaces_are_marked() -> None:
    """As they are spelled, whatever the index puts between their letters."""
    texts = [post("a", "日本語", "東京で日本語テスト。")]

    assert await look(texts, "本語") == [("a", "日[本語]", "東京で日[本語]テスト。")]


async def test_findings_are_counted_and_paged(search: Search) -> None:
    """The count is that of all, wherever the part begins and however short it is."""
    whole = await search.search("site", 10)
    parts = [await search.search("site", 2, offset) for offset in (0, 2, 4)]

    assert whole.total == 4
    assert {part.total for part in parts} == {4}
    assert [each for part in parts for each in part.hits] == list(whole.hits)
    assert [each.slug for each in whole.hits] == await search.find("site", 10)
    assert await search.search("...", 10) == (0, (), None)


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
    """It shows where different words are together, and says where it was cut."""
    before, behind = "Lorem ipsum paper. " * 90, "dolor sit amet, edge. " * 90
    text = f"{before}Here the edge of the paper was painted. {behind}"
    ((_, _, snippet),) = await look([post("a", "Title", text)], "edge paper painted")

    assert "the [edge] of the [paper] was [painted]." in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet.replace("[", "").replace("]", "")) <= MAX_SNIPPET_LENGTH + 2
    assert snippet[1] != " "


@pytest.mark.parametrize("text", ["紙" * 20_000, "a" * 20_000, "紙 " * 20_000])
async def test_a_snippet_of_endless_words_is_short(text: str) -> None:
    """Scripts without spaces, and what is no word, are cut like everything else."""
    ((_, _, snippet),) = await look([post("a", "Title", text)], f"{text[:5]}")

    assert 0 < len(snippet.replace("[", "").replace("]", "")) <= MAX_SNIPPET_LENGTH + 2


async def test_marks_cannot_be_forged() -> None:
    """The characters that mark matches internally are removed from the text of a post."""
    forged = f"No {MATCH_START}match{MATCH_END} here, {MATCH_END}{MATCH_START}but edge\x00there"
    texts = [post("a", f"A {MATCH_START}title", forged)]

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
    assert (await search.search(words, 5)).total >= 0
    assert await search.find("garden", 5) == ["newest"]


PIECES = ["AND", "OR", "NOT", "NEAR(", "site", "é", *"\"'*^:+-() "]


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=500))
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_text_becomes_a_valid_query(index: Path, words: str) -> None:
    """Text of any kind, and words and signs of the engine's own language in any order."""
    if not has_word(words):
        return
    question = make_fts_query(words, lambda word: [f"{word}s"])
    assert question.all_as_typed.count(" AND ") < MAX_TERMS
    title, rest = (
        f"title : ({question.all_words})",
        f"({question.all_words}) NOT ({question.all_as_typed})",
    )
    queries = (
        question.all_as_typed,
        question.all_words,
        question.highlight,
        *question.per_word,
        *question.adjacent_words,
    )
    with closing(sqlite3.connect(index)) as connection:
        for query in (*queries, title, rest):
            connection.execute("SELECT slug FROM post WHERE post MATCH ?", (query,)).fetchall()


@pytest.mark.parametrize(
    ("words", "each"),
    [
        ("art smart", ('"art"', '"smart"*')),
        ("smart art", ('"smart"', '"art"*')),
        ('"art"', ('"art"',)),
        ("\u201eart\u201c", ('"art"',)),
        ("\u201cart\u201d", ('"art"',)),
    ],
)
def test_only_the_last_word_may_be_unfinished(words: str, each: tuple[str, ...]) -> None:
    """A word before it that has its last letters is a whole word."""
    assert make_fts_query(words, lambda _: ()).per_word == each


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("the The THE " * 9, '"the"'),
        ("one two one thr", '"one" OR "two" OR "thr"*'),
        ("one two one", '"one" OR "two"'),
        ('"one two" "One Two" two', '"one two" OR "two"*'),
    ],
)
def test_a_repeated_term_is_looked_for_once(words: str, question: str) -> None:
    """It would find the same, and cost as much again."""
    assert make_fts_query(words, lambda _: ()).highlight == question


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of an index."""
    path = tmp_path_factory.mktemp("search") / "posts.db"
    build_index(path, POSTS)
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


async def test_a_full_disk_for_the_index_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If temporary files cannot be made, the index is not opened."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(Problem) as refusal:
        await open_search(POSTS)

    assert refusal.value.code == "unavailable"


def renew(path: Path, texts: Sequence[SearchText]) -> int:
    """Have the index at `path` be that of `texts`; return how many of them were written anew."""
    written = 0

    def read(wanted: Container[bytes]) -> Iterator[SearchText]:
        nonlocal written
        for text in texts:
            if repr(text).encode() in wanted:
                written += 1
                yield text

    update_index(path, [repr(text).encode() for text in texts], read)
    return written


LATER = [post(f"later-{number}", "Same title", "The site, once more.") for number in range(3)]
MANY = [post(f"many-{number}", "Same title", f"Site {number}.") for number in range(80)]


@pytest.mark.parametrize(
    ("first", "then", "written"),
    [
        ((), POSTS, 7),
        (POSTS, (), 0),
        (POSTS, POSTS, 0),
        (POSTS, (*LATER, *POSTS), 3),
        (POSTS, (*POSTS, *LATER), 3),
        (POSTS, (*POSTS[:3], *LATER, *POSTS[3:]), 3),
        (POSTS, (*LATER[:1], *POSTS[1:]), 1),
        (POSTS, (*POSTS[:6], LATER[0]), 1),
        (POSTS, POSTS[2:6], 0),
        (POSTS, POSTS[::-1], 7),  # they cannot keep their numbers
        (
            MANY,
            (*MANY[:40], *(post(f"new-{n}", "Same title", "Site.") for n in range(70)), *MANY[40:]),
            150,
        ),
    ],
)
async def test_a_renewed_index_finds_what_a_new_one_does(
    tmp_path: Path, first: Sequence[SearchText], then: Sequence[SearchText], written: int
) -> None:
    """In the same order and with the same words; what has not changed is not written again."""
    path = tmp_path / "posts.db"
    renew(path, first)
    assert renew(path, then) == written

    renewed, new = await open_index(path), await open_search(then)
    for words in ("site", "same title", "sites buildng", "gardn", "東京", "once nothing run"):
        assert await renewed.find(words, 200) == await new.find(words, 200)
        assert await renewed.search(words, 20) == await new.search(words, 20)
    await renewed.close()
    await new.close()


async def test_an_index_may_be_renewed_again_and_again(tmp_path: Path) -> None:
    """A post that is edited keeps its place; new ones go to the top, and others under them."""
    path, texts = tmp_path / "posts.db", list(POSTS)
    renew(path, texts)
    for number in range(100):
        texts[3] = post("edited", f"Same title {number}", "Site.")
        texts.insert(number % 2, post(f"new-{number}", "Same title", "Site."))
        renew(path, texts)

    renewed, new = await open_index(path), await open_search(texts)
    assert await renewed.find("same title", 200) == await new.find("same title", 200)
    await renewed.close()
    await new.close()


def count_deleted() -> int:
    """Return how many descriptors of deleted search indexes this process has."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one of this list
            found += str(each.readlink()).endswith("posts.db (deleted)")
    return found


async def test_a_search_whose_close_is_cancelled_keeps_no_file_open() -> None:
    """The descriptor of the deleted index is closed though a read is still under way."""
    search = await open_search(POSTS)
    begun, may_end = Event(), Event()

    def wait(_: sqlite3.Connection) -> None:
        begun.set()
        may_end.wait(30)

    before = count_deleted()
    reading = asyncio.create_task(search.call(wait))
    await asyncio.to_thread(begun.wait, 30)
    ending = asyncio.create_task(search.close())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    may_end.set()
    await asyncio.gather(reading, return_exceptions=True)
    await search.close()

    # The readers' connections are closed, too.
    assert count_deleted() == before - READERS - 1
