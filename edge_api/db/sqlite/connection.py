"""One connection to a SQLite file: its settings and its functions."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

import aiosqlite

from edge_api.db.query import ilike, like
from edge_api.db.sqlite.execution import ILIKE, LIKE
from edge_api.db.tables import TABLES

T = TypeVar("T")

BUSY_SECONDS: Final = 2.0
"""How long a connection waits for another process to release a lock."""

REPLICATED_WAL_SETTINGS: Final = (
    "PRAGMA wal_autocheckpoint = 0",
    # The first commit after a checkpoint begins the log anew, and cuts off what was there before:
    # a frame of the former log, found where Litestream stopped, would pass for its continuation.
    "PRAGMA journal_size_limit = 0",
)
LOCAL_WAL_SETTINGS: Final = (
    # Fewer, larger checkpoints: 4,000 pages are 16 MiB of log.
    "PRAGMA wal_autocheckpoint = 4000",
    # After a peak the log shrinks again, to 64 MiB.
    "PRAGMA journal_size_limit = 67108864",
)
SETTINGS: Final = (
    # A commit is durable when it returns: the log is synced each time, also on Macs, whose disks
    # would keep an ordinary sync in their cache.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    # What is deleted is overwritten, so that the file does not keep what a person had erased.
    "PRAGMA secure_delete = ON",
    # No commit cuts or restarts a log that Litestream may not have read (`enable_checkpoints`).
    *REPLICATED_WAL_SETTINGS,
    # SQLite's page cache stays at 2 MiB a connection: the system caches the file for all of them.
    # No mmap: a file cut short under it kills the process.
)


class Connection(aiosqlite.Connection):
    """A connection whose thread runs a whole function in one trip.

    aiosqlite has no public call for that; one trip a statement would cost a transaction of many
    statements more than its sync. `_execute` is what all its own methods are made of.
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        # A store that nobody closed must not keep an ending process alive: nothing is lost, since
        # only what is committed has been answered.
        self._thread.daemon = True

    @classmethod
    async def open(cls, connector: Callable[[], sqlite3.Connection]) -> Self:
        """Return a connection that is open. Raises sqlite3.Error."""
        connection = cls(connector)
        await connection
        return connection

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in the connection's thread, to its end even when the caller is cancelled."""
        result: T = await self._execute(partial(work, self._conn))  # type: ignore[no-untyped-call]
        return result


def enable_checkpoints(connection: sqlite3.Connection) -> None:
    """Let commits of this connection checkpoint the log: those of an edge without a replicator."""
    for setting in LOCAL_WAL_SETTINGS:
        connection.execute(setting)


def truncate_wal(connection: sqlite3.Connection, *, vacuum: bool = False) -> bool:
    """Checkpoint the log and truncate it to zero bytes, unless somebody still reads from it.

    No reader is waited for. `vacuum`: the file is written anew before, since rows that were
    moved from page to page leave copies in the gaps, which overwriting at a deletion misses.
    Returns whether the log is empty; raises sqlite3.Error.
    """
    if vacuum:
        # Segments of the index keep the trigrams of deleted rows until they are merged.
        for name in (table.name for table in TABLES.values() if table.searched):
            merge = f"INSERT INTO {name}_search ({name}_search) VALUES ('optimize')"  # noqa: S608
            connection.execute(merge)
        connection.execute("VACUUM")
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
    return not is_busy


def connect(path: Path, *, writes: bool, wait: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open an existing store in autocommit mode, to be used by any thread. Raises sqlite3.Error."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        uri, uri=True, timeout=wait, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in SETTINGS:
            connection.execute(setting)
        connection.execute(f"PRAGMA query_only = {'OFF' if writes else 'ON'}")
        connection.create_function(LIKE, 2, like, deterministic=True)
        connection.create_function(ILIKE, 2, ilike, deterministic=True)
    except BaseException:
        connection.close()
        raise
    return connection
