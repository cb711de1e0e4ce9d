"""The log of a store beside Litestream: nobody cuts or restarts it while Litestream may need it.

Litestream is stopped each time, as a busy machine stops it, while the log is written to.
"""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from edge_api.backup.replica import Replication, fetch_replica, make_replication
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Read
from edge_api.db.sqlite import engine as sqlite_engine
from edge_api.db.sqlite.copying import verify_copy
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.sqlite.processes import lock_if_unreplicated, replicator_lock_path
from edge_api.db.sqlite.store_connections import Writer
from edge_api.db.tables import LEADS
from edge_api.settings import Settings, read_settings
from tests.drills.loss import await_replica, ids, installation_in
from tests.edge.store.samples import clock, make_lead
from tests.patience import patience

pytestmark = pytest.mark.size("test")


class ReplicatedEdge:
    """An open store that Litestream replicates into a folder."""

    def __init__(self, folder: Path, settings: Settings, store: SQLiteStore) -> None:
        replication = make_replication(settings)
        assert replication is not None
        self.replication: Replication = replication
        self.store = store
        self.path = folder / "var" / "edge.db"
        self._draft = folder / "draft.db"
        self._settings = settings
        replication.start()

    async def catch_up(self) -> None:
        """Return when the replica has all that was committed before."""
        await asyncio.to_thread(await_replica, self.path)

    async def insert(self, number: int, size: int = 10) -> None:
        """Store leads in one transaction, with messages of a size in characters."""
        leads = [make_lead(message="m" * size) for _ in range(number)]
        await self.store.run(Insert(LEADS, leads))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to Litestream."""
        os.kill(int(replicator_lock_path(self.path).read_text()), number)

    def check_replica(self) -> None:
        """Restore the replica into another file, and compare its leads. Raises StoreRefusal."""
        fetch_replica(self._settings, self._draft, None)
        verify_copy(self._draft)
        assert ids(self._draft) == ids(self.path)

    async def close(self) -> None:
        """End both, as an edge does."""
        await self.store.close()
        await self.replication.close()


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[ReplicatedEdge]:
    """Return an edge whose replica has some rows, each in a transaction of its own."""
    installation = installation_in(tmp_path, LITESTREAM_REPLICA=f"file://{tmp_path}/replica")
    store = await open_store(installation.store, clock, exclusive=True, replicated=True)
    edge = ReplicatedEdge(tmp_path, read_settings(installation.settings, None), store)
    try:
        await edge.catch_up()
        for _ in range(30):
            await edge.insert(1)
        await edge.catch_up()
        yield edge
    finally:
        await edge.close()


async def test_a_command_beside_an_edge_leaves_the_log(edge: ReplicatedEdge) -> None:
    """It opens the store, commits and closes; what Litestream has not read yet stays."""
    edge.send(signal.SIGSTOP)
    await edge.insert(60, 1000)
    command = await open_store(edge.path, clock)
    await command.run(Insert(LEADS, [make_lead()]))
    await command.close()
    await edge.insert(1)
    edge.send(signal.SIGCONT)

    await edge.catch_up()
    edge.check_replica()


async def test_commits_never_restart_a_replicated_log(edge: ReplicatedEdge) -> None:
    """More than SQLite would let a log grow before it copies it into the file by itself."""
    await edge.insert(150, 1900)
    await edge.catch_up()
    edge.send(signal.SIGSTOP)
    for _ in range(40):
        await edge.insert(100, 1900)
    await edge.insert(1)
    edge.send(signal.SIGCONT)

    await edge.catch_up()
    edge.check_replica()


async def test_an_edge_that_closes_leaves_the_log_to_litestream(edge: ReplicatedEdge) -> None:
    """Commits that Litestream has not read when the store closes reach the replica later."""
    edge.send(signal.SIGSTOP)
    await edge.insert(5)
    await edge.store.close()
    edge.send(signal.SIGCONT)
    await edge.replication.close()

    edge.check_replica()


async def test_a_cut_that_a_reader_prevents_does_no_harm(
    edge: ReplicatedEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Litestream is ended for the cut, a reader prevents that, and Litestream starts again."""
    monkeypatch.setattr("edge_api.db.sqlite.processes.STOP_SECONDS", 0.5)
    edge.send(signal.SIGSTOP)
    await edge.insert(60, 1000)
    with closing(sqlite3.connect(edge.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM leads").fetchone()
        await edge.insert(1)
        assert not await edge.store.scrub()
    await edge.insert(1)

    await edge.catch_up()
    edge.check_replica()


async def test_a_lock_that_cannot_be_opened_prevents_a_cut_alone(tmp_path: Path) -> None:
    """The store is still closed, and says that the log could not be cut."""
    store = await open_store(tmp_path / "edge.db", clock, exclusive=True, replicated=True)
    replicator_lock_path(tmp_path / "edge.db").mkdir()

    assert not await store.scrub()
    await store.close()


async def test_a_log_that_grows_without_end_is_cut(
    edge: ReplicatedEdge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Litestream hangs; before the disk is full its process is ended, and the log is cut."""
    monkeypatch.setattr("edge_api.db.sqlite.processes.STOP_SECONDS", 0.5)
    monkeypatch.setattr(sqlite_engine, "MAX_WAL_BYTES", 2**20)
    log = edge.path.with_name("edge.db-wal")
    edge.send(signal.SIGSTOP)
    await edge.insert(1000, 1900)
    assert await asyncio.to_thread(lambda: log.stat().st_size) > 2**20
    for _ in range(600):
        if "the log of the store has grown to" in caplog.text:
            break
        await asyncio.sleep(0.05)

    assert "MiB and was cut" in caplog.text
    assert await asyncio.to_thread(lambda: log.stat().st_size) < 2**20
    await edge.insert(1)
    await edge.catch_up()
    edge.check_replica()


async def test_a_cut_that_is_cancelled_keeps_litestream_away_to_its_end(
    edge: ReplicatedEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that cuts cannot be stopped: until it is done nobody else gets the lock."""
    begun, finish = asyncio.Event(), asyncio.Event()

    async def cut_slowly(_: Writer, *, vacuum: bool) -> bool:
        begun.set()
        await finish.wait()
        return vacuum

    monkeypatch.setattr(Writer, "truncate_wal", cut_slowly)
    cutting = asyncio.create_task(edge.store.scrub())
    await begun.wait()
    cutting.cancel()
    await asyncio.sleep(0.1)  # a lock that was let go would be free by now
    with lock_if_unreplicated(edge.path) as is_free:
        assert not is_free
    finish.set()
    with pytest.raises(asyncio.CancelledError):
        await cutting


async def test_no_request_waits_for_the_end_of_litestream(
    edge: ReplicatedEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is moved away while Litestream hangs: requests are refused until it has ended."""
    hanging, ended = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def release_slowly(_: Path) -> AsyncIterator[None]:
        hanging.set()
        await ended.wait()
        yield

    monkeypatch.setattr(sqlite_engine, "without_replicator", release_slowly)
    aside = edge.path.with_name("aside.db")
    edge.path.rename(aside)
    async with asyncio.timeout(patience()):
        for _ in range(3):
            with pytest.raises(Problem):
                await edge.store.run(Read(LEADS, limit=1))
        await hanging.wait()
        aside.rename(edge.path)
        ended.set()
        while True:
            with suppress(Problem):
                await edge.store.run(Read(LEADS, limit=1))
                break
            await asyncio.sleep(0.05)


async def test_an_edge_that_is_replicated_no_more_checkpoints_again(tmp_path: Path) -> None:
    """The lock that its former replicator has left does not let the log grow."""
    path = tmp_path / "edge.db"
    store = await open_store(path, clock, exclusive=True)
    replicator_lock_path(path.resolve()).touch()
    try:
        for _ in range(20):
            await store.run(Insert(LEADS, [make_lead(message="m" * 2000) for _ in range(500)]))
        size = await asyncio.to_thread(lambda: path.with_name("edge.db-wal").stat().st_size)
        assert size < 48 * 2**20
    finally:
        await store.close()
