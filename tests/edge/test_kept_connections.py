"""Several requests on one connection: each gets the answer of its own time, in order."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from edge_api.auth.keys import Keys
from edge_api.health import Health
from edge_api.journal.builds import BuildManager
from edge_api.leads.input import LeadInput
from edge_api.leads.service import Leads, Sender
from tests.edge.raw_http import Answer, connect
from tests.edge.site.test_swaps import publish

POSTS = "/api/public/v1/posts"
LEAD = LeadInput(name="Ann", email="ann@example.org", budget_tier="x", message="May we talk?")
OWN = ("Date", "X-Request-ID", "RateLimit")
"""Headers that differ from answer to answer."""


def get(path: str, *lines: str) -> bytes:
    """Return a request."""
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: x", *lines, "", "")).encode()


def common(answer: Answer) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return what two answers to the same request share."""
    headers = [(name, value) for name, value in answer.headers.items() if name not in OWN]
    return answer.status, answer.body, headers


async def test_a_revoked_key_opens_nothing_more(edge: Any) -> None:
    """A revocation counts from the next request on, however often the last one came."""
    secret = await edge.key()
    keys = Keys(edge.service.store, edge.service.clock)
    (row,) = await keys.all()
    request = get(f"{POSTS}/first-edge", f"X-API-Key: {secret}")
    async with connect(edge.url) as connection:
        assert [(await connection.ask(request)).status for _ in range(3)] == [200] * 3
        await keys.revoke(row["id"])
        assert (await connection.ask(request)).status == 401


async def test_leads_are_given_again_until_the_store_changes(edge: Any) -> None:
    """Lists and rows that are asked for again are those that are there now."""
    leads, rows = "/api/public/v1/leads?limit=5", "/api/public/v1/admin/leads?select=name,message"
    key = f"X-API-Key: {await edge.key()}"
    async with connect(edge.url) as connection:
        for number in range(3):
            for path, name in ((leads, "leads"), (rows, "")):
                answers = [await connection.ask(get(path, key)) for _ in range(5)]
                found = [json.loads(answer.body) for answer in answers]
                assert [len(each[name] if name else each) for each in found] == [number] * 5
                assert len({str(common(answer)) for answer in answers}) == 1
            await edge.service[Leads].create(LEAD, Sender(None, "192.0.2.1"))


async def test_rows_come_again_only_in_the_form_that_was_asked_for(edge: Any) -> None:
    """A request for a count, or for CSV, gets that each time."""
    path, key = "/api/public/v1/admin/leads", f"X-API-Key: {await edge.key()}"
    ways = ("Prefer: count=exact", "Accept: text/csv", "Accept: application/json")
    await edge.service[Leads].create(LEAD, Sender(None, "192.0.2.1"))
    async with connect(edge.url) as connection:
        for _ in range(4):
            counted, table, plain = [await connection.ask(get(path, key, way)) for way in ways]
            assert counted.headers["Content-Range"] == "0-0/1"
            assert table.body.startswith(b"id,name,")
            assert plain.headers["Content-Range"] == "0-0/*"
            assert json.loads(plain.body)[0]["name"] == LEAD.name


async def test_a_new_build_is_shown_at_once(make_edge: Any, tmp_path: Path) -> None:
    """Cached answers of the last build are dropped with it."""
    builds = tmp_path / "builds"
    publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        key = f"X-API-Key: {await edge.key()}"
        requests = [get("/"), get("/journal/p-1/"), get(POSTS, key), get(f"{POSTS}/p-1", key)]
        async with connect(edge.url) as connection:
            before = [await connection.ask(each) for _ in range(3) for each in requests]
            publish(builds, 2)
            await edge.service[BuildManager].refresh()
            after = [await connection.ask(each) for _ in range(3) for each in requests]
    assert all(b"build-0001" in answer.body for answer in before)
    assert all(b"build-0002" in answer.body for answer in after)


async def test_a_connection_that_is_to_end_ends(edge: Any) -> None:
    """`Connection: close` is honoured each time, and sent to everybody while the service drains."""
    async with connect(edge.url) as kept:
        for _ in range(3):
            await kept.ask(get("/"))
        for _ in range(3):
            async with connect(edge.url) as connection:
                await connection.ask(get("/"))
                assert (await connection.ask(get("/", "Connection: close"))).closes
                assert await connection.is_closed()
        edge.service[Health].start_draining()
        assert (await kept.ask(get("/"))).closes
        assert await kept.is_closed()


async def test_a_body_is_never_taken_for_a_request(edge: Any) -> None:
    """The announced body belongs to its head, even if it is the bytes of a request."""
    home = get("/")
    async with connect(edge.url) as connection:
        head = get("/journal/first-edge/", f"Content-Length: {len(home)}")
        assert b"first" in (await connection.ask(head)).body
        connection.writer.write(home)
        await connection.writer.drain()
        await asyncio.sleep(0.1)
        assert (await connection.ask(get("/api/public/ping"))).body.startswith(b"{")


@pytest.mark.parametrize("before", [b"", get("/api/public/ping")])
async def test_pieces_are_put_together(edge: Any, before: bytes) -> None:
    """The end of a head may look like a request, also behind a whole one: it is its end."""
    home = get("/")
    async with connect(edge.url) as connection:
        connection.writer.write(before + b"GET /api/public/ping HTTP/1.1\r\nX-Odd: ")
        await connection.writer.drain()
        if before:
            await connection.answer()
        await asyncio.sleep(0.1)
        assert (await connection.ask(home)).body.startswith(b"{")
        assert (await connection.ask(home)).body.startswith(b"<!DOCTYPE")


async def test_answers_keep_their_order(edge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request behind one that takes longer waits for its turn."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    report = Health.report

    async def slowly(self: Health) -> dict[str, Any]:
        begun.set()
        await may_end.wait()
        return await report(self)

    monkeypatch.setattr(Health, "report", slowly)
    home = get("/")
    async with connect(edge.url) as connection:
        connection.writer.write(get("/api/public/v1/readiness"))
        await begun.wait()
        connection.writer.write(home)
        await connection.writer.drain()
        await asyncio.sleep(0.1)
        may_end.set()
        assert b"checks" in (await connection.answer()).body
        page = (await connection.answer()).body
        connection.writer.write(home + get("/api/public/ping") + home)
        bodies = [(await connection.answer()).body for _ in range(3)]
    assert page == bodies[0] == bodies[2]
    assert bodies[1].startswith(b"{")


async def test_bare_line_feeds_end_nothing(edge: Any) -> None:
    """Nobody sees two requests where the service sees one: such bytes are refused."""
    async with connect(edge.url) as connection:
        odd = b"GET /api/public/ping HTTP/1.1\nHost: x\n\n" + get("/")
        assert (await connection.ask(odd)).status == 400
        assert await connection.is_closed()
