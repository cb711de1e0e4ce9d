"""The connections of a store: one writes, in shared transactions, and others read.

Each caller is answered after the commit. Each transaction first takes the same lock, so that only
one of all edges on the database writes at a time, and the lowest isolation level is enough.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Self, cast
from uuid import uuid4

import asyncpg

from edge_api.db.errors import outcome_unknown, query_timeout, unavailable
from edge_api.db.postgres.connection import (
    IDLE_TIMEOUT_SQLSTATE,
    MARGIN_SECONDS,
    UNREACHABLE,
    Connection,
    EngineError,
    Pool,
    PostgresConnection,
    connect,
    execute,
    is_disconnection,
    milliseconds,
    open_pool,
    sqlstate_of,
)
from edge_api.db.problems import Problem
from edge_api.db.query import Query, QueryResult, Read
from edge_api.db.transaction import GroupCommitter

FAST_READERS: Final = 4
SLOW_READERS: Final = 2
"""The numbers of connections: with writer and poller eight at most, of a server's usual 100."""
FAST_SECONDS: Final = 10.0  # the limit of a read that sets none: it is meant to take milliseconds
RELEASE_SECONDS: Final = 1.0
"""The time for the server to end an abandoned read; after that its connection is closed."""
CLOSE_SECONDS: Final = 1.0  # the time for reads to finish when the store is closed


class Readers:
    """The connections that read: one pool for fast reads, and one for slow ones.

    Slow reads never delay fast ones. The pools replace lost connections.
    """

    def __init__(self, fast: Pool, slow: Pool) -> None:
        self._fast = fast
        self._slow = slow

    @classmethod
    async def open(cls, url: str) -> Self:
        """Return readers of the database at `url`; connections are opened when needed."""
        limit = milliseconds(FAST_SECONDS)
        settings = {
            "default_transaction_read_only": "on",
            "statement_timeout": limit,
            "idle_in_transaction_session_timeout": limit,
        }
        return cls(
            await open_pool(url, FAST_READERS, settings),
            await open_pool(url, SLOW_READERS, settings),
        )

    async def run(self, queries: Sequence[Read]) -> list[QueryResult]:
        """Return the results, all from one snapshot. Raises Problem and EngineError."""
        seconds = max(
            (query.timeout for query in queries if query.timeout is not None), default=None
        )
        if seconds is None:
            return await _read(self._fast, queries, FAST_SECONDS)
        return await _read(self._slow, queries, seconds, is_limited=True)

    async def close(self) -> None:
        """Let running reads finish within CLOSE_SECONDS, and close the connections."""
        await asyncio.gather(_close(self._fast), _close(self._slow))


async def _close(pool: Pool) -> None:
    try:
        await asyncio.wait_for(pool.close(), CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()


async def _read(
    pool: Pool, queries: Sequence[Read], seconds: float, *, is_limited: bool = False
) -> list[QueryResult]:
    ends_at = time.monotonic() + seconds
    try:
        async with asyncio.timeout(seconds + MARGIN_SECONDS):
            connection = await pool.acquire(timeout=seconds)
            try:
                if len(queries) == 1 and not queries[0].with_total and not is_limited:
                    (results,) = await execute(connection, [queries])
                    return results
                return await _read_snapshot(connection, queries, ends_at - time.monotonic())
            finally:
                await pool.release(connection, timeout=RELEASE_SECONDS)
    except TimeoutError:
        if time.monotonic() < ends_at:
            raise  # a new connection took too long, not the read
        raise query_timeout() from None
    except asyncpg.QueryCanceledError:
        raise query_timeout() from None


async def _read_snapshot(
    connection: Connection, queries: Sequence[Read], seconds: float
) -> list[QueryResult]:
    try:
        await connection.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SET LOCAL statement_timeout = {milliseconds(seconds)}"
        )
        (results,) = await execute(connection, [queries])
        await connection.execute("COMMIT")
    except BaseException:
        # The pool would roll the transaction back too, but log an error.
        try:
            await connection.execute("ROLLBACK", timeout=RELEASE_SECONDS)
        except EngineError:
            with suppress(asyncpg.InterfaceError):  # the pool has removed it already
                connection.terminate()
        raise
    return results


