"""Posts over HTTP, on a real build: the list, its parts, one post, and what is refused."""

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import brotli
import pytest
from aiohttp import ClientResponse, ClientSession

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PATH = "/api/public/v1/posts"
ALL = ["marbled-paper", "sewing-and-folding", "first-edge"]


async def get(edge: Any, path: str, key: str, **headers: str) -> tuple[ClientResponse, Any]:
    """Return an answer and its JSON, if it has a body."""
    async with edge.ask("GET", path, key, headers=headers) as answer:
        raw = await answer.read()
    return answer, json.loads(raw) if raw else None


@pytest.fixture
async def key(edge: Any) -> str:
    """Return a key that may read posts and nothing else."""
    return str(await edge.key("posts:read"))


async def test_the_list_has_every_public_post(edge: Any, key: str) -> None:
    """Without parameters the whole list comes, newest first, each post in both field sets."""
    answer, body = await get(edge, PATH, key)

    assert (answer.status, answer.content_type) == (200, "application/json")
    assert [post["slug"] for post in body["posts"]] == ALL
    assert body["count"] == 3
    assert "next" not in body
    for post in body["posts"]:
        assert post["publishedAt"] == post["published_at"]
        assert post["published_at"].endswith("Z")
        assert datetime.fromisoformat(post["updatedAt"]) >= datetime.fromisoformat(
            post["publishedAt"]
        )
        assert post["description"]
        assert post["readingMinutes"] >= 1
        assert "content" not in post


async def test_an_excerpt_is_the_description_unless_set(edge: Any, key: str) -> None:
    """Only a post with an excerpt of its own has another than its description."""
    _, body = await get(edge, PATH, key)
    posts = {post["slug"]: post for post in body["posts"]}

    assert posts["first-edge"]["excerpt"] == posts["first-edge"]["description"]
    assert posts["sewing-and-folding"]["excerpt"] == "A folded sheet is where a book begins."


async def test_one_post_has_its_text(edge: Any, key: str) -> None:
    """A single post adds its Markdown and its HTML to what the list says of it."""
    _, listed = await get(edge, PATH, key)
    answer, post = await get(edge, f"{PATH}/first-edge", key)

    assert answer.status == 200
    assert {**listed["posts"][2], **post} == post
    assert set(post) - set(listed["posts"][2]) == {"content", "content_html"}
    assert "**fore-edge**" in post["content"]
    assert "<strong>fore-edge</strong>" in post["content_html"]


@pytest.mark.parametrize("slug", ["a-draft", "not-yet", "nothing", "First-Edge", "%00", "a%2Fb"])
async def test_unpublished_posts_are_not_found(edge: Any, key: str, slug: str) -> None:
    """A draft, a post of the future and no post at all look the same."""
    answer, body = await get(edge, f"{PATH}/{slug}", key)

    assert answer.status == 404
    assert list(body) == ["error"]


async def test_nothing_unpublished_is_found_by_any_question(edge: Any, key: str) -> None:
    """Neither list, tag nor search shows a word of a draft or of a post of the future."""
    for query in ("", "?tag=secret-tag", "?q=unpublished", "?q=nobody", "?since=2026-06-01"):
        async with edge.ask("GET", f"{PATH}{query}", key) as answer:
            text = await answer.text()
        assert answer.status == 200
        assert not any(word in text for word in ("UNPUBLISHED", "secret", "a-draft", "not-yet"))


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ("limit=2", ALL[:2]),
        ("limit=1000", ALL),
        ("tag=paper", ["marbled-paper", "first-edge"]),
        ("tag=PAPER&limit=1", ["marbled-paper"]),
        ("tag=none", []),
        ("q=painted", ["first-edge"]),
        ("q=a+sheet", ALL[:2]),
        ("q=%22holes+are%22", ["sewing-and-folding"]),
        ("q=xyzzy", []),
        ("q=%22", []),
        ("q=%E7%B4%99", ["sewing-and-folding"]),
        ("since=2026-02-10T09:00:00Z", ALL[:2]),
        ("since=2026-02-10T10:00:00%2B01:00", ALL[:2]),
        ("since=2026-02-10T09:00:00.000001Z", ALL[:1]),
        ("since=2026-02-11", ALL[:1]),
        ("since=9999-12-31", []),
        ("tag=bindings&q=fold&since=2026-01-01&limit=5", ["sewing-and-folding"]),
        ("unknown=1", ALL),
        ("unknown=1&unknown=2&limit=1", ALL[:1]),
    ],
)
async def test_a_part_of_the_list(edge: Any, key: str, query: str, slugs: list[str]) -> None:
    """Each parameter narrows the list, together they all hold; an unknown one is ignored."""
    answer, body = await get(edge, f"{PATH}?{query}", key)

    assert answer.status == 200
    assert ([post["slug"] for post in body["posts"]], body["count"]) == (slugs, len(slugs))


