"""Litestream beside an edge: it misses nothing, dies and comes back, and holds up no erasure."""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from edge_api.backup.replica import Replication, make_replication
from edge_api.db.errors import StoreRefusal
from edge_api.db.query import Delete, Filter, Insert
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.sqlite.processes import (
    find_litestream,
    lock_replicator,
    replicator_lock_path,
    replicator_socket_path,
    without_replicator,
)
from edge_api.db.tables import LEADS
from edge_api.health import Check
from edge_api.settings import read_settings
from tests.drills.loss import await_replica, ids, installation_in, post, said
from tests.edge.edge_process import Installation, until
from tests.edge.store.samples import clock, make_lead
from tests.patience import patience

pytestmark = pytest.mark.size("test")

ROUNDS = 48
AT_ONCE = 250
"""Leads of one round."""
CHECKPOINTS = ("PASSIVE", "FULL", "RESTART", "TRUNCATE")
"""All that anybody may try to do to a log."""


def await_successor(store: Path, process: int) -> None:
    """Return when another process replicates a store."""
    await_truth(lambda: process_of(store) not in (process, 0))


def await_truth(is_so: Callable[[], bool]) -> None:
    """Return when something is so."""
    ends_at = time.monotonic() + patience()
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def process_of(store: Path) -> int:
    """Return the process that replicates a store; 0 while that is being started."""
    return int(replicator_lock_path(store).read_text() or 0)


