"""The connections of a store: one writes, in shared transactions, and others read.

Each caller is answered after the commit. Each transaction first takes the same lock, so that only
one of all edges on the database writes at a time, and the lowest isolation level is enough.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast
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
    identify,
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

    def __init__(self, url: str) -> None:
        self._url = url
        self._fast: Pool
        self._slow: Pool
        self._pools: list[Pool] = []

    async def reopen(self) -> None:
        """Open the pools, and end all reads on the server of before, if there was one."""
        former, limit = self._pools, milliseconds(FAST_SECONDS)
        settings = {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}
        self._fast, self._slow = self._pools = [
            await open_pool(self._url, size, settings, prepare=_forbid_writes)
            for size in (FAST_READERS, SLOW_READERS)
        ]
        for pool in former:
            pool.terminate()

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
        await asyncio.gather(*map(_close, self._pools))


async def _forbid_writes(session: Connection) -> None:
    # Not at the start: there it would mean that the server takes no writes (target_session_attrs).
    await session.execute("SET default_transaction_read_only = on")


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

COMMIT_SECONDS: Final = STATEMENT_SECONDS + MARGIN_SECONDS
"""The time limit of a COMMIT, which waits for synchronous standbys."""

_BEGIN: Final = f"BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK})"
# A group that changed nothing has no transaction id and stores no mark, which would look like a
# change to every edge that polls the version. A time limit of the server's would end the wait for
# a synchronous standby, and call the commit a success.
_COMMIT: Final = """
INSERT INTO write_marks (writer, number) SELECT '{writer}', {number}
WHERE pg_current_xact_id_if_assigned() IS NOT NULL
ON CONFLICT (writer) DO UPDATE SET number = excluded.number, marked_at = now();
SET LOCAL statement_timeout = 0;
COMMIT"""
_DELETE_MARKS: Final = """
DELETE FROM write_marks
WHERE pg_current_xact_id_if_assigned() IS NOT NULL AND marked_at < now() - interval '1 day';
"""
"""Deletes the marks of writers that have ended; the first group of each writer does so."""
_LOST: Final = "The store's server went away in the middle of a commit"
_UNCONFIRMED: Final = "No standby has confirmed the commit"


class Location:
    """The server that a store is on; when a session leads to another one, all parts move there.

    A role without the right to call `pg_control_system` is not protected from a former primary.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.on_move: list[Callable[[], Awaitable[None]]] = []
        """Called after a move; each part gives up its sessions."""
        self._server = ("", "")
        self._lock = asyncio.Lock()

    async def connect(
        self, settings: Mapping[str, str], seconds: float
    ) -> tuple[PostgresConnection, tuple[str, str]]:
        """Open a session, and `identify` its server; `seconds` limit each answer.

        Raises EngineError.
        """
        session = await connect(self._url, settings, seconds)
        try:
            server = await identify(session)
            # One at a time: two sessions that find the same successor move the parts once.
            async with self._lock:
                former = self._server
                if server[0] == former[0] and server < former:
                    words = f"a former primary: {server} was succeeded by {former}"
                    raise asyncpg.TargetServerAttributeNotMatched(words)  # noqa: TRY301
                if former[1] and server[0] and former != server:
                    await asyncio.gather(*(give_up() for give_up in self.on_move))
                self._server = server if server[0] else former
        except BaseException:
            session.terminate()
            raise
        return session, server


class Writer(GroupCommitter[Work | Sequence[Query]]):
    """Commits groups of work; the next group after a lost connection opens a new one."""

    def __init__(self, location: Location) -> None:
        super().__init__()
        self._location = location
        self._is_unconfirmed = False
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
                self._session, self._server = await self._location.connect(
                    {
                        "idle_in_transaction_session_timeout": milliseconds(IDLE_SECONDS),
                        "lock_timeout": milliseconds(LOCK_SECONDS),
                        "statement_timeout": milliseconds(STATEMENT_SECONDS),
                    },
                    STATEMENT_SECONDS + MARGIN_SECONDS,
                )
                self._session.add_log_listener(self._note_warning)
            except EngineError:
                await self.drop()
                self._reconnect_at = time.monotonic() + RECONNECT_SECONDS
                raise
        return self._session

    async def close(self) -> None:
        """Commit waiting work, for a few seconds at the most, and refuse the rest."""
        await super().close()
        await self.drop()

    async def drop(self) -> None:
        """Give up the session."""
        if self._session is not None:
            self._session.terminate()

    def _note_warning(self, _session: Connection, message: asyncpg.PostgresLogMessage) -> None:
        # Its text is in the server's language. The commit is stored, but on this server alone.
        if message.server_source_filename == "syncrep.c":
            self._is_unconfirmed = True

    async def _end(self, session: PostgresConnection, text: str) -> None:
        """Send a text that ends the transaction, and return once standbys have confirmed it too.

        Raises EngineError and Problem.
        """
        self._is_unconfirmed = False
        # asyncpg's limit sends a request to cancel, which would end the wait for standbys and call
        # the commit a success; without it the server goes on waiting.
        limit = asyncio.get_running_loop().call_later(COMMIT_SECONDS, session.terminate)
        try:
            await session.execute(text, timeout=2 * COMMIT_SECONDS)
        finally:
            limit.cancel()
        if self._is_unconfirmed:
            raise unavailable(_UNCONFIRMED)

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
                await self._end(
                    session,
                    (_DELETE_MARKS if self._group_number == 1 else "")
                    + _COMMIT.format(writer=self._id, number=self._group_number),
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
            is_refused = isinstance(error, asyncpg.LockNotAvailableError)
            if (
                is_refused
                or not isinstance(error, asyncpg.PostgresError)
                or is_disconnection(error)
            ):
                # Its state is unknown: close it, so that the server rolls its transaction back. Who
                # keeps the lock may be a commit on a former primary, which waits for ever.
                await self.drop()
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

        Its standbys have it too. Raises TimeoutError once the store is closed.
        """
        while True:
            await self.drop()
            with suppress(*EngineError, Problem):
                session = await self.connect()
                # The lock is free once the lost transaction was committed or rolled back.
                await session.execute(_BEGIN)
                # A change, which a read-only server refuses, such as a standby or a fenced primary.
                # Once standbys have confirmed it, they have all that was committed before.
                number = await session.fetchval(
                    "UPDATE write_marks SET marked_at = now() WHERE writer = $1 RETURNING number",
                    self._id,
                )
                await self._end(session, "SET LOCAL statement_timeout = 0; END")
                return cast("int | None", number)
            if self._closed:
                raise TimeoutError
            await asyncio.sleep(RECONNECT_SECONDS)


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
