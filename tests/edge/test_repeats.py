"""Requests that come again in the same bytes: answered as if they were read."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from edge_api.domain.health import Health
from edge_api.domain.keys import Keys
from edge_api.domain.lead_input import LeadInput
from edge_api.domain.leads import Sender
from edge_api.web import repeats, site
from edge_api.web.files import answer_file
from edge_api.web.routes import Routes
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


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of the requests that have been read, as they are."""
    paths: list[str] = []
    find = Routes.find

    def spy(self: Any, url: Any) -> Any:
        paths.append(url.raw_path)
        return find(self, url)

    monkeypatch.setattr(Routes, "find", spy)
    return paths


@pytest.mark.parametrize(
    ("path", "lines", "status"),
    [
        ("/", [], 200),
        ("/", ["Accept-Encoding: br"], 200),
        ("/", ["Accept: text/markdown"], 200),
        ("/", ["Range: bytes=2-9"], 206),
        ("/journal/first-edge/", [], 200),
        ("/docs/", ["Accept-Encoding: gzip"], 200),
        ("/api/public/v1/openapi.json", ["Accept-Encoding: br"], 200),
        ("/.well-known/api-catalog", [], 200),
    ],
)
async def test_what_came_twice_is_not_read(
    edge: Any, read: list[str], path: str, lines: list[str], status: int
) -> None:
    """It gets the same answer, with an id of its own; also on another connection."""
    request = get(path, *lines)
    async with connect(edge.url) as connection, connect(edge.url) as other:
        first, second, third = [await connection.ask(request) for _ in range(3)]
        assert first.status == status
        assert read == [path] * 2
        assert common(third) == common(second) == common(first)
        assert len({answer.headers["X-Request-ID"] for answer in (first, second, third)}) == 3
        await other.ask(get("/feed.xml"))
        fourth = await other.ask(request)
    assert read == [path, path, "/feed.xml"]
    assert common(fourth) == common(first)


async def test_a_key_is_known_again_and_counted(make_edge: Any, read: list[str]) -> None:
    """Each repetition counts against the limit, until it is refused."""
    async with make_edge(RATE_AUTHENTICATED="4/minute") as edge:
        request = get(POSTS, f"X-API-Key: {await edge.key()}")
        async with connect(edge.url) as connection:
            answers = [await connection.ask(request) for _ in range(6)]
    left = [answer.headers["RateLimit"].split(";")[1] for answer in answers]
    assert [answer.status for answer in answers] == [200] * 4 + [429] * 2
    assert left == ["r=3", "r=2", "r=1", "r=0", "r=0", "r=0"]
    assert len({common(answer)[1] for answer in answers[:4]}) == 1
    assert len(read) == 4  # the first two, and those that are refused


async def test_a_revoked_key_opens_nothing_more(edge: Any, read: list[str]) -> None:
    """A revocation counts from the next request on, however often the last one came."""
    secret = await edge.key()
    keys = Keys(edge.service.store, edge.service.clock)
    (row,) = await keys.all()
    request = get(f"{POSTS}/first-edge", f"X-API-Key: {secret}")
    async with connect(edge.url) as connection:
        assert [(await connection.ask(request)).status for _ in range(3)] == [200] * 3
        await keys.revoke(row["id"])
        assert (await connection.ask(request)).status == 401
    assert len(read) == 3


async def test_a_change_of_the_store_is_looked_at_once(edge: Any, read: list[str]) -> None:
    """Whatever was written may have been the key's end: it is asked for, and known again then."""
    request = get(POSTS, f"X-API-Key: {await edge.key()}")
    async with connect(edge.url) as connection:
        for _ in range(3):
            await connection.ask(request)
        await edge.key("leads:read")
        await asyncio.sleep(2)  # by then each engine has seen it
        for _ in range(3):
            assert (await connection.ask(request)).status == 200
    assert read == [POSTS] * 3


