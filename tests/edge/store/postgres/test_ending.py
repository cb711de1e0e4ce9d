"""The end of a store, and of its server: work is finished, and what was reported is stored."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from edge_api.db.postgres.connection import PostgresConnection
from edge_api.db.postgres.engine import PostgresStore, open_store
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, QueryResult, Read
from edge_api.db.tables import LEADS
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.postgres.conftest import StoreOpener
from tests.edge.store.samples import clock, make_lead

pytestmark = pytest.mark.size("test")

SESSIONS = (
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
NOWHERE = Filter("notes", "like", "%" + "a_" * 500 + "b%")
"""Fits no text: to look for it in 300 long ones takes many seconds."""


async def test_closing_finishes_what_waits_and_leaves_no_connection(
    url: str, rival: PostgresConnection
) -> None:
    """Every call that was made before is answered, and its row is there afterwards."""
    store = await open_store(url, clock)
    calls = [asyncio.create_task(store.run(Insert(LEADS, [make_lead()]))) for _ in range(100)]
    await asyncio.sleep(0)
    await store.close()

    assert all(len(results[0].rows) == 1 for results in await asyncio.gather(*calls))
    assert await rival.fetchval("SELECT count(*) FROM leads") == 100
    for _ in range(100):
        if not await rival.fetch(SESSIONS):
            return
        await asyncio.sleep(0.05)
    assert await rival.fetch(SESSIONS) == []


async def test_a_closed_store_is_unavailable(store: PostgresStore) -> None:
    """Every query is answered by a problem and no crash; closing again is fine."""
    await asyncio.gather(store.close(), store.close())
    await store.close()

    calls = (store.run(Read(LEADS)), store.run(Insert(LEADS, [make_lead()])), store.scrub())
    for call in (*calls, store.probe()):
        with pytest.raises(Problem) as refusal:
            await call
        assert refusal.value.code == "unavailable"


async def test_a_long_read_cannot_hold_a_store_open(store: PostgresStore) -> None:
    """The read is cancelled, and its caller gets an error."""
    await store.run(Insert(LEADS, [make_lead(notes="a" * 20_000) for _ in range(300)]))
    reading: asyncio.Task[list[QueryResult]] = asyncio.create_task(
        store.run(Read(LEADS, where=(NOWHERE,), timeout=600))
    )
    await asyncio.sleep(0.2)
    await asyncio.wait_for(store.close(), 12)

    with pytest.raises(Problem):
        await reading


async def test_a_read_that_nobody_waits_for_is_ended_on_the_server(
    store: PostgresStore, rival: PostgresConnection
) -> None:
    """It makes room there too, and not when it would have been done."""
    await store.run(Insert(LEADS, [make_lead(notes="a" * 20_000) for _ in range(300)]))
    reading = asyncio.create_task(store.run(Read(LEADS, where=(NOWHERE,), timeout=600)))
    busy = f"{SESSIONS} AND state = 'active'"
    for _ in range(100):
        if await rival.fetch(busy):
            break
        await asyncio.sleep(0.02)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)

    for _ in range(100):
        if not await rival.fetch(busy):
            return
        await asyncio.sleep(0.05)
    assert await rival.fetch(busy) == []


@pytest.mark.parametrize("is_awaited", [True, False], ids=["too long", "nobody waits"])
async def test_a_read_that_is_ended_is_no_error_of_the_edge(
    store: PostgresStore, caplog: pytest.LogCaptureFixture, *, is_awaited: bool
) -> None:
    """Its transaction is ended before its connection is used again, and no log cries out."""
    await store.run(Insert(LEADS, [make_lead(notes="a" * 20_000) for _ in range(300)]))
    reading = asyncio.create_task(store.run(Read(LEADS, where=(NOWHERE,), timeout=0.5)))
    if not is_awaited:
        await asyncio.sleep(0.2)
        reading.cancel()
    with pytest.raises((Problem, asyncio.CancelledError)):
        await reading

    assert len((await store.run(Read(LEADS, limit=1, timeout=5)))[0].rows) == 1
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_reader_cannot_write(store: PostgresStore) -> None:
    """A plan that got to a reader by mistake would be refused by the server."""
    for pool in (store._readers._fast, store._readers._slow):  # noqa: SLF001  what no plan reaches
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await pool.execute("DELETE FROM leads")


async def test_deleted_rows_are_scrubbed(
    store: PostgresStore, rival: PostgresConnection, postgresql: PostgreSQL
) -> None:
    """No file of the table holds it any more once the tables were written anew."""
    secret = "x" + "nobody should read this" * 3
    lead = make_lead(notes=secret)
    await store.run(Insert(LEADS, [lead, make_lead(notes="kept " * 9)]))
    await rival.execute("CHECKPOINT")
    assert secret in await file_of_leads(rival, postgresql)

    await store.run(Delete(LEADS, (Filter("id", "eq", lead["id"]),)))
    assert await store.scrub(full=True)
    await rival.execute("CHECKPOINT")
    assert secret not in await file_of_leads(rival, postgresql)
    assert "kept kept" in await file_of_leads(rival, postgresql)


async def file_of_leads(rival: PostgresConnection, server: PostgreSQL) -> str:
    """Return what the file of the table holds."""
    name = await rival.fetchval("SELECT pg_relation_filepath('leads')")
    return Path(server.folder / "data" / name).read_bytes().decode("latin-1")  # noqa: ASYNC240  small


async def test_an_open_snapshot_prevents_scrubbing(
    store: PostgresStore, rival: PostgresConnection
) -> None:
    """Rows that an open snapshot may see cannot be removed: try again."""
    lead = make_lead()
    await store.run(Insert(LEADS, [lead]))
    await rival.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await rival.fetch("SELECT FROM leads")
    await store.run(Delete(LEADS, (Filter("id", "eq", lead["id"]),)))
    assert not await store.scrub()
    assert not await asyncio.wait_for(store.scrub(full=True), 60)

    await rival.execute("COMMIT")
    assert await store.scrub(full=True)


async def test_a_table_that_somebody_uses_is_not_waited_for_by_all(
    store: PostgresStore, rival: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scrubbing gives up its place in the lock queue, where reads would wait behind it."""
    monkeypatch.setattr("edge_api.db.postgres.engine.TABLE_LOCK_SECONDS", 0.5)
    await rival.execute("BEGIN; LOCK TABLE leads IN ACCESS SHARE MODE")
    scrubbing = asyncio.create_task(store.scrub(full=True))
    await asyncio.sleep(0.2)
    await store.run(Read(LEADS))

    assert not await asyncio.wait_for(scrubbing, 60)
    await rival.execute("COMMIT")
    assert await store.scrub(full=True)


