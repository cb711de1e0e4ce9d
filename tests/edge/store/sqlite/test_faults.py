"""Faults of a real store: each is reported, harms no other request, and passes."""

# ruff: noqa: ASYNC240  a test has its event loop to itself

import asyncio
import resource
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import Insert, QueryResult, Read
from edge_api.db.sqlite.connection import Connection
from edge_api.db.sqlite.engine import SQLiteStore
from edge_api.db.sqlite.errors import sqlite_problem
from edge_api.db.tables import EMAIL_SEND_STATE, LEADS
from tests.edge.store.samples import make_lead

pytestmark = pytest.mark.size("test")

READ = Read(LEADS, ("id",), with_total=True)


async def write(store: SQLiteStore) -> list[QueryResult]:
    """Store one lead."""
    return await store.run(Insert(LEADS, [make_lead()]))


async def refusal_of(doing: Awaitable[Any]) -> Problem:
    """Return the problem that a call meets, which tells when to come back."""
    with pytest.raises(Problem) as refusal:
        await doing
    assert refusal.value.code == "unavailable"
    assert refusal.value.headers == {"Retry-After": "2"}
    return refusal.value


async def recovery_of(call: Callable[[], Awaitable[Any]]) -> None:
    """Return when a call succeeds again; ten seconds is more than any ailment needs to pass."""
    for _ in range(100):
        try:
            await call()
        except Problem:
            await asyncio.sleep(0.1)
        else:
            return
    await call()


async def total(store: SQLiteStore) -> int | None:
    """Return how many leads the store has."""
    (result,) = await store.run(READ)
    return result.total


def writing_connection(store: SQLiteStore) -> Connection:
    """Return the connection of the store that writes."""
    return store._connections.writer._connection  # noqa: SLF001  to take its disk away