Work = Callable[[Connection], Awaitable[Any]]
"""Runs statements in a transaction that its caller begins and ends; it may run more than once."""
Works = Sequence[Work | Sequence[Query]]
"""The works of one group; its lists of queries share trips to the server."""


WRITE_LOCK: Final = 0x666F7265
"""The key of the advisory lock of every writer and migration: `fore` in ASCII."""
IDLE_SECONDS: Final = 3.0
"""The time limit of a pause between statements: then an edge that was cut off loses the lock."""
LOCK_SECONDS: Final = 5.0
"""The time limit of a group's wait for the write lock; an edge that was cut off loses it sooner."""
STATEMENT_SECONDS: Final = 8.0  # the limit of one statement, the wait for the lock included
RECONNECT_SECONDS: Final = 0.5  # the pause after a failed attempt to connect
RESOLVE_SECONDS: Final = 10.0
"""The time limit of finding out whether a group is stored whose COMMIT got no answer."""

_BEGIN: Final = f"BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK})"
# A group that changed nothing has no transaction id and stores no mark, which would look like a
# change to every edge that polls the version.
_COMMIT: Final = """
INSERT INTO write_marks (writer, number) SELECT '{writer}', {number}
WHERE pg_current_xact_id_if_assigned() IS NOT NULL
ON CONFLICT (writer) DO UPDATE SET number = excluded.number, marked_at = now();
COMMIT"""
_DELETE_MARKS: Final = """
DELETE FROM write_marks
WHERE pg_current_xact_id_if_assigned() IS NOT NULL AND marked_at < now() - interval '1 day';
"""
"""Deletes the marks of writers that have ended; the first group of each writer does so."""
_LOST: Final = "The store's server went away in the middle of a commit"