@pytest.fixture
def fragile() -> Iterator[PostgreSQL]:
    """Return a server that the test may end and kill."""
    server = PostgreSQL(fsync="on", full_page_writes="on")
    try:
        yield server
    finally:
        server.remove()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
async def test_a_restart_of_the_server_loses_nothing_acknowledged(
    fragile: PostgreSQL, how: signal.Signals, opener: StoreOpener
) -> None:
    """Writers go on as soon as it is back; each row that was acknowledged is there, and once."""
    store = await opener(fragile.make_store())
    acknowledged: list[str] = []
    stopping = asyncio.Event()

    async def write_on() -> None:
        while not stopping.is_set():
            lead = make_lead()
            with suppress(Problem):
                await store.run(Insert(LEADS, [lead]))
                acknowledged.append(lead["id"])
            await asyncio.sleep(0.01)

    writers = [asyncio.create_task(write_on()) for _ in range(8)]
    for _ in range(3):
        await acknowledge_more(acknowledged, 40)
        await asyncio.to_thread(fragile.end, how)
        await asyncio.to_thread(fragile.start)
    await acknowledge_more(acknowledged, 40)
    stopping.set()
    await asyncio.gather(*writers)

    (result,) = await store.run(Read(LEADS, ("id",)))
    found = Counter(row["id"] for row in result.rows)
    assert [lead for lead in acknowledged if found[lead] != 1] == []


async def acknowledge_more(acknowledged: list[str], count: int) -> None:
    """Return when so many more rows were acknowledged; half a minute is more than it takes."""
    enough = len(acknowledged) + count
    for _ in range(600):
        if len(acknowledged) >= enough:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(acknowledged)