async def test_a_locked_store_refuses_writes_alone(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """Another process writes for too long: reads go on, writes are refused, later ones stored."""
    await write(store)
    rival.execute("BEGIN IMMEDIATE")
    writing = asyncio.gather(*(refusal_of(write(store)) for _ in range(5)))
    for _ in range(50):
        assert await total(store) == 1
        store.version()
    assert not writing.done()

    assert {problem.message for problem in await writing} == {
        "The store is locked by another process; try again later"
    }
    rival.execute("ROLLBACK")
    await write(store)
    assert await total(store) == 2


async def test_a_short_lock_is_waited_for(store: SQLiteStore, rival: sqlite3.Connection) -> None:
    """Commands write beside a running edge, and neither notices the other."""
    rival.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(write(store))
    await asyncio.sleep(0.2)
    rival.execute("COMMIT")

    assert len((await writing)[0].rows) == 1


async def test_a_lock_is_waited_for_after_the_log_was_cut(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """An erasure cuts the log, and takes no patience from the writes that follow it."""
    assert await store.scrub()
    rival.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(write(store))
    await asyncio.wait([writing], timeout=0.2)
    rival.execute("COMMIT")

    assert len((await writing)[0].rows) == 1


async def test_a_full_disk_refuses_writes_alone(store: SQLiteStore) -> None:
    """No page more may be had: reads go on, nothing is half-written, and room fixes it."""
    await write(store)
    connection = writing_connection(store)
    ((pages,),) = await connection.execute_fetchall("PRAGMA page_count")
    await connection.execute_fetchall(f"PRAGMA max_page_count = {pages}")
    large = Insert(LEADS, [make_lead(notes="x" * 10_000) for _ in range(100)])

    problem = await refusal_of(store.run(Insert(LEADS, [make_lead()]), large))
    assert problem.message == "The disk of the store is full; try again later"
    assert await total(store) == 1

    await connection.execute_fetchall("PRAGMA max_page_count = 1000000")
    await store.run(large)
    assert await total(store) == 101


@contextmanager
def smallest_disk(path: Path) -> Iterator[None]:
    """Let no file of this process grow beyond the size that the store's log has now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = path.with_name(f"{path.name}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_fails_refuses_writes_alone(store: SQLiteStore, path: Path) -> None:
    """The kernel refuses to write the log: all callers get an error, and none is stored."""
    await store.run(Insert(LEADS, [make_lead(notes="x" * 10_000) for _ in range(100)]))
    with smallest_disk(path):
        problems = await asyncio.gather(*(refusal_of(write(store)) for _ in range(5)))
        assert await total(store) == 100

    assert {problem.message for problem in problems} == {
        "The disk of the store fails; try again later"
    }
    await write(store)
    assert await total(store) == 101


async def test_readiness_sees_a_disk_that_fails(store: SQLiteStore, path: Path) -> None:
    """Locks can be had on such a disk: after a lost commit only a real one counts."""
    await store.run(Insert(LEADS, [make_lead(notes="x" * 10_000) for _ in range(100)]))
    with smallest_disk(path):
        await refusal_of(write(store))
        problem = await refusal_of(store.probe())
        assert problem.message.startswith("The disk of the store fails")

    await recovery_of(store.probe)


async def test_a_store_that_became_read_only_refuses_writes_alone(store: SQLiteStore) -> None:
    """As after the kernel has put a failing disk into read-only mode."""
    await write(store)
    connection = writing_connection(store)
    await connection.execute_fetchall("PRAGMA query_only = ON")

    problem = await refusal_of(write(store))
    assert problem.message == "The store cannot be written; try again later"
    assert await total(store) == 1

    await connection.execute_fetchall("PRAGMA query_only = OFF")
    await write(store)
    assert await total(store) == 2


async def test_a_deleted_store_acknowledges_nothing(store: SQLiteStore, path: Path) -> None:
    """SQLite would go on writing into a file without a name; the file put back is taken up."""
    await write(store)
    before = store.version()
    path.rename(path.with_suffix(".away"))

    problem = await refusal_of(write(store))
    assert problem.message == "The store's file was moved or deleted; try again later"
    await refusal_of(store.run(READ))
    await refusal_of(store.probe())
    assert not path.exists()

    path.with_suffix(".away").rename(path)
    await recovery_of(lambda: write(store))
    assert await total(store) == 2
    assert store.version() != before


async def test_version_is_unavailable_while_the_store_is_gone(
    store: SQLiteStore, path: Path
) -> None:
    """Caches that depend on the version get an error."""
    path.rename(path.with_suffix(".away"))
    await refusal_of(store.run(READ))
    await refusal_of(store.run(READ))

    with pytest.raises(Problem):
        store.version()


async def test_a_store_that_is_replaced_is_taken_up(store: SQLiteStore, path: Path) -> None:
    """A backup that is moved into place serves within seconds, without a restart."""
    await write(store)
    backup = path.with_suffix(".backup")
    with sqlite3.connect(path) as live, sqlite3.connect(backup) as copy:
        live.backup(copy)
    live.close()
    copy.close()
    await write(store)
    before = store.version()
    backup.rename(path)

    await refusal_of(store.run(READ))
    await recovery_of(lambda: store.run(READ))
    for leads in (1, 2, 3):  # after as many commits as before, SQLite's own number is the same
        assert await total(store) == leads
        assert store.version() != before
        await write(store)


async def test_a_log_that_is_deleted_loses_nothing_acknowledged(
    store: SQLiteStore, path: Path
) -> None:
    """Commits that are in the log alone are brought into the file before another is begun."""
    for _ in range(10):
        await write(store)
    path.with_name(f"{path.name}-wal").unlink()

    await refusal_of(write(store))
    await recovery_of(lambda: write(store))
    assert await total(store) == 11


async def test_a_store_of_a_later_schema_fails_readiness(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """Another edge has brought the file forward under this one."""
    rival.execute("PRAGMA user_version = 99")

    problem = await refusal_of(store.probe())
    assert problem.message.startswith("The store has schema version 99")


@pytest.mark.parametrize("first_page", [0, 1])
async def test_a_damaged_store_is_reported_and_fixed(
    store: SQLiteStore, path: Path, first_page: int
) -> None:
    """Rubbish in the file is no crash and no answer; the file fixed in place is taken up."""
    await store.run(Insert(LEADS, [make_lead(notes="x" * 10_000) for _ in range(100)]))
    await writing_connection(store).execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    sound = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(4096 * first_page)
        file.write(b"\xa5" * (len(sound) - 4096 * first_page))

    async def read_all() -> list[QueryResult]:
        return await store.run(Read(LEADS), Read(EMAIL_SEND_STATE))

    for _ in range(5):
        problem = await refusal_of(read_all())
        assert problem.message.startswith("The store")

    with path.open("r+b") as file:
        file.write(sound)
    await recovery_of(read_all)
    assert await total(store) == 100


async def test_a_store_that_was_emptied_is_damaged(store: SQLiteStore, path: Path) -> None:
    """A file cut to nothing has no tables: that is damage, and no fault of the service."""
    await write(store)
    await writing_connection(store).execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    sound = path.read_bytes()
    path.write_bytes(b"")

    async def read_all() -> list[QueryResult]:
        return await store.run(Read(LEADS), Read(EMAIL_SEND_STATE))

    problems = [await refusal_of(read_all()) for _ in range(3)]
    assert any("damaged" in problem.message for problem in problems)

    with path.open("r+b") as file:
        file.write(sound)
    await recovery_of(read_all)


async def test_a_fault_of_ours_is_no_problem_of_the_store(store: SQLiteStore) -> None:
    """A statement that is wrong stays the exception that it is, and is not to be tried again."""

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("SELEKT 1")

    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        await writing_connection(store).call(fail)


def test_a_commit_that_was_not_synced_is_not_known() -> None:
    """No process reads it, and one that starts after a crash finds it in the log, whole."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    problem = sqlite_problem(error)

    assert isinstance(problem, Problem)
    assert (problem.status, problem.sqlstate) == (503, OUTCOME_UNKNOWN)
    assert problem.message.startswith("The disk of the store fails, and it is not known whether")


async def test_a_store_on_a_disk_without_room_can_be_read(store: SQLiteStore, path: Path) -> None:
    """Reading needs no room at all."""
    await write(store)
    with smallest_disk(path):
        for _ in range(20):
            assert await total(store) == 1
