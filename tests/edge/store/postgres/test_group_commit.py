"""The connection that writes: many callers, few commits, and none pays for another."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import asyncpg
import pytest

from edge_api.db.postgres.connection import Connection, PostgresConnection
from edge_api.db.postgres.store_connections import Location, Writer
from edge_api.db.problems import Problem
from edge_api.db.transaction import MAX_GROUP_SIZE

pytestmark = pytest.mark.size("test")


class Log:
    """A writer of its own on a small table, and the statements that it runs."""

    def __init__(
        self, writer: Writer, session: PostgresConnection, rival: PostgresConnection
    ) -> None:
        self.writer = writer
        self._rival = rival
        self.statements: list[str] = []
        # A commit is the last line of a text, below the mark of its group.
        session.add_query_logger(
            lambda record: self.statements.append(record.query.splitlines()[-1])
        )

    async def numbers(self) -> list[int]:
        """Return what anybody else finds in the table."""
        return [row[0] for row in await self._rival.fetch("SELECT number FROM t ORDER BY number")]

    async def gather(self, *works: Callable[[Connection], Any]) -> list[Any]:
        """Return what each work gave or raised, all asked for at once."""
        return await asyncio.gather(*map(self.writer.run, works), return_exceptions=True)


async def note(number: int, connection: Connection) -> int:
    """Store a number; the same one twice is refused."""
    await connection.execute("INSERT INTO t VALUES ($1)", number)
    return number


@pytest.fixture
async def log(url: str, rival: PostgresConnection) -> Any:
    """Return a writer on a database with one more table."""
    await rival.execute("CREATE TABLE t (number bigint PRIMARY KEY)")
    writer = Writer(Location(url))
    opened = Log(writer, await writer.connect(), rival)
    yield opened
    await writer.close()


async def test_those_who_wait_share_a_commit(log: Log) -> None:
    """Many callers at once need a handful of commits."""
    results = await log.gather(*(partial(note, number) for number in range(600)))

    assert results == await log.numbers() == list(range(600))
    assert log.statements.count("COMMIT") == -(-600 // MAX_GROUP_SIZE)
    assert "SAVEPOINT work" not in log.statements


async def test_a_caller_that_fails_fails_alone(log: Log) -> None:
    """Its work is undone, also what it did before it failed; its neighbours' is stored."""

    async def note_twice(connection: Connection) -> None:
        await note(100, connection)
        await note(100, connection)

    async def stumble(connection: Connection) -> None:
        await note(200, connection)
        raise LookupError

    results = await log.gather(
        partial(note, 1), note_twice, partial(note, 2), stumble, partial(note, 3)
    )

    assert [type(result) for result in results] == [
        int,
        asyncpg.UniqueViolationError,
        int,
        LookupError,
        int,
    ]
    assert await log.numbers() == [1, 2, 3]
    assert log.statements.count("COMMIT") == 1


async def test_a_caller_that_fails_alone_keeps_the_connection(log: Log) -> None:
    """There are no neighbours to be kept apart, and the next caller is served by the same one."""
    await log.gather(partial(note, 1))
    (refused,) = await log.gather(partial(note, 1))
    assert isinstance(refused, asyncpg.UniqueViolationError)

    assert await log.gather(partial(note, 2)) == [2]
    assert await log.numbers() == [1, 2]
    assert log.statements.count("COMMIT") == 3


async def test_when_the_commit_fails_nobody_is_answered(
    log: Log, rival: PostgresConnection
) -> None:
    """All callers of the group get an error, nothing is stored, and the next group works."""
    await rival.execute(
        "CREATE TABLE parent (id bigint PRIMARY KEY);"
        "CREATE TABLE child (id bigint REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
    )

    async def orphan(connection: Connection) -> None:
        # A deferred rule is looked at by COMMIT: the plainest way to have it refused.
        await connection.execute("INSERT INTO child VALUES (1)")

    results = await log.gather(partial(note, 1), orphan, partial(note, 2))

    assert [type(result) for result in results] == [asyncpg.ForeignKeyViolationError] * 3
    assert log.writer.last_commit_failed
    assert await log.gather(partial(note, 1)) == [1]
    assert await log.numbers() == [1]


async def test_a_transaction_that_failed_unseen_is_not_acknowledged(log: Log) -> None:
    """PostgreSQL answers COMMIT of a failed transaction without an error, having undone it."""

    async def swallow(connection: Connection) -> None:
        await note(1, connection)
        with pytest.raises(asyncpg.UniqueViolationError):
            await note(1, connection)

    (result,) = await log.gather(swallow)

    assert isinstance(result, Problem)
    assert await log.numbers() == []


async def test_a_caller_is_answered_after_the_commit(log: Log) -> None:
    """At the moment of the answer the row is in the table."""
    lock = asyncio.Lock()

    async def write(number: int) -> bool:
        await log.writer.run(partial(note, number))
        async with lock:
            return number in await log.numbers()

    assert all(await asyncio.gather(*map(write, range(20))))


async def test_a_caller_that_goes_away_harms_nobody(log: Log) -> None:
    """Work that has begun is finished, work that waits is dropped, the others are answered."""
    tasks = [asyncio.create_task(log.writer.run(partial(note, number))) for number in range(300)]
    await asyncio.sleep(0)  # every call waits in line now
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert results[1::2] == list(range(1, 300, 2))
    assert set(range(1, 300, 2)) <= set(await log.numbers())


async def test_a_cancelled_writer_fails_its_waiting_callers(log: Log) -> None:
    """A loop that is torn down leaves no caller behind without an answer."""
    tasks = [asyncio.create_task(log.writer.run(partial(note, number))) for number in range(300)]
    await asyncio.sleep(0.01)
    committing = log.writer._task  # noqa: SLF001  what a loop that ends would cancel
    assert committing is not None
    committing.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert {type(result) for result in results} <= {Problem, int}
    assert Problem in {type(result) for result in results}
    acknowledged = {result for result in results if isinstance(result, int)}
    assert acknowledged <= set(await log.numbers())
