"""The one writer: many callers, few commits, each answered after the commit and none by another."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.problems import Problem
from edge_api.db.sqlite.connection import Connection, connect
from edge_api.db.sqlite.errors import StoreFileIdentities, StoreFileMoved
from edge_api.db.sqlite.opening import enable_wal
from edge_api.db.sqlite.store_connections import Writer
from edge_api.db.transaction import MAX_GROUP_SIZE


class Log:
    """A writer of its own on a small file, and the statements that it runs."""

    def __init__(self, writer: Writer, connection: Connection, path: Path) -> None:
        self.writer = writer
        self.connection = connection
        self.path = path
        self.statements: list[str] = []

    def count(self, statement: str) -> int:
        """Return how often a statement was run."""
        return self.statements.count(statement)

    def numbers(self) -> list[int]:
        """Return what anybody else finds in the file."""
        with sqlite3.connect(self.path) as other:
            found = [number for (number,) in other.execute("SELECT number FROM t ORDER BY number")]
        other.close()
        return found


def note(number: int, connection: sqlite3.Connection) -> int:
    """Store a number; the same one twice is refused."""
    connection.execute("INSERT INTO t VALUES (?)", (number,))
    return number


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    """Return a writer on a file with one table."""
    path = tmp_path / "log.db"
    path.touch()
    connection = await Connection.open(partial(connect, path, writes=True))
    await connection.call(enable_wal)
    await connection.execute_fetchall("CREATE TABLE t (number INTEGER PRIMARY KEY)")
    opened = Log(Writer(connection, StoreFileIdentities(path)), connection, path)
    await connection.set_trace_callback(opened.statements.append)
    try:
        yield opened
    finally:
        await opened.writer.close()


async def gather(log: Log, *works: Callable[[sqlite3.Connection], Any]) -> list[Any]:
    """Return what each work gave or raised, all asked for at once."""
    return await asyncio.gather(*map(log.writer.run, works), return_exceptions=True)


async def test_those_who_wait_share_a_commit(log: Log) -> None:
    """A thousand callers at once need a handful of commits."""
    results = await gather(log, *(partial(note, number) for number in range(1000)))

    assert results == log.numbers() == list(range(1000))
    assert log.count("COMMIT") == log.count("BEGIN IMMEDIATE") == -(-1000 // MAX_GROUP_SIZE)


async def test_those_who_come_during_a_commit_make_the_next_group(log: Log) -> None:
    """Eight callers that each write fifty times in turn need far fewer than 400 commits."""

    async def write(caller: int) -> None:
        for turn in range(50):
            await log.writer.run(partial(note, caller * 100 + turn))

    await asyncio.gather(*map(write, range(8)))

    assert len(log.numbers()) == 400
    assert log.count("COMMIT") <= 100


async def test_one_caller_alone_is_not_kept_waiting(log: Log) -> None:
    """There is no pause to gather others: each call in turn is a commit."""
    for number in range(5):
        assert await log.writer.run(partial(note, number)) == number

    assert log.count("COMMIT") == 5


async def test_a_caller_that_fails_fails_alone(log: Log) -> None:
    """Its work is undone, also what it did before it failed; its neighbours' is stored."""

    def note_twice(connection: sqlite3.Connection) -> None:
        note(100, connection)
        note(100, connection)

    def stumble(connection: sqlite3.Connection) -> None:
        note(200, connection)
        raise LookupError

    results = await gather(
        log, partial(note, 1), note_twice, partial(note, 2), stumble, partial(note, 3)
    )

    assert [type(result) for result in results] == [
        int,
        sqlite3.IntegrityError,
        int,
        LookupError,
        int,
    ]
    assert log.numbers() == [1, 2, 3]
    assert log.count("COMMIT") == 1