def rows_of(store: Path) -> list[Any]:
    """Return every lead with all its columns."""
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT * FROM leads ORDER BY id").fetchall()


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a replica in a folder."""
    return installation_in(tmp_path, LITESTREAM_REPLICA=f"file://{tmp_path}/replica")


@pytest.mark.size("ci")
async def test_no_row_is_missed_whatever_becomes_of_the_log(installation: Installation) -> None:
    """Thousands of rows, checkpoints, cuts of the log and a rewriting: the replica has each row."""
    settings = read_settings(installation.settings, None)
    store = await open_store(installation.store, clock, exclusive=True, replicated=True)
    replication = make_replication(settings)
    assert replication is not None
    replication.start()
    try:
        await asyncio.to_thread(await_replica, installation.store)
        await write_and_cut(store, installation.store)
    finally:
        await store.close()
        await replication.close()

    before = rows_of(installation.store)
    assert len(before) == ROUNDS * AT_ONCE // 2
    said(installation, "restore", "--from-replica", "--force")
    assert rows_of(installation.store) == before


async def write_and_cut(store: SQLiteStore, path: Path) -> None:
    """Write and delete, and do to the log all that is ever done to it."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as rival:
        for number in range(ROUNDS):
            leads = [make_lead(message="m" * 1500) for _ in range(AT_ONCE)]
            await asyncio.gather(*(store.run(Insert(LEADS, [lead])) for lead in leads))
            gone = tuple(lead["id"] for lead in leads[::2])
            await store.run(Delete(LEADS, (Filter("id", "in", gone),)))
            mode = CHECKPOINTS[number % len(CHECKPOINTS)]
            rival.execute(f"PRAGMA wal_checkpoint({mode})")
            if number % 12 == 11:
                assert await store.scrub(full=number > ROUNDS // 2)


@pytest.mark.size("ci")
def test_an_erasure_leaves_nothing_in_the_log(installation: Installation) -> None:
    """Litestream holds the log open; an erasure beside it cuts the log nevertheless."""
    with installation.serving() as edge:
        post(edge, "of Ann, who is to be forgotten")
        log = installation.store.with_name("edge.db-wal")
        await_replica(installation.store)
        said(installation, "privacy", "erase", "ann@example.org", "--yes")

        for file in (installation.store, log):
            assert b"to be forgotten" not in file.read_bytes()
        post(edge, "of Ann again")
        await_replica(installation.store)
        kept = ids(installation.store)
    said(installation, "restore", "--from-replica", "--force")
    assert ids(installation.store) == kept


async def test_a_planned_stop_is_no_warning(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """While somebody cuts the log readiness passes, and the log has one line without alarm."""
    store = await open_store(installation.store, clock, exclusive=True, replicated=True)
    replication = make_replication(read_settings(installation.settings, None))
    assert replication is not None
    replication.start()
    try:
        await asyncio.to_thread(await_replica, installation.store)
        with caplog.at_level("INFO", "edge_api.backup.replica"):
            async with without_replicator(installation.store):
                await asyncio.to_thread(await_truth, lambda: "was stopped" in caplog.text)
                check = await replication.check()
            await asyncio.to_thread(await_successor, installation.store, 0)
    finally:
        await store.close()
        await replication.close()

    assert check == Check("pass")
    (line,) = (record for record in caplog.records if "was stopped" in record.message)
    assert line.levelname == "INFO"
    assert "was stopped to cut the log" in line.message


@pytest.mark.size("ci")
def test_a_replicator_that_dies_is_started_again(installation: Installation) -> None:
    """It is killed; another one takes its place, and what came meanwhile is in the replica."""
    with installation.serving() as edge:
        await_replica(installation.store)
        first = process_of(installation.store)
        os.kill(first, signal.SIGKILL)
        lead = post(edge, "meanwhile")
        await_successor(installation.store, first)
        await_replica(installation.store)
        _, complained = edge.end(signal.SIGTERM)

    assert "the replication process has ended; starting it again" in complained
    said(installation, "restore", "--from-replica", "--force")
    assert ids(installation.store) == {lead}


def test_the_replicator_ends_after_the_last_commit_of_the_edge(installation: Installation) -> None:
    """An edge that is told to end leaves no process behind, and a replica that has everything."""
    with installation.serving() as edge:
        await_replica(installation.store)
        process = process_of(installation.store)
        lead = post(edge, "the last one")
        code, _ = edge.end(signal.SIGTERM)

    assert code == 0
    assert running_as(process) == []
    said(installation, "restore", "--from-replica", "--force")
    assert ids(installation.store) == {lead}


def running_as(process: int) -> list[str]:
    """Return the command line of a process; none where it has ended, read by its parent or not."""
    try:
        found = psutil.Process(process)
        return [] if found.status() == psutil.STATUS_ZOMBIE else found.cmdline()
    except psutil.NoSuchProcess:
        return []


async def test_a_place_that_is_silent_does_not_hold_up_the_end(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica's server takes calls and never answers: it ends, and leaves no process behind."""
    for name, seconds in (
        ("SYNC_TIMEOUT", 1),
        ("CATCH_UP", 1),
        ("STOP", 0.5),
        ("CATCH_UP_STOP", 0.5),
    ):
        monkeypatch.setattr(f"edge_api.backup.replica.{name}_SECONDS", seconds)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    store = await open_store(installation.store, clock, exclusive=True)
    await store.run(Insert(LEADS, [make_lead()]))
    with silent_server() as port:
        address = f"s3://bucket/path?endpoint=127.0.0.1:{port}&region=none"
        replication = Replication(installation.store, address, find_litestream())
        replication.start()
        await asyncio.to_thread(await_truth, replicator_socket_path(installation.store).exists)
        async with asyncio.timeout(patience() / 2):
            await replication.close()
    last = process_of(installation.store)
    await store.close()

    assert last
    assert running_as(last) == []


@contextmanager
def silent_server() -> Iterator[int]:
    """Listen meanwhile, and say nothing; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


@pytest.mark.size("ci")
def test_a_killed_edge_takes_its_replicator_along(installation: Installation) -> None:
    """After SIGKILL the replicator ends by itself, and brings what was committed last."""
    with installation.serving() as edge:
        await_replica(installation.store)
        process = process_of(installation.store)
        lead = post(edge, "the last one")
        edge.end(signal.SIGKILL)
        await_truth(lambda: not running_as(process))
    said(installation, "restore", "--from-replica", "--force")
    assert ids(installation.store) == {lead}


@pytest.mark.size("ci")
def test_the_leftovers_of_a_dead_edge_are_replaced(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `setpriv` the next edge ends the former replicator, and starts its own."""
    monkeypatch.setenv("PATH", "/nowhere")
    with installation.serving() as edge:
        await_replica(installation.store)
        left = process_of(installation.store)
        edge.end(signal.SIGKILL)
    assert running_as(left)
    with installation.serving() as edge:
        await_successor(installation.store, left)
        post(edge, "after that")
        await_replica(installation.store)


@pytest.mark.size("ci")
def test_a_commit_that_only_the_log_knew_is_no_harm(installation: Installation) -> None:
    """An edge dies between writing a commit and saying so; the replicator has copied it already.

    The replicator holds the log's index, which lacks the commit: whoever writes beside it writes
    over what was copied.
    """
    with installation.serving() as edge:
        post(edge, "before that")
        await_replica(installation.store)
        edge.process.send_signal(signal.SIGSTOP)
        append_unindexed_commit(installation.store)
        await_replica(installation.store)
        edge.end(signal.SIGKILL)
    with installation.serving() as edge:
        post(edge, "after that")
        await_replica(installation.store)
        kept = rows_of(installation.store)

    said(installation, "restore", "--from-replica", "--force")
    assert rows_of(installation.store) == kept


def append_unindexed_commit(store: Path) -> None:
    """Append a commit to the log of a store, of which the log's index does not know."""
    log = store.with_name("edge.db-wal")
    aside = store.with_name("aside.db")
    shutil.copy(store, aside)
    shutil.copy(log, aside.with_name("aside.db-wal"))
    with closing(sqlite3.connect(aside)) as connection:
        connection.execute("UPDATE leads SET message = 'never told'")
        connection.commit()
        grown = aside.with_name("aside.db-wal").read_bytes()
    known = log.read_bytes()
    assert grown.startswith(known)
    with log.open("ab") as file:
        file.write(grown.removeprefix(known))
    aside.unlink()


ODD_LINES = """#!/bin/sh
echo 4711 >&2
head -c 200000 /dev/zero | tr '\\0' x >&2
echo >&2
exec "$LITESTREAM" "$@"
"""
"""A Litestream that says what no other has said, before it does its work."""


async def test_unknown_output_of_the_replicator_is_ignored(
    installation: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line that is no object, and one without an end, are passed on; it goes on replicating."""
    monkeypatch.setenv("LITESTREAM", find_litestream())
    program = tmp_path / "odd"
    program.write_text(ODD_LINES)
    program.chmod(0o700)
    address = installation.settings["LITESTREAM_REPLICA"]
    store = await open_store(installation.store, clock, exclusive=True)
    replication = Replication(installation.store, address, str(program))
    replication.start()
    try:
        await store.run(Insert(LEADS, [make_lead()]))
        await asyncio.to_thread(await_replica, installation.store)
    finally:
        await store.close()
        await replication.close()

    sent = [record.getMessage() for record in caplog.records]
    assert "litestream: 4711" in sent
    assert "litestream: a line that is too long to be passed on" in sent
    assert "the replication process has ended; starting it again" not in sent


async def test_a_failed_start_of_the_replicator_is_tried_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A lock that nothing of ours wrote is a fault: it is logged, and the next start replicates."""
    monkeypatch.setattr("edge_api.backup.replica.RESTART_DELAYS", (0.1,))
    store = await open_store(installation.store, clock, exclusive=True)
    replication = make_replication(read_settings(installation.settings, None))
    assert replication is not None
    with strangely_locked(installation.store):
        replication.start()
        await asyncio.to_thread(await_truth, lambda: "cannot be replicated" in caplog.text)
    try:
        await asyncio.to_thread(await_replica, installation.store)
    finally:
        await store.close()
        await replication.close()


@contextmanager
def strangely_locked(store: Path) -> Iterator[None]:
    """Hold the lock of a replicator, with no number of a process in it."""
    with replicator_lock_path(store).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("nobody")
        lock.flush()
        yield


async def test_a_cancelled_waiter_holds_no_lock(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended before its turn has come: it does not wait on, so the next gets the lock."""
    monkeypatch.setattr("edge_api.backup.replica.CATCH_UP_SECONDS", 0.2)
    store = await open_store(installation.store, clock, exclusive=True)
    replication = make_replication(read_settings(installation.settings, None))
    assert replication is not None
    lock = await lock_replicator(installation.store)
    replication.start()
    await until(lambda: lock_files_open(installation.store) == 2)
    await replication.close()
    assert lock_files_open(installation.store) == 1
    os.close(lock)
    os.close(await lock_replicator(installation.store))
    await store.close()


def lock_files_open(store: Path) -> int:
    """Return how often this process has the lock of a replicator open: held, or waited for."""
    lock = replicator_lock_path(store).resolve()
    return sum(Path(file.path) == lock for file in psutil.Process().open_files())


@pytest.mark.size("ci")
def test_a_former_state_is_restored(installation: Installation) -> None:
    """The replica as it was at an instant: what came later is not in it, and is kept beside."""
    with installation.serving() as edge:
        early = post(edge, "early")
        await_replica(installation.store)
        time.sleep(1.1)  # states of the replica are told apart by the instant of their writing
        instant = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        time.sleep(1.1)
        late = post(edge, "late")
        await_replica(installation.store)
        edge.end(signal.SIGTERM)

    output = said(installation, "restore", "--from-replica", "--at", instant, "--force")
    assert ids(installation.store) == {early}
    assert "leads that came since, in the former store alone: 1\n" in output
    assert "the replica brings no secret key" in output
    (aside,) = installation.store.parent.glob("edge.db.replaced-*Z")
    assert ids(aside) == {early, late}


def test_readiness_warns_of_a_replica_that_is_behind(tmp_path: Path) -> None:
    """While the process does not run, or the replica lags, readiness says so and stays ready."""
    replication = Replication(tmp_path / "edge.db", "file:///nowhere", "litestream")
    check = asyncio.run(replication.check())

    assert (check.state, check.message) == (
        "warn",
        "the process that replicates the store does not run",
    )


def test_readiness_reports_the_replica(installation: Installation) -> None:
    """The report names the part and its state, and no place."""
    with installation.serving() as edge:
        assert edge.await_body("/api/public/v1/readiness", b'"replica":{"status":"pass",')
        report = json.loads(edge.get("/api/public/v1/readiness")[2])
    assert report["checks"]["replica"] == {"status": "pass", "verified": False}


@pytest.mark.size("ci")
def test_doctor_says_that_a_served_store_is_not_replicated(installation: Installation) -> None:
    """An edge was started without the setting that others have: doctor complains."""
    with installation.changed(LITESTREAM_REPLICA="").serving():
        code, output, _ = installation.run("doctor")

    assert code == 1
    assert "the store is served and not replicated" in output


@contextmanager
def blocked(folder: Path) -> Iterator[None]:
    """Put a file in the place of a folder meanwhile."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("in the way")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


@pytest.mark.size("ci")
def test_doctor_says_why_a_replica_lags(installation: Installation, tmp_path: Path) -> None:
    """The place of the replica cannot be written: leads are taken, doctor has the reason."""
    with installation.serving() as edge:
        await_replica(installation.store)
        with blocked(tmp_path / "replica"):
            post(edge, "nevertheless")
            code, output, _ = installation.run("doctor")
            assert code == 1
            assert "the replica lacks what was committed last" in output
        await_replica(installation.store)


def test_a_missing_litestream_is_reported(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without Litestream an edge that is to be replicated does not start, and says the fix."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreRefusal, match="there is no program litestream: install it"):
        make_replication(read_settings(installation.settings, None))


def test_a_path_that_is_too_long_is_reported(tmp_path: Path) -> None:
    """The socket beside the store could not be opened."""
    folder = tmp_path / ("x" * 120)
    installation = installation_in(folder, LITESTREAM_REPLICA="s3://bucket/path")
    with pytest.raises(StoreRefusal, match="too long a path"):
        make_replication(read_settings(installation.settings, None))


@pytest.mark.size("ci")
def test_no_store_is_made_where_the_replica_holds_one(installation: Installation) -> None:
    """All of `var` is gone: whatever would make a store names the restore, and changes nothing."""
    with installation.serving() as edge:
        lead = post(edge, "in the replica alone")
        await_replica(installation.store)
        edge.end(signal.SIGTERM)
    key = installation.store.with_suffix(".key").read_bytes()
    shutil.rmtree(installation.store.parent)
    for words in (("serve",), ("migrate",), ("keys", "issue", "--name", "early")):
        code, _, complained = installation.run(*words)
        assert (code, complained.count("\n")) == (1, 1)
        assert complained.startswith(
            f"{installation.store} is missing, and LITESTREAM_REPLICA holds a store: "
            "restore it with python -m edge_api restore --from-replica --force; "
        )
        assert not installation.store.exists()
    said(installation, "restore", "--from-replica")
    installation.store.with_suffix(".key").write_bytes(key)
    with installation.serving():
        await_replica(installation.store)
    assert ids(installation.store) == {lead}


def test_no_store_is_made_where_the_replica_does_not_answer(installation: Installation) -> None:
    """The replica may have a store: the start is refused, with the reason."""
    other = installation.changed(LITESTREAM_REPLICA="sftp://me@127.0.0.1:9/journal")
    code, _, complained = other.run("migrate")

    assert code == 1
    assert complained.startswith("the replica cannot be asked whether it holds a store: ")
    assert not installation.store.exists()


@pytest.mark.size("ci")
def test_a_new_empty_place_is_filled(installation: Installation, tmp_path: Path) -> None:
    """Litestream's state is of the former place: it is removed, and the new one gets all."""
    with installation.serving() as edge:
        lead = post(edge, "before the move")
        await_replica(installation.store)
        edge.end(signal.SIGTERM)
    for dropped in installation.store.with_name(".edge.db-litestream").rglob("*.ltx"):
        dropped.unlink()  # as Litestream does after some minutes
    moved = installation.changed(LITESTREAM_REPLICA=f"file://{tmp_path}/elsewhere")
    with moved.serving() as edge:
        other = post(edge, "after the move")
        await_replica(installation.store)
        edge.end(signal.SIGTERM)
    said(moved, "restore", "--from-replica", "--force")
    assert ids(installation.store) == {lead, other}

    with moved.serving() as edge:
        edge.end(signal.SIGTERM)
    code, _, complained = installation.run("serve")
    assert code == 1
    assert f"LITESTREAM_REPLICA is not the address of before, file://{tmp_path}/els" in complained
    assert "elsewhere, and holds a state: set it to an empty place, or" in complained