async def test_leads_are_given_again_until_the_store_changes(edge: Any, read: list[str]) -> None:
    """Lists and rows that come again unread are those that are there now."""
    leads, rows = "/api/public/v1/leads?limit=5", "/api/public/v1/admin/leads?select=name,message"
    key = f"X-API-Key: {await edge.key()}"
    is_exact = edge.service.store.version_is_exact
    async with connect(edge.url) as connection:
        for number in range(3):
            reads = len(read)
            for path, name in ((leads, "leads"), (rows, "")):
                answers = [await connection.ask(get(path, key)) for _ in range(5)]
                found = [json.loads(answer.body) for answer in answers]
                assert [len(each[name] if name else each) for each in found] == [number] * 5
                assert len({str(common(answer)) for answer in answers}) == 1
            # The rows of a store that others may have changed unseen are read each time.
            count = sum("admin" in path for path in read[reads:])
            assert count < 5 if is_exact else count == 5
            await edge.service.leads.create(LEAD, Sender(None, "192.0.2.1"))


async def test_rows_come_again_only_in_the_form_that_was_asked_for(edge: Any) -> None:
    """Whoever wants them counted, or as a table, gets that each time."""
    path, key = "/api/public/v1/admin/leads", f"X-API-Key: {await edge.key()}"
    ways = ("Prefer: count=exact", "Accept: text/csv", "Accept: application/json")
    await edge.service.leads.create(LEAD, Sender(None, "192.0.2.1"))
    async with connect(edge.url) as connection:
        for _ in range(4):
            counted, table, plain = [await connection.ask(get(path, key, way)) for way in ways]
            assert counted.headers["Content-Range"] == "0-0/1"
            assert table.body.startswith(b"id,name,")
            assert plain.headers["Content-Range"] == "0-0/*"
            assert json.loads(plain.body)[0]["name"] == LEAD.name


async def test_a_new_build_is_shown_at_once(make_edge: Any, tmp_path: Path) -> None:
    """What stood on the last build is forgotten with it."""
    builds = tmp_path / "builds"
    publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        key = f"X-API-Key: {await edge.key()}"
        requests = [get("/"), get("/journal/p-1/"), get(POSTS, key), get(f"{POSTS}/p-1", key)]
        async with connect(edge.url) as connection:
            before = [await connection.ask(each) for _ in range(3) for each in requests]
            publish(builds, 2)
            await edge.service.shelf.refresh()
            after = [await connection.ask(each) for _ in range(3) for each in requests]
    assert all(b"build-0001" in answer.body for answer in before)
    assert all(b"build-0002" in answer.body for answer in after)


