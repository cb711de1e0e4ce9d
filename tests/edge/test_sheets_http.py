"""Sheets of many rows: streamed whole, level in memory, and never half of one that looks whole."""

import asyncio
import csv
import io
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import ClientError, ClientPayloadError

from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update
from edge_api.db.tables import LEADS
from edge_api.leads import service
from edge_api.operation import sheets
from tests.edge.desk.conftest import Browser
from tests.edge.store.samples import make_row

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]
ROWS = 1000
ADMIN = "/api/public/v1/admin/leads?limit=1000&order=name"
DESK = "/desk/leads.csv"
CSV = {"Accept": "text/csv"}


async def fill(store: Store, count: int = ROWS, message: str = "Hello") -> list[str]:
    """Store so many leads, and return their ids by name."""
    rows = [
        make_row(
            LEADS,
            {"name": f"n{number:05}", "email": "a@b.co", "budget_tier": "b", "message": message},
        )
        for number in range(count)
    ]
    for first in range(0, count, 100):
        await store.run(Insert(LEADS, rows[first : first + 100]))
    return [row["id"] for row in rows]


def names(sheet: str) -> list[str]:
    """Return the names of a sheet, sorted."""
    return sorted(row["name"] for row in csv.DictReader(io.StringIO(sheet, newline="")))


@pytest.fixture
async def owner(edge: Any) -> Browser:
    """Return the owner at the desk of an edge with many leads."""
    await fill(edge.service.store)
    return await Browser(edge).sign_in(await edge.key())


async def test_a_long_sheet_is_whole(owner: Browser) -> None:
    """In parts without a length; HEAD has the same head, and a short one has its length."""
    key = await owner.edge.key()
    for path, headers in ((ADMIN, {**CSV, "X-API-Key": key}), (DESK, {})):
        sheet = await owner.ask("GET", path, headers=headers)
        head = await owner.ask("HEAD", path, headers=headers)
        assert names(sheet.text) == [f"n{number:05}" for number in range(ROWS)]
        assert (sheet.status, head.status, head.text) == (200, 200, "")
        for sent in (sheet.headers, head.headers):
            assert sent["Content-Type"] == "text/csv; charset=utf-8"
            assert sent["Cache-Control"] == "no-store"
            assert "Content-Length" not in sent
            assert sent.get("Content-Range") == ("0-999/1000" if path == ADMIN else None)
            assert "Link" not in sent
    short = await owner.ask("GET", f"{ADMIN}&name=lt.n00300", headers={**CSV, "X-API-Key": key})
    assert (len(names(short.text)), "Content-Length" in short.headers) == (300, True)
    aliased = f"{ADMIN}&select=who:name,spam_score::text".replace("order=name", "order=name.desc")
    sheet = await owner.ask("GET", aliased, headers={**CSV, "X-API-Key": key})
    assert sheet.text.split("\r\n")[:2] == ["who,spam_score", "n00999,0"]
    assert (await owner.get(f"{DESK}?q=n0012")).text.count("n0012") == 10


async def test_a_row_that_changes_meanwhile(
    owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is as its turn finds it; one that is deleted is left out, and a new one is not in it."""
    store = owner.edge.service.store
    first, second = (name("eq", each) for name, each in ((where, "n00998"), (where, "n00999")))
    begun, encode = False, sheets.to_csv

    async def change() -> None:
        await store.run(Update(LEADS, {"message": "Changed"}, first), Delete(LEADS, second))
        await fill(store, 1)

    loop = asyncio.get_running_loop()

    def change_once(*arguments: Any, **more: Any) -> str:
        nonlocal begun
        if not begun and more:
            begun = True
            asyncio.run_coroutine_threadsafe(change(), loop).result()
        return encode(*arguments, **more)

    monkeypatch.setattr(sheets, "to_csv", change_once)
    key = await owner.edge.key()
    sheet = (await owner.ask("GET", ADMIN, headers={**CSV, "X-API-Key": key})).text
    assert names(sheet) == [f"n{number:05}" for number in range(ROWS - 1)]
    assert sheet.count("Changed") == 1


def where(operator: str, name: str) -> tuple[Filter, ...]:
    """Return the condition of a name."""
    return (Filter("name", operator, name),)


async def test_an_error_in_the_middle_is_no_end(
    owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks off, so that half a sheet cannot pass for a whole one."""
    await fill(owner.edge.service.store)
    run, parts = owner.edge.service.store.run, 0

    async def fail(*queries: Any) -> Any:
        nonlocal parts
        is_part = isinstance(queries[0], Read) and queries[0].limit == service.PAGE_SIZE
        parts += is_part
        if is_part and parts > 2:
            raise Problem("unavailable", "The store is gone")
        return await run(*queries)

    monkeypatch.setattr(owner.edge.service.store, "run", fail)
    with pytest.raises(ClientPayloadError):
        await owner.get(DESK)
    monkeypatch.undo()
    assert (await owner.get("/desk/")).status == 200

    monkeypatch.setattr(service, "PAGE_SIZE", 7)
    monkeypatch.setattr(owner.edge.service.store, "run", fail)
    parts = 2
    assert (await owner.get(DESK)).status == 503, "before the head it is an error like any other"


async def test_a_client_that_hangs_up_ends_the_stream(owner: Browser) -> None:
    """Nothing goes on for nobody, and others are answered."""
    await fill(owner.edge.service.store, 1500, "m" * 2000)
    for _ in range(5):
        with suppress(ClientError):
            async with owner.edge.ask("GET", DESK, headers={"Cookie": owner.cookie}) as answer:
                await answer.content.readany()
                answer.close()
    assert len(names((await owner.get(DESK)).text)) == ROWS + 1500


@pytest.mark.one_engine
async def test_six_readers_of_a_sheet_need_little_memory(owner: Browser) -> None:
    """A sheet of 12 MB is never whole in memory: six at once stay under what one would take."""
    await fill(owner.edge.service.store, 5000, "m" * 2000)

    async def read() -> int:
        headers, size = {"Cookie": owner.cookie}, 0
        async with owner.edge.ask("GET", DESK, headers=headers) as answer:
            async for chunk in answer.content.iter_any():
                size += len(chunk)
        return size

    size = await read()
    tracemalloc.start()
    try:
        sizes = await asyncio.gather(*(read() for _ in range(6)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sizes == [size] * 6
    assert size > 10_000_000
    assert peak < 6 * size