class Writer(GroupCommitter[Work | Sequence[Query]]):
    """Commits groups of work; the next group after a lost connection opens a new one."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._session: PostgresConnection | None = None
        self._server = ("", "")
        self._reconnect_at = 0.0
        self._id = str(uuid4())
        self._group_number = 0

    async def connect(self) -> PostgresConnection:
        """Return the connection, a new one if the last is lost. Raises EngineError and Problem."""
        if self._session is None or self._session.is_closed():
            if time.monotonic() < self._reconnect_at:
                raise unavailable(UNREACHABLE)
            try:
                self._session = await connect(
                    self._url,
                    {
                        "idle_in_transaction_session_timeout": milliseconds(IDLE_SECONDS),
                        "lock_timeout": milliseconds(LOCK_SECONDS),
                        "statement_timeout": milliseconds(STATEMENT_SECONDS),
                    },
                    STATEMENT_SECONDS + MARGIN_SECONDS,
                )
                self._server = await _identify(self._session)
            except EngineError:
                self._drop()
                self._reconnect_at = time.monotonic() + RECONNECT_SECONDS
                raise
        return self._session

    async def close(self) -> None:
        """Commit waiting work, for a few seconds at the most, and refuse the rest."""
        await super().close()
        self._drop()

    def _drop(self) -> None:
        if self._session is not None:
            self._session.terminate()

    async def _commit(self, works: Works) -> list[Any]:
        """Commit a group as `_commit_on` does, with a second try after a lost connection."""
        session = await self.connect()
        try:
            return await self._commit_on(session, works)
        except EngineError as error:
            # A connection lost before COMMIT: nothing is stored. A timeout has no second try.
            if self._closed or isinstance(error, TimeoutError) or not is_disconnection(error):
                raise
        return await self._commit_on(await self.connect(), works)

    async def _commit_on(self, session: PostgresConnection, works: Works) -> list[Any]:
        """Run each work, commit once, and return all results or exceptions.

        Raises EngineError and Problem when the group is not stored, or may not be.
        """
        self._group_number += 1
        try:
            await session.execute(_BEGIN)
            results = await _run_all(session, works)
            try:
                await session.execute(
                    (_DELETE_MARKS if self._group_number == 1 else "")
                    + _COMMIT.format(writer=self._id, number=self._group_number)
                )
            except asyncpg.InFailedSQLTransactionError as error:
                raise unavailable("The store could not keep the change") from error
            except Exception as error:
                # The server has rolled the group back if it keeps the session open after the error,
                # and if it ended an idle transaction, which asyncpg gives as the cause.
                if getattr(error, "severity_en", "") == "ERROR" or IDLE_TIMEOUT_SQLSTATE in (
                    sqlstate_of(error),
                    sqlstate_of(error.__cause__),
                ):
                    raise
                await self._check_stored(error)
        except BaseException as error:
            if not isinstance(error, asyncpg.PostgresError) or is_disconnection(error):
                # Its state is unknown: close it, so that the server rolls its transaction back.
                self._drop()
            else:
                await session.execute("ROLLBACK")
            raise
        return results

    async def _check_stored(self, error: Exception) -> None:
        """Return if the group whose COMMIT got no answer is stored; else raise Problem."""
        system, timeline = before = self._server
        with suppress(TimeoutError):
            number = await asyncio.wait_for(self._last_mark(), RESOLVE_SECONDS)
            # A promoted standby continues on a later timeline, with the rows that it has received.
            # If it has the mark, the group is stored; if not, the former server may have stored it.
            if (
                number == self._group_number
                and self._server >= before
                and self._server[0] == system
            ):
                return
            if number != self._group_number and self._server == before and timeline:
                raise unavailable(f"{_LOST}; nothing was stored") from error
        raise outcome_unknown(_LOST) from error

    async def _last_mark(self) -> int | None:
        """Return the number of this writer's newest group on a server that accepts writes.

        Raises TimeoutError once the store is closed.
        """
        while True:
            self._drop()
            with suppress(*EngineError, Problem):
                session = await self.connect()
                # The lock is free once the lost transaction was committed or rolled back.
                await session.execute(f"{_BEGIN}; ROLLBACK")
                # A read-only server returns no row, such as a standby or a fenced primary.
                for (number,) in await session.fetch(
                    "SELECT (SELECT number FROM write_marks WHERE writer = $1) "
                    "WHERE NOT pg_is_in_recovery() "
                    "AND NOT current_setting('transaction_read_only')::bool",
                    self._id,
                ):
                    return cast("int | None", number)
            if self._closed:
                raise TimeoutError
            await asyncio.sleep(RECONNECT_SECONDS)


async def _identify(session: PostgresConnection) -> tuple[str, str]:
    """Return the server's system identifier, and its timeline in hexadecimal digits.

    Each promotion increases the timeline; a standby has none. Both are empty if access is denied.
    """
    try:
        ((system, timeline),) = await session.fetch(
            "SELECT system_identifier::text, CASE WHEN pg_is_in_recovery() THEN '' "
            "ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END FROM pg_control_system()"
        )
    except asyncpg.PostgresError:
        return "", ""
    return system, timeline


async def _run_all(session: PostgresConnection, works: Works) -> list[Any]:
    """Run the works together; if one fails, begin again with a savepoint for each."""
    try:
        return await _run_together(session, works)
    except Exception as error:  # noqa: BLE001  at the second run each caller gets its own error
        _raise_if_lost(session, error)
        await session.execute(f"ROLLBACK; {_BEGIN}")
        return [await _attempt(session, work) for work in works]


async def _run_together(session: PostgresConnection, works: Works) -> list[Any]:
    lists = [work for work in works if not callable(work)]
    results = iter(await execute(session, lists, defer_inserts=True))
    return [await work(session) if callable(work) else next(results) for work in works]


async def _attempt(session: PostgresConnection, work: Work | Sequence[Query]) -> Any:
    await session.execute("SAVEPOINT work")
    try:
        (result,) = await _run_together(session, [work])
    except Exception as error:  # noqa: BLE001  the caller of the work gets it
        _raise_if_lost(session, error)
        await session.execute("ROLLBACK TO work; RELEASE work")
        return error
    await session.execute("RELEASE work")
    return result


def _raise_if_lost(session: PostgresConnection, error: Exception) -> None:
    if session.is_closed() or is_disconnection(error):
        raise error
