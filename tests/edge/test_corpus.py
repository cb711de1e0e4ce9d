"""Many posts that people wrote, built and served: every surface names the same ones."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import feedparser  # type: ignore[import-untyped]
import pytest

from edge_api.db.fts.index import open_search
from edge_api.journal.builds import read_index
from edge_api.newsletter.letter import MAX_HTML_OCTETS
from edge_api.schema.index import CURRENT_LINK, INDEX_FILE, PostRecord
from tests.edge.newsletter.letters import read, read_letters, read_part
from tests.edge.newsletter.mail_programs import find_unsupported
from tests.edge.search_questions import OWN_QUESTIONS, QUESTIONS
from tests.shared_material import CORPUS

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

NOW = "2026-11-01T00:00:00Z"
FEED_NEWEST = 50
FOUND_AT_LEAST = 0.93
"""The least share of questions whose answer is among the first three results."""


@pytest.fixture(scope="module")
def corpus_build(tmp_path_factory: pytest.TempPathFactory, build_journal: Any) -> Path:
    """Return a BUILD_DIR with a build of the corpus, or of the project's own few posts."""
    content = CORPUS if CORPUS.is_dir() else Path(__file__).parent / "content"
    output = tmp_path_factory.mktemp("corpus") / "build"
    build_journal(content, output, NOW)
    return output


@pytest.mark.size("ci")
async def test_most_questions_have_their_answer_in_the_first_three(corpus_build: Path) -> None:
    """Those in which a word is misspelt, or not in the post, among them."""
    questions = QUESTIONS if CORPUS.is_dir() else OWN_QUESTIONS
    _, posts = read_index(corpus_build / CURRENT_LINK / INDEX_FILE)
    search = await open_search(posts.texts())
    missed = []
    for words, slugs in questions.items():
        found = await search.search(words, 3)
        if not {finding.slug for finding in found.hits} & set(slugs.split()):
            missed.append(words)
    await search.close()

    assert {slug for slugs in questions.values() for slug in slugs.split()} <= {
        entry.cursor.slug for entry in posts.entries
    }
    assert 1 - len(missed) / len(questions) >= FOUND_AT_LEAST, missed


async def read_text(edge: Any, path: str) -> str:
    """Return a file of the site."""
    async with edge.ask("GET", path) as answer:
        assert answer.status == 200, path
        return str(await answer.text())


@pytest.mark.size("ci")
async def test_every_surface_names_the_same_posts(make_edge: Any, corpus_build: Path) -> None:
    """List, single posts, pages, twins, sitemap, feed and llms.txt agree with each other."""
    async with make_edge(BUILD_DIR=str(corpus_build)) as edge:
        key = await edge.key()
        async with edge.ask("GET", "/api/public/v1/posts", key) as answer:
            listed = await answer.json()
        slugs = [post["slug"] for post in listed["posts"]]
        sitemap = ET.fromstring(await read_text(edge, "/sitemap.xml"))  # noqa: S314  ours
        feed = feedparser.parse(await read_text(edge, "/feed.xml"))
        summary = await read_text(edge, "/llms.txt")
        for post in listed["posts"]:
            await look_at_post(edge, key, post)

    assert listed["count"] == len(slugs) == len(set(slugs)) > 0
    assert set(slugs) == set(slugs_in(location.text or "" for location in sitemap.iter(LOCATION)))
    assert slugs[:FEED_NEWEST] == list(slugs_in(entry.link for entry in feed.entries))
    assert slugs == list(slugs_in(re.findall(r"\]\((\S+?)\)", summary)))


def test_every_letter_is_made_of_what_mail_programs_know(corpus_build: Path) -> None:
    """Elements, attributes and properties are those of the list; each letter is within bounds."""
    for slug, octets in read_letters(corpus_build):
        message = read(octets)
        shown = octets.rpartition(b"\r\n\r\n")[2]
        assert list(find_unsupported(read_part(message, "html"))) == [], slug
        assert len(shown) <= MAX_HTML_OCTETS, slug
        assert max(map(len, octets.split(b"\r\n"))) <= 998, slug
        assert read_part(message, "plain").count("\n") > 5, slug


LOCATION = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"


def slugs_in(addresses: Any) -> Any:
    """Yield the slugs of those addresses that belong to posts, or to their twins."""
    for address in addresses:
        match = re.fullmatch(r"/journal/([^/]+)/(?:index\.md)?", urlsplit(address).path)
        if match and match[1] != "page":
            yield match[1]


async def look_at_post(edge: Any, key: str, listed: dict[str, Any]) -> None:
    """Check one post by itself: what the list says of it, its page and its twin."""
    slug = listed["slug"]
    async with edge.ask("GET", f"/api/public/v1/posts/{slug}", key) as answer:
        assert answer.status == 200
        record = PostRecord.model_validate(post := await answer.json())

    assert {name: post[name] for name in listed} == listed
    assert record.published_at == record.publishedAt
    page = await read_text(edge, f"/journal/{slug}/")
    twin = await read_text(edge, f"/journal/{slug}/index.md")
    assert "<h1" in page
    assert record.content.strip()[:40] in twin
