"""The connections of an open store: one writes, some read, one watches for changes.

They belong to one file: when it is replaced, new connections have to be opened. Works that wait for
the writer at once share a transaction and its sync to the disk, and each caller is answered after
the commit. Savepoints separate the works: one that fails is rolled back alone.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final

from edge_api.db.errors import query_timeout, unavailable
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.query import Query, QueryResult, Read
from edge_api.db.sqlite.connection import (
    Connection,
    Readers,
    connect,
    enable_checkpoints,
    execute,
    truncate_wal,
)
from edge_api.db.sqlite.errors import StoreFileIdentities
from edge_api.db.sqlite.opening import enable_wal, schema_version
from edge_api.db.sqlite.search_index import maintain_search_index
from edge_api.db.transaction import GroupCommitter

Work = Callable[[sqlite3.Connection], Any]
"""Runs statements in a transaction that its caller begins and ends; it may run a second time."""
Works = Sequence[Work | Sequence[Query]]
"""The works of one group; its lists of queries share statements."""


class Writer(GroupCommitter[Work | Sequence[Query]]):
    """Commits groups of work on the connection that writes."""

    def __init__(self, connection: Connection, files: StoreFileIdentities) -> None:
        super().__init__()
        self._connection = connection
        self.files = files

    async def truncate_wal(self, *, vacuum: bool) -> bool:
        """Truncate the log between two groups; return whether no reader prevented it."""
        self.refuse_closed()
        return await self._connection.call(partial(truncate_wal, vacuum=vacuum))

    async def close(self, *, truncates_wal: bool = False) -> None:
        """Commit waiting work, for a few seconds at the most, and refuse the rest."""
        if self._closed:
            return
        await super().close()
        try:
            if truncates_wal:
                await self._connection.call(truncate_wal)
        finally:
            await self._connection.close()

    async def _commit(self, works: Works) -> list[Any]:
        """Call `commit_together` in the connection's thread, and return its results."""
        return await self._connection.call(partial(commit_together, self.files, works))


def commit_together(
    files: StoreFileIdentities, works: Works, connection: sqlite3.Connection
) -> list[Any]:
    """Run each work, commit once, and return all results.

    The result of a work that fails is its exception. Raises sqlite3.Error and StoreFileMoved when
    nothing of the whole group is durable.
    """
    files.check()
    connection.execute("BEGIN IMMEDIATE")
    try:
        results = _run_all(connection, works)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    files.check()
    return results


def _run_all(connection: sqlite3.Connection, works: Works) -> list[Any]:
    """Run the works together; if one fails, begin again with a savepoint for each.

    Savepoints are the most expensive part of a transaction, and works hardly ever fail.
    """
    try:
        return _run_together(connection, works)
    except Exception:  # noqa: BLE001  the second attempt shows which work fails
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        return [_attempt(connection, work) for work in works]


def _run_together(connection: sqlite3.Connection, works: Works) -> list[Any]:
    lists = [work for work in works if not callable(work)]
    results = iter(execute(connection, lists, defer_inserts=True))
    return [work(connection) if callable(work) else next(results) for work in works]


def _attempt(connection: sqlite3.Connection, work: Work | Sequence[Query]) -> Any:
    connection.execute("SAVEPOINT work")
    try:
        (result,) = _run_together(connection, [work])
    except Exception as error:
        # A disk that is full or fails ends the whole transaction, not this work alone.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO work")
        result = error
    connection.execute("RELEASE work")
    return result


FAST_READERS: Final = 2
SLOW_READERS: Final = 2  # connections of each kind; each has a thread of its own
FAST_SECONDS: Final = 10.0  # the limit of a read that sets none: it is meant to take milliseconds
CLOSE_SECONDS: Final = 5.0  # the time limit of closing the readers, and then the writer
MIN_FREE_BYTES: Final = 1024 * 1024  # free bytes of the disk below which the store counts as full


class StoreConnections:
    """All connections of an open store: a writer, fast and slow readers, and one for `version`."""

    def __init__(
        self,
        writer: Writer,
        fast: Readers,
        slow: Readers,
        version_connection: sqlite3.Connection,
    ) -> None:
        self.writer = writer
        self.fast = fast
        self.slow = slow
        self._version_connection = version_connection
        self.is_open = True

    async def run(self, queries: Sequence[Query]) -> list[QueryResult]:
        """Run the queries in one transaction; those that only read go to a reader.

        Slow reads never delay fast ones. Raises Problem, sqlite3.Error and StoreFileMoved.
        """
        reads = [query for query in queries if isinstance(query, Read)]
        if len(reads) < len(queries):
            results: list[QueryResult] = await self.writer.run(queries)
            return results
        if not self.is_open:
            raise unavailable("The store is closed")
        seconds = max((read.timeout for read in reads if read.timeout is not None), default=None)
        readers = self.fast if seconds is None else self.slow
        try:
            work = partial(self._read_snapshot, reads)
            return await readers.run(work, FAST_SECONDS if seconds is None else seconds)
        except TimeoutError:
            raise query_timeout() from None

    def _read_snapshot(
        self, reads: Sequence[Read], connection: sqlite3.Connection
    ) -> list[QueryResult]:
        self.writer.files.check()
        if len(reads) > 1 or reads[0].with_total:  # one statement has a snapshot of its own
            connection.execute("BEGIN")
        try:
            (results,) = execute(connection, [reads])
            return results
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def version(self) -> int:
        """Return a number that changes with each commit of any other connection (4 us)."""
        (version,) = self._version_connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    async def probe(self) -> None:
        """Check that the store can be written. Raises Problem, sqlite3.Error and StoreFileMoved.

        It only takes the write lock, in one group with waiting works. If the last commit failed, it
        commits too, since the lock is given even on a full disk.
        """
        await self.writer.run(partial(_check_writable, commits=self.writer.last_commit_failed))

    async def close(self, *, truncates_wal: bool = False) -> None:
        """Finish running work and close every connection, even if the disk fails.

        `truncates_wal` writes the log into the file, even if the file was moved. Without it SQLite
        does so if no other process has the file open.
        """
        if not self.is_open:
            return
        self.is_open = False
        self._version_connection.close()
        with suppress(TimeoutError, sqlite3.Error):
            await asyncio.wait_for(
                asyncio.gather(self.fast.close(), self.slow.close()), CLOSE_SECONDS
            )
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
    """Open the connections of a migrated store; `exclusive` for the one edge that serves it.

    Only an edge without a replicator (not `replicated`) checkpoints the log at its commits.

    Raises sqlite3.Error, StoreFileMoved, and StoreRefusal where write-ahead logging does not work.
    """
    async with AsyncExitStack() as stack:
        version_connection = await asyncio.to_thread(connect, path, writes=False, wait=0)
        stack.callback(version_connection.close)
        writing = await Connection.open(partial(connect, path, writes=True))
        stack.push_async_callback(writing.close)
        await writing.call(enable_wal)
        await writing.call(maintain_search_index)
        if exclusive and not replicated:
            await writing.call(enable_checkpoints)
        files = StoreFileIdentities(path)
        connector = partial(connect, path, writes=False)
        fast = await Readers.open(connector, FAST_READERS)
        stack.push_async_callback(fast.close)
        slow = await Readers.open(connector, SLOW_READERS)
        stack.pop_all()
        return StoreConnections(Writer(writing, files), fast, slow, version_connection)