async def test_parts_follow_one_another(edge: Any, key: str) -> None:
    """`next` and the Link header lead through the whole list, with the question kept."""
    path, seen = f"{PATH}?limit=1&q=a&since=2026-01-01", []
    for _ in range(5):
        answer, body = await get(edge, path, key)
        seen += [post["slug"] for post in body["posts"]]
        if "next" not in body:
            break
        path = body["next"]
        assert answer.headers["Link"] == f'<{path}>; rel="next"'
        asked = parse_qs(urlsplit(path).query)
        assert (asked["limit"], asked["q"]) == (["1"], ["a"])
        assert asked.keys() == {"limit", "q", "since", "cursor"}

    assert "Link" not in answer.headers
    _, whole = await get(edge, f"{PATH}?q=a", key)
    assert seen == [post["slug"] for post in whole["posts"]]
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "limit: must be 1 or more"),
        ("limit=1001", "limit: must be 1000 or less"),
        ("limit=-1", "limit: must be 1 or more"),
        ("limit=", "limit: is not an integer"),
        ("limit=ten", "limit: is not an integer"),
        ("limit=1.0", "limit: is not an integer"),
        ("limit=1e2", "limit: is not an integer"),
        ("limit=%201", "limit: is not an integer"),
        ("limit=1_0", "limit: is not an integer"),
        ("limit=" + "9" * 5000, "limit: is not an integer"),
        ("limit=1&limit=1", "limit: is given more than once"),
        ("cursor=", "cursor: is not one"),
        ("cursor=abc", "cursor: is not one"),
        ("cursor=2026-01-01T00:00:00.000000Z", "cursor: is not one"),
        ("cursor=2026-01-01T00:00:00.000000Z_a%0A", "cursor: is not one"),
        ("cursor=2026-01-01T00:00:00.000000Z_" + "a" * 300, "cursor: must have 300"),
        ("tag=", "tag: must have 1 character or more"),
        ("tag=%00", "tag: must not contain NUL"),
        ("tag=a&tag=b", "tag: is given more than once"),
        ("q=", "q: must have 1 character or more"),
        ("q=" + "a" * 1001, "q: must have 1000 characters or fewer"),
        ("q=a%00", "q: must not contain NUL"),
        ("since=yesterday", "since: is not an instant"),
        ("since=2026-02-30", "since: is not an instant"),
        ("since=1760000000", "since: is not an instant"),
    ],
)
async def test_a_bad_value_is_named(edge: Any, key: str, query: str, message: str) -> None:
    """A value that cannot be is refused with the name of its parameter and the fix."""
    answer, body = await get(edge, f"{PATH}?{query}", key)

    assert answer.status == 400
    assert list(body) == ["error"]
    assert body["error"].startswith(message)


PUZZLES = [*"\"'*\\", "a AND", "NOT", "a OR (b", "title:a", "a*", "^a", "-a", "{a}", "NEAR(a b)"]


@pytest.mark.parametrize("words", [*PUZZLES, "\U0001f600", "a" * 1000, "a\nb", "\t"])
async def test_no_words_break_the_search(edge: Any, key: str, words: str) -> None:
    """Any text is searched as words."""
    async with edge.ask("GET", PATH, key, params={"q": words}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", [PATH, f"{PATH}/first-edge", f"{PATH}?limit=2"])
async def test_an_unchanged_answer_is_not_sent_again(edge: Any, key: str, path: str) -> None:
    """The validator of an answer, weak or in a list, gives 304 without a body."""
    answer, _ = await get(edge, path, key)
    etag = answer.headers["ETag"]
    assert etag.startswith('"')
    assert answer.headers["Cache-Control"] == "private, no-cache"

    for condition in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        again, body = await get(edge, path, key, **{"If-None-Match": condition})
        assert (again.status, body) == (304, None)
        assert again.headers["ETag"] == etag
        assert "Content-Length" not in again.headers
    other, _ = await get(edge, path, key, **{"If-None-Match": '"x"'})
    assert other.status == 200


@pytest.mark.parametrize(
    ("coding", "decode"), [("br", brotli.decompress), ("gzip", gzip.decompress)]
)
async def test_an_answer_may_be_compressed(edge: Any, key: str, coding: str, decode: Any) -> None:
    """A compressed answer holds the same bytes, and has a validator of its own."""
    plain, body = await get(edge, PATH, key, **{"Accept-Encoding": "identity"})
    headers = {"X-API-Key": key, "Accept-Encoding": coding}
    async with (
        ClientSession(auto_decompress=False) as session,
        session.get(f"{edge.url}{PATH}", headers=headers) as answer,
    ):
        raw = await answer.read()

    assert answer.headers["Content-Encoding"] == coding
    assert json.loads(decode(raw)) == body
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["ETag"] != plain.headers["ETag"]


async def test_head_says_the_same_without_a_body(edge: Any, key: str) -> None:
    """HEAD answers as GET does, but for the body."""
    got, _ = await get(edge, PATH, key)
    async with edge.ask("HEAD", PATH, key) as answer:
        assert await answer.read() == b""

    assert answer.status == 200
    for name in ("ETag", "Content-Length", "Content-Type", "Cache-Control"):
        assert answer.headers[name] == got.headers[name]


@pytest.mark.parametrize("path", [PATH, f"{PATH}/first-edge", f"{PATH}/missing"])
async def test_posts_need_a_key_that_may_read_them(edge: Any, path: str) -> None:
    """Without a credential 401, without the scope 403, whether or not there is such a post."""
    async with edge.ask("GET", path) as answer:
        assert answer.status == 401
        assert "WWW-Authenticate" in answer.headers
    async with edge.ask("GET", path, await edge.key("leads:read")) as answer:
        assert answer.status == 403


async def test_without_a_build_posts_are_unavailable(make_edge: Any, tmp_path: Path) -> None:
    """An edge without a build starts, says when to come again, and readiness fails."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        answer, body = await get(edge, PATH, await edge.key())
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert body == {"error": "The journal is not built yet"}
        async with edge.ask("GET", "/api/public/v1/readiness") as readiness:
            assert readiness.status == 503
