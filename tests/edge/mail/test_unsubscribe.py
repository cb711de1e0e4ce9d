"""The link in mail: looking changes nothing, one POST unsubscribes, whoever sends it."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import FormData
from selectolax.lexbor import LexborHTMLParser

from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Update
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_UNSUBSCRIBE_TOKENS, SUPPRESSED_EMAILS
from edge_api.http.pages import EdgePages
from edge_api.journal.builds import BuildManager
from edge_api.mail.suppressions import UnsubscribeLinks, mask, suppress, suppression
from tests.edge.domain.conftest import MovableClock, WatchedStore
from tests.edge.engines import open_store
from tests.edge.small_builds import make_post, point_at, write_build

ADDRESS = "Ann.Lee@Example.org"
NOW = "2026-06-01T12:00:00.000000Z"
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


async def rows(edge: Any, table: Table) -> list[Row]:
    """Return every row of a table."""
    (result,) = await edge.service.store.run(Read(table))
    found: list[Row] = result.rows
    return found


async def link_path(edge: Any, address: str = ADDRESS) -> str:
    """Return the link of an address, below the origin."""
    parts = urlsplit(await edge.service[UnsubscribeLinks].link(address))
    return f"{parts.path}?{parts.query}"


async def is_suppressed(edge: Any) -> bool:
    """Return whether anybody is."""
    return bool(await rows(edge, SUPPRESSED_EMAILS))


async def test_a_link_is_one_for_each_address(edge: Any) -> None:
    """However the address is spelled; its secret cannot be guessed."""
    links = edge.service[UnsubscribeLinks]
    link = await links.link(ADDRESS)

    assert link.startswith("http://journal.test/unsubscribe?token=")
    assert len(parse_qs(urlsplit(link).query)["token"][0]) == 64
    assert await links.link("ann.lee@EXAMPLE.org") == link
    assert await links.link("other@example.org") != link
    assert {row["email"] for row in await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)} == {
        "ann.lee@example.org",
        "other@example.org",
    }


async def test_of_many_at_once_one_makes_the_link(edge: Any, store_url: str) -> None:
    """Also in several processes."""
    clock = MovableClock()
    others = [await open_store(store_url, clock) for _ in range(3)]
    makers = [UnsubscribeLinks(each, clock, "https://journal.example") for each in others]
    try:
        made = await asyncio.gather(*(each.link(ADDRESS) for each in makers * 5))
    finally:
        for each in others:
            await each.close()

    assert len(set(made)) == 1
    assert len(await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_opening_the_link_changes_nothing(edge: Any, method: str) -> None:
    """Programs follow links to see whether they are harmless."""
    path = await link_path(edge)
    for _ in range(3):
        async with edge.ask(method, path) as answer:
            assert answer.status == 200

    (token,) = await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)
    assert (token["used_at"], await is_suppressed(edge)) == (None, False)


async def test_the_page_asks_and_does_not_show_the_address(edge: Any) -> None:
    """In the look of the site; neither indexed nor kept by anybody."""
    path = await link_path(edge)
    async with edge.ask("GET", path) as answer:
        page = LexborHTMLParser(await answer.read())
        headers = answer.headers

    assert page.css("h1")[0].text() == "Unsubscribe"
    (form,) = page.css("main form")
    assert (form.attributes["method"], form.attributes["action"]) == ("post", path)
    assert [button.text() for button in form.css("button")] == ["Unsubscribe"]
    assert "a\u2026@example.org" in page.css("main")[0].text()
    assert "ann.lee" not in str(page.html).lower()
    assert page.css('meta[name="robots"]')[0].attributes["content"] == "noindex"
    assert headers["X-Robots-Tag"] == "noindex, nofollow"
    assert headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in headers
    assert "Access-Control-Allow-Origin" not in headers


def multipart() -> FormData:
    """Return the one field in the media type that RFC 8058, section 3.2, prefers."""
    form = FormData(default_to_multipart=True)
    form.add_field("List-Unsubscribe", "One-Click")
    return form


@pytest.mark.parametrize(
    "body",
    [
        {"data": ONE_CLICK},
        {"data": "multipart"},
        {"data": b""},
        {},
        {"json": ONE_CLICK},
        {"data": b"x" * 200_000},
        {"data": ONE_CLICK, "headers": {"Origin": "https://mail.example"}},
        {"data": ONE_CLICK, "headers": {"Sec-Fetch-Site": "cross-site"}},
        {"data": ONE_CLICK, "headers": {"X-API-Key": "made-up"}},
    ],
    ids=lambda body: str(body)[:80],  # the environment of processes holds a test's name
)
async def test_one_post_unsubscribes_at_once(edge: Any, body: dict[str, Any]) -> None:
    """For any body: 200, no redirect, no cookie, no credential; the rest still works."""
    path = await link_path(edge)
    if body.get("data") == "multipart":
        body = {"data": multipart()}
    async with edge.ask("POST", path, **body) as answer:
        assert (answer.status, answer.headers.get("Set-Cookie")) == (200, None)
        assert "You are unsubscribed" in await answer.text()
    async with edge.ask("GET", "/api/public/ping") as answer:
        assert answer.status == 200

    (suppressed,) = await rows(edge, SUPPRESSED_EMAILS)
    (token,) = await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)
    assert (suppressed["email"], suppressed["reason"]) == ("ann.lee@example.org", "unsubscribe")
    assert token["used_at"] == suppressed["created_at"]


async def test_unsubscribing_again_succeeds(edge: Any) -> None:
    """Both the page and the POST say that it was done before."""
    path = await link_path(edge)
    for number in range(3):
        async with edge.ask("POST", path, data=ONE_CLICK) as answer:
            assert answer.status == 200
            assert ("Already unsubscribed" in await answer.text()) is (number > 0)
    async with edge.ask("GET", path) as answer:
        page = LexborHTMLParser(await answer.read())
    assert page.css("h1")[0].text() == "Already unsubscribed"
    assert page.css("main form") == []
    assert len(await rows(edge, SUPPRESSED_EMAILS)) == 1


async def test_many_posts_at_once_suppress_once(edge: Any) -> None:
    """All are answered 200."""
    path = await link_path(edge)

    async def post() -> int:
        async with edge.ask("POST", path, data=ONE_CLICK) as answer:
            return int(answer.status)

    assert await asyncio.gather(*(post() for _ in range(20))) == [200] * 20
    assert len(await rows(edge, SUPPRESSED_EMAILS)) == 1


@pytest.mark.parametrize("query", ["", "?token=", "?token=made-up", "?other=x", "?token=%00"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_link_that_nobody_was_given(edge: Any, method: str, query: str) -> None:
    """200, since nothing is mailed by it, and 404 without a secret; the page says why."""
    await link_path(edge)
    status = 200 if "token=made-up" in query or "%00" in query else 404
    async with edge.ask(method, f"/unsubscribe{query}") as answer:
        assert (answer.status, answer.content_type) == (status, "text/html")
        assert "This link is not known" in await answer.text()
        assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"

    assert not await is_suppressed(edge)


async def test_a_link_works_again_when_an_administrator_has_let_mail_flow(edge: Any) -> None:
    """The row that was deleted comes back; the token says when it was used first."""
    path = await link_path(edge)
    async with edge.ask("POST", path):
        (before,) = await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)
    everyone = (Filter("email", "eq", "ann.lee@example.org"),)
    await edge.service.store.run(Delete(SUPPRESSED_EMAILS, everyone))

    async with edge.ask("GET", path) as answer:
        assert "<form" in await answer.text()
    async with edge.ask("POST", path) as answer:
        assert "You are unsubscribed" in await answer.text()
    assert await is_suppressed(edge)
    assert await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS) == [before]


async def test_unsubscribing_works_when_no_page_can_be_rendered(
    make_edge: Any, tmp_path: Path
) -> None:
    """A mail program must not be told that it failed: the answer is plain text."""
    folder = tmp_path / "builds"
    point_at(folder, write_build(folder, posts=[make_post("a")], files={"index.html": "x"}))
    async with make_edge(BUILD_DIR=str(folder)) as edge:
        path = await link_path(edge)
        with pytest.raises(Problem):
            await EdgePages(edge.service[BuildManager]).render("notice", "x", sentences=[])
        async with edge.ask("GET", path) as answer:
            assert answer.status == 503
        async with edge.ask("POST", path, data=ONE_CLICK) as answer:
            assert (answer.status, answer.content_type) == (200, "text/plain")
            assert await answer.text() == "You are unsubscribed.\n"
        assert await is_suppressed(edge)


async def test_unsubscribing_is_one_transaction(edge: Any) -> None:
    """While the store takes nothing in, the token stays unused; afterwards the link works."""
    path = await link_path(edge)
    watched = WatchedStore(edge.service.store)
    links = UnsubscribeLinks(watched, edge.service.clock, "https://journal.example")
    token = parse_qs(urlsplit(path).query)["token"][0]
    watched.read_only = True
    with pytest.raises(Problem) as caught:
        await links.unsubscribe(token, ADDRESS)
    assert caught.value.code == "unavailable"
    assert [row["used_at"] for row in await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)] == [None]
    assert not await is_suppressed(edge)

    watched.read_only = False
    assert await links.unsubscribe(token, ADDRESS)
    assert await is_suppressed(edge)


async def test_a_suppression_that_fails_leaves_the_token_unused(edge: Any) -> None:
    """Both rows are one transaction: a store that refuses one takes neither."""
    path = await link_path(edge)
    token = parse_qs(urlsplit(path).query)["token"][0]
    late = suppression("x@example.org", "unsubscribe", edge.service.clock())
    refused = Insert(SUPPRESSED_EMAILS, [*late.rows, *late.rows])
    with pytest.raises(Problem):
        await suppress(
            edge.service.store,
            ADDRESS,
            suppression(ADDRESS, "unsubscribe", edge.service.clock()),
            Update(EMAIL_UNSUBSCRIBE_TOKENS, {"used_at": NOW}, (Filter("token", "eq", token),)),
            refused,
        )

    assert [row["used_at"] for row in await rows(edge, EMAIL_UNSUBSCRIBE_TOKENS)] == [None]
    assert not await is_suppressed(edge)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("ann@example.org", "a\u2026@example.org"),
        ("an@example.org", "\u2026@example.org"),
        ("<i>@x.example", "<\u2026@x.example"),
        ('"a@b"@example.org', '"\u2026@example.org'),
    ],
)
def test_an_address_is_masked(address: str, shown: str) -> None:
    """A short one altogether."""
    assert mask(address) == shown