async def test_when_the_commit_fails_nobody_is_answered(log: Log) -> None:
    """All callers of the group get an error, nothing is stored, and the next group works."""
    await log.connection.execute_fetchall("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
    await log.connection.execute_fetchall(
        "CREATE TABLE child (id REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"
    )

    def orphan(connection: sqlite3.Connection) -> None:
        # A deferred rule is looked at by COMMIT: the plainest way to have it refused.
        connection.execute("INSERT INTO child VALUES (1)")

    results = await gather(log, partial(note, 1), orphan, partial(note, 2))

    assert [type(result) for result in results] == [sqlite3.IntegrityError] * 3
    assert log.numbers() == []
    assert await gather(log, partial(note, 1)) == [1]
    assert log.numbers() == [1]


async def test_a_file_that_goes_away_during_the_commit_is_noticed(log: Log) -> None:
    """A commit into a file without a name is not acknowledged."""

    def lose_file(_connection: sqlite3.Connection) -> None:
        log.path.rename(log.path.with_suffix(".away"))

    results = await gather(log, partial(note, 1), lose_file)

    assert [type(result) for result in results] == [StoreFileMoved, StoreFileMoved]


async def test_a_caller_is_answered_after_the_commit(log: Log) -> None:
    """At the moment of the answer the row is in the file."""

    async def write(number: int) -> bool:
        await log.writer.run(partial(note, number))
        return number in log.numbers()

    assert all(await asyncio.gather(*map(write, range(50))))


async def test_a_caller_that_goes_away_harms_nobody(log: Log) -> None:
    """Work that has begun is finished, work that waits is dropped, the others are answered."""
    tasks = [asyncio.create_task(log.writer.run(partial(note, number))) for number in range(600)]
    await asyncio.sleep(0)  # every call waits in line now
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert results[1::2] == list(range(1, 600, 2))
    assert {type(result) for result in results[::2]} == {asyncio.CancelledError}
    assert set(range(1, 600, 2)) <= set(log.numbers())
    assert await gather(log, partial(note, 1000)) == [1000]


async def test_callers_that_all_went_away_cost_nothing(log: Log) -> None:
    """A line of callers that nobody is left of makes no transaction of rows."""
    tasks = [asyncio.create_task(log.writer.run(partial(note, number))) for number in range(5)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert await gather(log, partial(note, 9)) == [9]
    assert log.numbers() == [9]


async def test_a_closed_writer_answers_those_who_wait_and_refuses_the_next(log: Log) -> None:
    """Closing finishes what is under way."""
    tasks = [asyncio.create_task(log.writer.run(partial(note, number))) for number in range(600)]
    await asyncio.sleep(0)
    await log.writer.close()

    assert await asyncio.gather(*tasks) == list(range(600))
    with pytest.raises(Problem) as refusal:
        await log.writer.run(partial(note, 1000))
    assert refusal.value.code == "unavailable"


async def test_a_cancelled_writer_fails_its_waiting_callers(log: Log) -> None:
    """A loop that is torn down leaves no caller behind without an answer."""
    tasks = [asyncio.create_task(log.writer.run(partial(note, number))) for number in range(600)]
    await asyncio.sleep(0)
    committing = log.writer._task  # noqa: SLF001  what a loop that ends would cancel
    assert committing is not None
    committing.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert {type(result) for result in results} == {Problem}
    assert await gather(log, partial(note, 1000)) == [1000]


async def test_a_function_runs_in_the_thread_of_the_connection(log: Log) -> None:
    """The one trip for many statements, which leans on a protected name of aiosqlite, works."""
    seen: list[bool] = []

    def work(connection: sqlite3.Connection) -> int:
        seen.append(connection is log.connection._conn)  # noqa: SLF001  the same connection
        return sum(connection.execute("SELECT ?", (number,)).fetchone()[0] for number in range(9))

    def fail(_connection: sqlite3.Connection) -> None:
        raise LookupError("told to the caller")

    assert await log.connection.call(work) == 36
    assert seen == [True]
    with pytest.raises(LookupError, match="told to the caller"):
        await log.connection.call(fail)
