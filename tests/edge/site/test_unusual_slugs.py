"""Slugs of any script, with capitals and signs, and hidden posts, at each door of the edge."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import pytest

from site_build.content.kept import KEPT_FILE
from site_build.releases.release import BuildOptions, build
from tests.edge.mcp.agents import MODERN, Agent

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

ORIGIN = "http://journal.test"
POSTS = "/api/public/v1/posts"
SLUGS = (
    "\u65e5\u672c\u8a9e",
    "\u00dcber_v1.0~x",
    "Kr\u00e1k\u00f3w",
    "-a.b",
    "\u0915\u093f-2",
    "CAPS",
)
HEAD = "---\ntitle: Post {0}\nslug: {1}\ndate: 2026-0{0}-01\naliases: [former-\u00e4-{0}]\n---\n\n"


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    """Return the builds of a journal with these slugs, and a hidden post and page."""
    content = tmp_path / "content"
    (content / "pages").mkdir(parents=True)
    for number, slug in enumerate(SLUGS, 1):
        text = f"{HEAD.format(number, slug)}Words, as in [all](/journal/{SLUGS[0]}/) others.\n"
        (content / f"{number}.md").write_text(text, encoding="utf-8")
    (content / "hidden.md").write_text(
        "Title: Unlisted words\nDate: 2026-01-01\nSlug: unlisted\nTags: whisper\nCategory: Cellar\n"
        "Author: Nobody Else\nStatus: Hidden\nAliases: unseen\n\nSecretive words.\n"
    )
    (content / "pages" / "aside.md").write_text("Title: Aside\nStatus: hidden\n\nAside words.\n")
    now = datetime(2026, 12, 1, tzinfo=UTC)
    build(BuildOptions(content, tmp_path / "builds", ORIGIN, now, jobs=1))
    return tmp_path / "builds"


async def test_each_interface_serves_an_unusual_slug(make_edge: Any, builds: Path) -> None:
    """Page, Markdown, API, redirects, feeds, sitemap and resources have one address each."""
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        key, agent = await edge.key("posts:read"), Agent(edge, await edge.token(), MODERN)
        listed = {each["uri"] for each in (await agent.ask("resources/list")).result["resources"]}
        sitemap = await read(edge, "/sitemap.xml")
        entries = re.findall("<id>(.*?)</id>", await read(edge, "/feed.xml"))
        feed = {each["url"] for each in json.loads(await read(edge, "/feed.json"))["items"]}
        for number, slug in enumerate(SLUGS, 1):
            path = f"/journal/{quote(slug)}/"
            uri, former = f"{ORIGIN}{path}", quote(f"former-\u00e4-{number}")
            assert f'<link rel="canonical" href="{uri}">' in await read(edge, path)
            assert "Words" in await read(edge, f"{path}index.md")
            async with edge.ask("GET", f"{POSTS}/{quote(slug)}", key) as answer:
                post = await answer.json()
                assert (answer.status, post["slug"], post["url"]) == (200, slug, uri)
            for other, status in (
                (path[:-1], 301),
                (f"/journal/{former}/", 308),
                (f"/journal/{quote(normalize('NFD', slug))}/", 301),
            ):
                if other != path:
                    assert await follow(edge, other) == (status, path), other
            assert uri in listed
            (text,) = (await agent.ask("resources/read", uri=uri)).result["contents"]
            assert text["uri"] == uri
            assert f"<loc>{uri}</loc>" in sitemap
            assert f"{ORIGIN}/journal/{former}/" in entries
            assert uri in feed
            assert await status_of(edge, f"/cards/{quote(slug)}.png") == 200
            has_case = slug.swapcase() != slug
            status = await status_of(edge, f"/journal/{quote(slug.swapcase())}/")
            assert status == (404 if has_case else 200)
        pages = [await read_json(edge, f"{POSTS}?limit=1", key)]
        while "next" in pages[-1]:
            pages.append(await read_json(edge, pages[-1]["next"], key))
        assert [post["slug"] for page in pages for post in page["posts"]] == list(SLUGS)[::-1]


async def test_a_hidden_text_has_a_page_and_nothing_else(make_edge: Any, builds: Path) -> None:
    """No list, feed, search, sitemap, index or tag has it, and its page says `noindex`."""
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        key = await edge.key("posts:read")
        for path in ("/journal/unlisted/", "/aside/"):
            assert '<meta name="robots" content="noindex">' in await read(edge, path)
            assert "words." in await read(edge, f"{path}index.md")
        assert '"robots"' not in await read(edge, "/journal/CAPS/")
        assert await follow(edge, "/journal/unseen/") == (308, "/journal/unlisted/")
        assert await status_of(edge, "/cards/unlisted.png") == 200
        assert await status_of(edge, f"{POSTS}/unlisted", key) == 404
        assert (await read_json(edge, f"{POSTS}?q=secretive", key))["count"] == 0
        for path in ("/tags/whisper/", "/authors/nobody-else/"):
            assert await status_of(edge, path) == 404
        site = builds / "current" / "site"
        own = {site / "journal" / "unlisted", site / "aside", site / "journal" / "unseen"}
        kept = builds / "current" / KEPT_FILE  # nobody is served this one
        for file in {*(builds / "current").rglob("*")} - {kept}:
            if file.suffix in {".html", ".md", ".xml", ".json", ".txt"} and file.parent not in own:
                text = file.read_text(encoding="utf-8")
                assert "nlisted words" not in text, file
                assert "Secretive" not in text, file
                assert "/aside" not in text, file


async def read(edge: Any, path: str) -> str:
    """Return the text that answers at a path, which is sent as it is."""
    async with edge.ask("GET", path) as answer:
        assert answer.status == 200, path
        return str(await answer.text())


async def read_json(edge: Any, path: str, key: str) -> Any:
    """Return an answer of the API."""
    async with edge.ask("GET", path, key) as answer:
        assert answer.status == 200, path
        return await answer.json()


async def status_of(edge: Any, path: str, key: str | None = None) -> int:
    """Return the status at a path."""
    async with edge.ask("GET", path, key) as answer:
        return int(answer.status)


async def follow(edge: Any, path: str) -> tuple[int, str]:
    """Return where a path leads, and how."""
    async with edge.ask("GET", path) as answer:
        return answer.status, answer.headers.get("Location", "")
