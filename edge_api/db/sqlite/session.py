"""The connections of an open store: one writes, some read, one watches for changes.

They serve one file. When that file is replaced, others have to take their place.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Final, Self

from edge_api.db.errors import query_timeout, unavailable
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.query import Query, QueryResult, Read, ilike, like
from edge_api.db.sqlite.connection import (
    STEPS_BETWEEN_CHECKS,
    Connection,
    Deadline,
    connect,
    enable_checkpoints,
)
from edge_api.db.sqlite.errors import FileIdentity
from edge_api.db.sqlite.execution import ILIKE, LIKE, execute
from edge_api.db.sqlite.opening import enable_wal, schema_version
from edge_api.db.sqlite.writer import QueryBatch, Writer

Match = Callable[[str | None, str], bool | None]

FAST_READERS: Final = 2
SLOW_READERS: Final = 2
"""Connections of each kind; each has a thread of its own."""
FAST_SECONDS: Final = 10.0
"""The limit of a read that sets none: it is meant to take milliseconds."""
READER_CLOSE_SECONDS: Final = 1.0
"""The time left to a read when its connection is being closed."""


class Reader:
    """One connection that only reads."""

    def __init__(self, connection: Connection, files: FileIdentity) -> None:
        self._connection = connection
        self._files = files
        self._deadlines: list[Deadline] = []
        self._deadline = Deadline(0)
        """Of the read that is going on now; known to the connection's thread alone."""
        self._closed = False

    @classmethod
    async def open(cls, path: Path, files: FileIdentity) -> Self:
        """Return a reader of the store at `path`. Raises sqlite3.Error."""
        reader = cls(await Connection.open(partial(connect, path, writes=False)), files)
        await reader._connection.call(reader._set_deadline_checks)
        return reader

    def _set_deadline_checks(self, connection: sqlite3.Connection) -> None:
        """Check the deadline between instructions, and in each call of a slow function."""

        def timed(match: Match) -> Match:
            def match_in_time(text: str | None, pattern: str) -> bool | None:
                if self._is_expired():
                    connection.interrupt()
                return match(text, pattern)

            return match_in_time

        connection.set_progress_handler(self._is_expired, STEPS_BETWEEN_CHECKS)
        connection.create_function(LIKE, 2, timed(like), deterministic=True)
        connection.create_function(ILIKE, 2, timed(ilike), deterministic=True)

    def _is_expired(self) -> bool:
        return self._deadline.is_expired()

    @property
    def load(self) -> int:
        """Return the number of its reads, running and waiting."""
        return len(self._deadlines)

    async def run(self, queries: Sequence[Read], seconds: float) -> list[QueryResult]:
        """Return the results, all of one snapshot; `seconds` include the wait for its turn.

        Raises Problem, sqlite3.Error and StoreFileMoved.
        """
        if self._closed:
            raise unavailable("The store is closed")
        deadline = Deadline(seconds)
        self._deadlines.append(deadline)
        try:
            return await self._connection.call(partial(self._read_snapshot, queries, deadline))
        except asyncio.CancelledError:
            deadline.shorten(0)
            raise
        finally:
            self._deadlines.remove(deadline)

    def _read_snapshot(
        self, queries: Sequence[Read], deadline: Deadline, connection: sqlite3.Connection
    ) -> list[QueryResult]:
        if deadline.is_expired():
            raise query_timeout()
        self._files.check()
        self._deadline = deadline
        if len(queries) > 1 or queries[0].with_total:  # one statement has a snapshot of its own
            connection.execute("BEGIN")
        try:
            (results,) = execute(connection, [queries])
            return results
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    async def close(self) -> None:
        """Let running reads finish within a moment, and close."""
        self._closed = True
        for deadline in self._deadlines:
            deadline.shorten(READER_CLOSE_SECONDS)
        await self._connection.close()


class Readers:
    """All readers of a store; slow reads never delay fast ones."""

    def __init__(self, fast: Sequence[Reader], slow: Sequence[Reader]) -> None:
        self._fast = fast
        self._slow = slow

    async def run(self, queries: Sequence[Read]) -> list[QueryResult]:
        """Return the results, all of one snapshot. Raises as `Reader.run` does."""
        seconds = max(
            (query.timeout for query in queries if query.timeout is not None), default=None
        )
        if seconds is None:
            return await _least_busy(self._fast).run(queries, FAST_SECONDS)
        return await _least_busy(self._slow).run(queries, seconds)

    async def close(self) -> None:
        """Close every reader."""
        await asyncio.gather(*(reader.close() for reader in (*self._fast, *self._slow)))


