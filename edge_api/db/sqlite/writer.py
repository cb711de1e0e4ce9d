"""The one writer: works that wait together share a transaction and its sync to the disk.

Each caller is answered after the commit and never before. Savepoints keep the callers apart: one
that fails is rolled back alone. When the commit fails, nothing of the group has happened.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from edge_api.db.group_commit import GroupCommitter
from edge_api.db.query import Query, QueryResult
from edge_api.db.sqlite.connection import Connection, truncate_wal
from edge_api.db.sqlite.errors import FileIdentity
from edge_api.db.sqlite.execution import execute

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Runs statements inside a transaction that others begin and end; it may be run a second time."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryBatch:
    """The work that runs a list of queries, which shares statements with others."""

    queries: Sequence[Query]

    def __call__(self, connection: sqlite3.Connection) -> list[QueryResult]:
        """Return a result for each query."""
        (results,) = execute(connection, [self.queries])
        return results


class Writer(GroupCommitter[Work[Any]]):
    """Commits groups of work on the connection that writes."""

    def __init__(
        self, connection: Connection, files: FileIdentity, *, tracks_wal_size: bool = False
    ) -> None:
        """Take the connection; `tracks_wal_size` has `wal_bytes` follow the size of the log."""
        super().__init__()
        self._connection = connection
        self.files = files
        self._tracks_wal_size = tracks_wal_size
        self.wal_bytes = 0
        """The size of the log after the last commit, where that is tracked; else 0."""

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

    async def _commit(self, works: Sequence[Work[Any]]) -> list[Any]:
        """Return what `commit_together` does; raises sqlite3.Error and StoreFileMoved."""
        return await self._connection.call(partial(self._commit_in_thread, works))

    def _commit_in_thread(self, works: Sequence[Work[Any]], connection: sqlite3.Connection) -> Any:
        results = commit_together(self.files, works, connection)
        if self._tracks_wal_size:
            self.wal_bytes = self.files.wal_bytes()
        return results


def commit_together(
    files: FileIdentity, works: Sequence[Work[Any]], connection: sqlite3.Connection
) -> list[Any]:
    """Run each work, commit once, and return all results.

    A work that raises has its exception for a result. Raises sqlite3.Error and StoreFileMoved
    when nothing of the whole group is durable.
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


def _run_all(connection: sqlite3.Connection, works: Sequence[Work[Any]]) -> list[Any]:
    """Run the works together; should one fail, begin again with a savepoint for each.

    Savepoints are what costs most in a transaction, and nearly always no work fails.
    """
    lists = [work.queries for work in works if isinstance(work, QueryBatch)]
    try:
        results = iter(execute(connection, lists, defer_inserts=True))
        return [
            next(results) if isinstance(work, QueryBatch) else work(connection) for work in works
        ]
    except Exception:  # noqa: BLE001  which work it was comes out at the second attempt
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        return [_attempt(connection, work) for work in works]


def _attempt(connection: sqlite3.Connection, work: Work[T]) -> T | Exception:
    connection.execute("SAVEPOINT work")
    try:
        result = work(connection)
    except Exception as error:
        # A disk that is full or fails ends the whole transaction, not this work alone.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        return error
    connection.execute("RELEASE work")
    return result