async def test_an_answer_that_a_new_build_overtakes_is_not_remembered(
    make_edge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun on one build and is answered under the next is given once."""
    builds = tmp_path / "builds"
    publish(builds, 1)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slowly(form: Any, request: Any) -> Any:
        begun.set()
        await may_end.wait()
        return await answer_file(form, request)

    async with make_edge(BUILD_DIR=str(builds)) as edge, connect(edge.url) as connection:
        await connection.ask(get("/"))
        publish(builds, 2)
        await edge.service.shelf.refresh()
        monkeypatch.setattr(site, "answer_file", slowly)
        connection.writer.write(get("/"))
        await begun.wait()
        publish(builds, 3)
        await edge.service.shelf.refresh()
        may_end.set()
        assert b"build-0002" in (await connection.answer()).body
        for _ in range(3):
            assert b"build-0003" in (await connection.ask(get("/"))).body


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/", "X-Request-ID: mine-12345678"),
        ("/none/", "Accept: */*"),
        ("/api/public/ping", "Accept: */*"),
        ("/api/public/v1/readiness", "Accept: */*"),
    ],
)
async def test_what_depends_on_more_is_read(
    edge: Any, read: list[str], path: str, line: str
) -> None:
    """An id to be repeated, a page that is missing, and what is made for each request."""
    async with connect(edge.url) as connection:
        for _ in range(3):
            answer = await connection.ask(get(path, line))
            is_repeated = answer.headers["X-Request-ID"] == "mine-12345678"
            assert is_repeated == line.startswith("X-Request-ID")
    assert len(read) == 3


async def test_a_connection_that_is_to_end_ends(edge: Any, read: list[str]) -> None:
    """Who asks for the end gets it each time, and so does everybody while the service drains."""
    async with connect(edge.url) as kept:
        for _ in range(3):
            await kept.ask(get("/"))
        for _ in range(3):
            async with connect(edge.url) as connection:
                await connection.ask(get("/"))
                assert (await connection.ask(get("/", "Connection: close"))).closes
                assert await connection.is_closed()
        edge.service.health.start_draining()
        assert (await kept.ask(get("/"))).closes
        assert await kept.is_closed()
    assert len(read) == 9


async def warmed(edge: Any) -> bytes:
    """Return a request that is answered without being read."""
    async with connect(edge.url) as connection:
        for _ in range(3):
            await connection.ask(get("/"))
    return get("/")


@pytest.mark.parametrize("length", ["18446744073709551615", "0"])
async def test_a_head_that_speaks_of_a_body_ends_it(
    edge: Any, read: list[str], length: str
) -> None:
    """A length that one parser takes for none, and another for an endless body, is no ground."""
    known = await warmed(edge)
    count = len(read)
    async with connect(edge.url) as connection:
        head = get("/api/public/ping", f"Content-Length: {length}")
        assert (await connection.ask(head)).status == 200
        connection.writer.write(known)
        await connection.writer.drain()
        is_answered = False
        with suppress(TimeoutError):
            is_answered = await asyncio.wait_for(connection.reader.read(1), 0.3) != b""
    assert is_answered == (length == "0")
    assert len(read) == count + 1 + is_answered


async def test_large_answers_are_read_for(make_edge: Any, tmp_path: Path, read: list[str]) -> None:
    """They are sent as fast as a client takes them, and the end of the service waits for that."""
    builds = tmp_path / "builds"
    folder = publish(builds, 1)
    (folder / "site" / "large.txt").write_bytes(b"x" * 70_000)
    async with make_edge(BUILD_DIR=str(builds)) as edge, connect(edge.url) as connection:
        for _ in range(4):
            assert len((await connection.ask(get("/large.txt"))).body) == 70_000
    assert len(read) == 4


async def test_a_body_is_never_taken_for_a_request(edge: Any) -> None:
    """What a head announces belongs to it, though it be the bytes of a known request."""
    known = await warmed(edge)
    async with connect(edge.url) as connection:
        head = get("/journal/first-edge/", f"Content-Length: {len(known)}")
        assert b"first" in (await connection.ask(head)).body
        connection.writer.write(known)
        await connection.writer.drain()
        await asyncio.sleep(0.1)
        assert (await connection.ask(get("/api/public/ping"))).body.startswith(b"{")


@pytest.mark.parametrize("before", [b"", get("/api/public/ping")])
async def test_pieces_are_put_together(edge: Any, before: bytes) -> None:
    """The end of a head may look like a known request, also behind a whole one: it is its end."""
    known = await warmed(edge)
    async with connect(edge.url) as connection:
        connection.writer.write(before + b"GET /api/public/ping HTTP/1.1\r\nX-Odd: ")
        await connection.writer.drain()
        if before:
            await connection.answer()
        await asyncio.sleep(0.1)
        assert (await connection.ask(known)).body.startswith(b"{")
        assert (await connection.ask(known)).body.startswith(b"<!DOCTYPE")


async def test_answers_keep_their_order(edge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known request behind one that takes longer waits for its turn."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    report = Health.report

    async def slowly(self: Health) -> dict[str, Any]:
        begun.set()
        await may_end.wait()
        return await report(self)

    monkeypatch.setattr(Health, "report", slowly)
    known = await warmed(edge)
    async with connect(edge.url) as connection:
        connection.writer.write(get("/api/public/v1/readiness"))
        await begun.wait()
        connection.writer.write(known)
        await connection.writer.drain()
        await asyncio.sleep(0.1)
        may_end.set()
        assert b"checks" in (await connection.answer()).body
        page = (await connection.answer()).body
        connection.writer.write(known + get("/api/public/ping") + known)
        bodies = [(await connection.answer()).body for _ in range(3)]
    assert page == bodies[0] == bodies[2]
    assert bodies[1].startswith(b"{")


async def test_bare_line_feeds_end_nothing(edge: Any) -> None:
    """Nobody sees two requests where the service sees one: such bytes are refused."""
    async with connect(edge.url) as connection:
        odd = b"GET /api/public/ping HTTP/1.1\nHost: x\n\n" + get("/")
        assert (await connection.ask(odd)).status == 400
        assert await connection.is_closed()


async def test_a_connection_that_is_used_stays(
    edge: Any, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every ten seconds a request is read, so that aiohttp sees that the connection is used."""
    now = 100.0
    monkeypatch.setattr(repeats, "monotonic", lambda: now)
    async with connect(edge.url) as connection:
        for now in (100.0, 101.0, 105.0, 110.9, 111.0, 119.0, 121.0):  # noqa: B007  the clock's
            assert (await connection.ask(get("/"))).status == 200
    assert read == ["/"] * 4