def _least_busy(readers: Sequence[Reader]) -> Reader:
    return min(readers, key=lambda reader: reader.load)


CLOSE_SECONDS: Final = 5.0
"""How long closing the readers, and then the writer, may take."""
MIN_FREE_BYTES: Final = 1024 * 1024
"""Free bytes of the disk below which the store counts as full."""


class StoreConnections:
    """The connections of a store in use."""

    def __init__(
        self, writer: Writer, readers: Readers, version_connection: sqlite3.Connection
    ) -> None:
        self.writer = writer
        self._readers = readers
        self._version_connection = version_connection
        self.is_open = True
        self._version: int | None = None
        self._was_in_task = False
        """Whether a task was the first to get this version."""

    async def run(self, queries: Sequence[Query]) -> list[QueryResult]:
        """Run the queries in one transaction; those that only read go to a reader.

        Raises Problem, sqlite3.Error and StoreFileMoved.
        """
        reads = [query for query in queries if isinstance(query, Read)]
        if len(reads) == len(queries):
            return await self._readers.run(reads)
        results: list[QueryResult] = await self.writer.run(QueryBatch(queries))
        return results

    def version(self) -> int:
        """Return `PRAGMA data_version`: it changes with each commit of any other connection.

        A query takes file locks (4 to 15 microseconds), so its result is cached for the rest of
        the event loop's iteration: requests handled in one iteration arrived before it, so none
        can depend on a later commit. A result cached by a task is not used by socket callbacks:
        uvloop runs these before `call_soon` clears it, and a long task may have run in between.
        """
        in_task = asyncio.current_task() is not None
        if self._version is None or (self._was_in_task and not in_task):
            (self._version,) = self._version_connection.execute("PRAGMA data_version").fetchone()
            self._was_in_task = in_task
            asyncio.get_running_loop().call_soon(self._forget_version)
        return self._version

    def _forget_version(self) -> None:
        self._version = None

    async def scrub(self, *, full: bool) -> bool:
        """Remove deleted rows from the log too, unless it is read; return the success."""
        return await self.writer.truncate_wal(vacuum=full)

    async def probe(self) -> None:
        """Return when the store could be written.

        The write lock shows that, and is shared with those who write at this moment. After a
        group was lost only a real commit shows it: a disk that is full gives out locks.
        """
        await self.writer.run(partial(_check_writable, commits=self.writer.failed))

    async def close(self, *, truncates_wal: bool = False) -> None:
        """Finish what is under way and close every connection, whatever the disk does.

        `truncates_wal` writes the WAL into the file, even if that was moved. Without it SQLite does
        so when nobody else has the file open.
        """
        if not self.is_open:
            return
        self.is_open = False
        self._version_connection.close()
        with suppress(TimeoutError, sqlite3.Error):
            await asyncio.wait_for(self._readers.close(), CLOSE_SECONDS)
        with suppress(TimeoutError, sqlite3.Error):
            await asyncio.wait_for(self.writer.close(truncates_wal=truncates_wal), CLOSE_SECONDS)


def _check_writable(connection: sqlite3.Connection, *, commits: bool) -> None:
    version = schema_version(connection)
    if version != len(MIGRATIONS):
        raise unavailable(f"The store has schema version {version}, not {len(MIGRATIONS)}")
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    if disk_usage(file).free < MIN_FREE_BYTES:
        raise unavailable("The disk of the store is full")
    if commits:
        connection.execute(f"PRAGMA user_version = {version}")


async def open_connections(path: Path, *, exclusive: bool, replicated: bool) -> StoreConnections:
    """Open a store that is known to be sound; `exclusive` for the one edge that serves it.

    Only the commits of an edge whose store nobody replicates checkpoint the log.

    Raises sqlite3.Error, StoreFileMoved, and StoreRefusal where write-ahead logging does not work.
    """
    async with AsyncExitStack() as stack:

        async def reader() -> Reader:
            reader = await Reader.open(path, files)
            stack.push_async_callback(reader.close)
            return reader

        version_connection = await asyncio.to_thread(connect, path, writes=False, wait=0)
        stack.callback(version_connection.close)
        writing = await Connection.open(partial(connect, path, writes=True))
        stack.push_async_callback(writing.close)
        await writing.call(enable_wal)
        if exclusive and not replicated:
            await writing.call(enable_checkpoints)
        files = FileIdentity(path)
        fast = [await reader() for _ in range(FAST_READERS)]
        slow = [await reader() for _ in range(SLOW_READERS)]
        writer = Writer(writing, files, tracks_wal_size=exclusive and replicated)
        stack.pop_all()
        return StoreConnections(writer, Readers(fast, slow), version_connection)
