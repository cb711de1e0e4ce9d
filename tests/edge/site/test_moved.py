"""Former addresses on the edge: where they lead, and what the API says of a renamed post."""

from typing import Any

import pytest

from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.small_builds import make_post, point_at, write_build

FILES = {
    "journal/old/index.html": "<title>Moved</title>",
    "2019/old.html": "<title>Moved</title>",
    "journal/new/index.md": "# New\n",
    "404.html": "<p>missing</p>",
    "404.md": "# Missing\n",
    "\u672c/index.html": "<p>book</p>",
    "was/index.html": "<title>Moved</title>",
}
MOVED = {
    "/journal/old/": "/journal/new/",
    "/2019/old.html": "/journal/new/",
    "/was/": "/\u672c/",
}

REDIRECTS = {
    "/?p=12": "/journal/new/",
    "/?p=\u672c&x=a b": "/\u672c/",
    "/index.php?p=3": "/journal/new/",
    "/journal/new/?replytocom=4": "/\u672c/",
}


@pytest.fixture
async def edge(make_edge: Any, tmp_path: Any) -> Any:
    """Return an edge whose build has former addresses."""
    head: dict[str, Any] = {"moved": {**MOVED, **REDIRECTS}, "renamed": {"old": "new"}}
    point_at(tmp_path, write_build(tmp_path, posts=[make_post("new")], files=FILES, **head))
    async with make_edge(BUILD_DIR=str(tmp_path)) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/journal/old/", "/journal/new/"),
        ("/journal/old", "/journal/new/"),
        ("/journal/old/index.html", "/journal/new/"),
        ("/journal/old/index.md", "/journal/new/index.md"),
        ("/journal//old/", "/journal/new/"),
        ("/journal/old/?a=1&b=%20", "/journal/new/?a=1&b=%20"),
        ("/2019/old.html", "/journal/new/"),
        ("/2019/old.md", "/journal/new/index.md"),
        ("/was/", "/%E6%9C%AC/"),
        ("/was/index.md", "/%E6%9C%AC/"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_former_address_is_a_lasting_redirect(
    edge: Any, method: str, path: str, target: str
) -> None:
    """308, in whatever form it was asked for, with its query; also for Markdown."""
    for accept in ("*/*", "text/markdown"):
        async with edge.ask(method, path, headers={"Accept": accept}) as answer:
            assert answer.status == 308
            assert answer.headers["Location"] == target
            assert answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("path", "status", "target"),
    [
        ("/?p=12", 308, "/journal/new/"),
        ("/?p=%31%32", 308, "/journal/new/"),
        ("/?p=%e6%9C%AC&x=a%20b", 308, "/%E6%9C%AC/"),
        ("/index.php?p=3", 308, "/journal/new/"),
        ("/journal/new/?replytocom=4", 308, "/%E6%9C%AC/"),
        ("/?p=1", 200, None),
        ("/?P=12", 200, None),
        ("/?p=12&preview=1", 200, None),
        ("/", 200, None),
        ("/index.php", 404, None),
        ("/?p=12.md", 200, None),
        ("/index.php?p=3.md", 404, None),
        ("/index.php?p=4", 404, None),
        ("/journal/new/?about=x", 200, None),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_former_address_may_depend_on_its_query(
    edge: Any, method: str, path: str, status: int, target: str | None
) -> None:
    """If the query is one of them, also at a page's own path; the query goes no further."""
    async with edge.ask(method, path) as answer:
        assert (answer.status, answer.headers.get("Location")) == (status, target)


async def test_other_methods_are_refused(edge: Any) -> None:
    """A former address is there, so a method that is not for pages is 405."""
    async with edge.ask("POST", "/journal/old/") as answer:
        assert answer.status == 405


async def test_the_missing_page_names_no_former_address(edge: Any) -> None:
    """A path that is close to one gets suggestions of existing pages."""
    headers = {"Accept": "text/markdown"}
    async with edge.ask("GET", "/journal/olds/", headers=headers) as answer:
        assert answer.status == 404
        assert "/journal/old/" not in await answer.text()


async def test_the_api_names_the_new_slug(edge: Any) -> None:
    """A former slug is 404 without a Location, and its sentence says how the post is called."""
    key = await edge.key("posts:read")
    async with edge.ask("GET", "/api/public/v1/posts/old", key) as answer:
        assert answer.status == 404
        assert await answer.json() == {"error": "No post has this slug now: it is `new`"}
        assert "Location" not in answer.headers
    async with edge.ask("GET", "/api/public/v1/posts/older", key) as answer:
        assert await answer.json() == {"error": "No post has this slug"}


async def test_analyze_follows_a_former_address(edge: Any) -> None:
    """It is about the page that is there now."""
    url = "http://journal.test/journal/old/"
    async with edge.ask("POST", "/api/public/v1/analyze", json={"url": url}) as answer:
        assert answer.status == 200, await answer.text()
        assert (await answer.json())["input"]["url"] == "http://journal.test/journal/new/"


async def test_tools_name_the_new_slug(edge: Any) -> None:
    """get_post and fetch say the same as the API, and so does the resource of the old address."""
    agent = Agent(edge, await edge.token(), MODERN)
    for name, member in (("get_post", "slug"), ("fetch", "id")):
        result = await agent.call(name, **{member: "old"})
        assert result["isError"]
        assert "`new`" in result["content"][0]["text"]
    answer = await agent.ask("resources/read", uri="http://journal.test/journal/old/")
    assert "`new`" in answer.body["error"]["message"]
