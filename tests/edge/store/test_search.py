"""Search in the posts of an edition: what is found and how it is ranked; no text is an error."""

# ruff: noqa: ASYNC240  a test has its event loop to itself

import sqlite3
import string
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_api.schema.index import PostRecord
from edge_api.schema.problems import Problem
from edge_api.store.search import TERMS_MOST, Search, build_search, make_question, open_search

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def post(slug: str, title: str, content: str = "", tags: tuple[str, ...] = ()) -> PostRecord:
    """Return a post of which only the searched members matter."""
    return PostRecord.model_validate(
        {
            "slug": slug,
            "title": title,
            "description": f"About {slug}",
            "excerpt": "",
            "publishedAt": NOW,
            "published_at": NOW,
            "updatedAt": NOW,
            "readingMinutes": 1,
            "tags": tags,
            "url": f"https://journal.example/{slug}/",
            "content": content,
            "content_html": "",
        }
    )


POSTS = (
    post("newest", "A plain title", "Nothing but gardens here, and one café."),
    post("build", "Building the site", "How we build a static site quickly.", ("tools",)),
    post("deploy", "Deploying", "The site is deployed; see `make run` and C++ in file_name.py."),
    post("tagged", "On something else", "No word of it.", ("site", "Ops")),
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
    assert await search.find("garden", 5) == ["newest"]


PIECES = ["AND", "OR", "NOT", "NEAR(", "site", "é", *"\"'*^:+-() "]


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_whatever_is_typed_is_a_question_that_the_engine_takes(index: Path, words: str) -> None:
    """Text of any kind, and words and signs of the engine's own language in any order."""
    question = make_question(words)
    assert question.count(" AND ") < TERMS_MOST
    with closing(sqlite3.connect(index)) as connection:
        if question:
            connection.execute("SELECT slug FROM post WHERE post MATCH ?", (question,)).fetchall()


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
