"""The end of a store: what is under way is finished, and nothing of it stays behind."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, QueryResult, Read
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.tables import LEADS
from tests.edge.store.samples import clock, make_lead
from tests.patience import patience

pytestmark = pytest.mark.size("test")

FORGET = """
import asyncio, sys
from pathlib import Path
from edge_api.db.tables import LEADS
from edge_api.db.query import Insert
from edge_api.db.sqlite.engine import open_store
from tests.edge.store.samples import clock, make_lead

async def main():
    store = await open_store(Path(sys.argv[1]), clock)
    await store.run(Insert(LEADS, [make_lead()]))
    raise SystemExit(3)

asyncio.run(main())
"""


async def test_closing_finishes_what_waits(path: Path) -> None:
    """Every call that was made before is answered, and its row is there afterwards."""
    store = await open_store(path, clock)
    calls = [asyncio.create_task(store.run(Insert(LEADS, [make_lead()]))) for _ in range(500)]
    reads = [asyncio.create_task(store.run(Read(LEADS, limit=1))) for _ in range(20)]
    await asyncio.sleep(0)
    await store.close()

    assert all(len(outcomes[0].rows) == 1 for outcomes in await asyncio.gather(*calls))
    await asyncio.gather(*reads)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM leads").fetchone() == (500,)


def connection_threads() -> list[threading.Thread]:
    """Return the threads that hold connections."""
    return [thread for thread in threading.enumerate() if "_connection_worker" in thread.name]


async def test_closing_leaves_one_file_and_no_thread(path: Path) -> None:
    """The log is brought into the file, so that a copy of that is a backup."""
    store = await open_store(path, clock, exclusive=True)
    await store.run(Insert(LEADS, [make_lead()]))
    threads = connection_threads()
    assert len(threads) == 5
    await store.close()
    for thread in threads:
        thread.join(timeout=10)

    assert connection_threads() == []
    assert {file.name for file in path.parent.iterdir()} == {"edge.db", "edge.db-lock"}


async def test_a_closed_store_is_unavailable(path: Path) -> None:
    """Every query is answered by a problem and no crash; closing again is fine."""
    store = await open_store(path, clock)
    await store.close()
    await store.close()

    for call in (store.run(Read(LEADS)), store.run(Insert(LEADS, [make_lead()])), store.probe()):
        with pytest.raises(Problem) as refusal:
            await call
        assert refusal.value.code == "unavailable"
    with pytest.raises(Problem):
        store.version()


async def test_two_may_close_at_once(store: SQLiteStore) -> None:
    """Both return when it is done."""
    await asyncio.gather(store.close(), store.close())


async def test_closing_goes_on_when_nobody_waits_for_it(path: Path) -> None:
    """A caller that is cancelled leaves no half-closed store."""
    store = await open_store(path, clock)
    await store.run(Insert(LEADS, [make_lead()]))
    closer = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    closer.cancel()
    await asyncio.gather(closer, return_exceptions=True)
    await store.close()

    assert [file.name for file in path.parent.iterdir()] == ["edge.db"]


@pytest.mark.size("ci")
async def test_a_locked_store_can_be_closed(path: Path) -> None:
    """Calls that another process keeps waiting are refused, all of them, within seconds."""
    store = await open_store(path, clock)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        calls = [asyncio.create_task(store.run(Insert(LEADS, [make_lead()]))) for _ in range(600)]
        await asyncio.sleep(0)
        await asyncio.wait_for(store.close(), 12)
        results = await asyncio.gather(*calls, return_exceptions=True)

    assert {type(result) for result in results} == {Problem}


async def test_a_long_read_cannot_hold_a_store_open(path: Path) -> None:
    """The read is interrupted, and its caller gets an error."""
    store = await open_store(path, clock)
    await store.run(Insert(LEADS, [make_lead(notes="a" * 20_000) for _ in range(2000)]))
    nowhere = Filter("notes", "like", "%" + "a_" * 50 + "b%")
    reading: asyncio.Task[list[QueryResult]] = asyncio.create_task(
        store.run(Read(LEADS, where=(nowhere,), timeout=600))
    )
    await asyncio.sleep(0.1)
    await asyncio.wait_for(store.close(), 12)

    with pytest.raises(Problem):
        await reading


def test_a_store_that_nobody_closed_does_not_hold_the_process(path: Path) -> None:
    """An error on the way out ends the process all the same, and the row is there."""
    command = [sys.executable, "-W", "ignore", "-c", FORGET, str(path)]
    process = subprocess.run(command, check=False, timeout=patience())

    assert process.returncode == 3
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM leads").fetchone() == (1,)
