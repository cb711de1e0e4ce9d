"""The embedded engine: a store in one SQLite file, which is reopened after a fault."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from edge_api.db.errors import RecoveringStore, StoreRefusal, unavailable
from edge_api.db.problems import Problem
from edge_api.db.query import Query, QueryResult
from edge_api.db.sqlite.connection import BUSY_SECONDS
from edge_api.db.sqlite.errors import StoreFileMoved, primary_code, shows_damage, sqlite_problem
from edge_api.db.sqlite.opening import create_file, migrate, require_file, store_refusal
from edge_api.db.sqlite.processes import (
    lock_if_unreplicated,
    lock_store,
    stop_replicator,
    without_replicator,
)
from edge_api.db.sqlite.store_connections import StoreConnections, open_connections
from edge_api.db.types import format_instant

REOPEN_SECONDS: Final = 1.0  # between two attempts to open a store that is damaged or gone
MAX_WAL_BYTES: Final = 1024 * 1024 * 1024
"""The size at which the edge truncates the log. Litestream does so at half of it or earlier."""
TRIM_SECONDS: Final = 60.0  # between two attempts to truncate the log

_log = logging.getLogger(__name__)


async def open_store(  # noqa: PLR0913  each is a choice of its own
    path: Path,
    clock: Callable[[], datetime],
    *,
    exclusive: bool = False,
    create: bool = True,
    migrates: bool = True,
    replicated: bool = False,
) -> "SQLiteStore":
    """Open the store in the file at `path`, create it if it is missing, and migrate it.

    `exclusive` locks it for the one edge that serves it; commands leave it out, so that they run
    beside an edge. With `replicated` that edge leaves the log to its replicator. Without `create` a
    missing file is refused: a command that only reads must not create the store. Without
    `migrates` an older store is refused, and stays as it is. Raises StoreRefusal.
    """
    with ExitStack() as locks:
        file = await asyncio.to_thread(_lock_file, path, locks if exclusive else None, create)
        try:
            connections = await _open_with_retries(
                partial(migrate, file, format_instant(clock()), migrates=migrates),
                partial(open_connections, file, exclusive=exclusive, replicated=replicated),
            )
        except sqlite3.Error as error:
            raise store_refusal(error, path) from None
        except StoreFileMoved:
            raise StoreRefusal(f"{path} was moved while it was opened: start again") from None
        return SQLiteStore(
            file, connections, locks.pop_all(), exclusive=exclusive, replicated=replicated
        )


def _lock_file(path: Path, locks: ExitStack | None, create: bool) -> Path:  # noqa: FBT001  through a thread
    """Lock the store, and return its path without symbolic links, beside which SQLite puts the log.

    An orphaned replicator is stopped before the file is opened. It keeps the log's index in use,
    which may lack a commit that it has copied already: the edge would overwrite that commit in the
    log, and the replica could not be restored any more (Litestream 0.5.17). Without the replicator
    SQLite rebuilds the index from the log.
    """
    if not create and not path.exists():
        require_file(path)
    create_file(path)
    file = path.resolve()
    if locks is not None:
        locks.enter_context(lock_store(file))
        stop_replicator(file)
    return file


async def _open_with_retries(
    prepare: Callable[[], None], connect: Callable[[], Awaitable[StoreConnections]]
) -> StoreConnections:
    """Open the store, with more attempts while another process opens or closes it.

    SQLite itself does not wait where that turns the log on or off. Raises sqlite3.Error.
    """
    ends_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            await asyncio.to_thread(prepare)
            return await connect()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > ends_at:
                raise
        await asyncio.sleep(0.02)


class SQLiteStore(RecoveringStore):
    """A `Store` in one file.

    After damage, or when its file was replaced, the next call opens new connections, so that a
    fixed or restored file is used.
    """

    version_is_exact = True

    def __init__(
        self,
        path: Path,
        connections: StoreConnections,
        locks: ExitStack,
        *,
        exclusive: bool,
        replicated: bool,
    ) -> None:
        super().__init__()
        self._path = path
        self._connections = connections
        self._locks = locks
        self._exclusive = exclusive
        self._replicated = replicated
        self._generation = 0
        self._needs_reopen = False
        self._reopening: asyncio.Task[None] | None = None
        self._next_reopen_at = 0.0
        self._trimming: asyncio.Task[None] | None = None
        self._next_trim_at = 0.0

    async def run(self, *queries: Query) -> list[QueryResult]:
        """Run all queries in one transaction, as `Store.run` does. Raises Problem."""
        connections = await self._ready_connections()
        try:
            results = await connections.run(queries) if queries else []
        except (sqlite3.Error, StoreFileMoved) as error:
            raise self._translate_error(error) from error
        # Without a replicator no attempt is needed, since commits checkpoint the log.
        if self._exclusive and self._replicated:
            size = connections.writer.files.wal_bytes()
            if size > MAX_WAL_BYTES and time.monotonic() > self._next_trim_at:
                self._next_trim_at = time.monotonic() + TRIM_SECONDS
                self._trimming = asyncio.create_task(self._trim(size))
        return results

    async def _trim(self, size: int) -> None:
        """Truncate a log that grows without end, as its replicator is stopped or stuck.

        This ends the replicator, whose successor has to copy the whole store; so TRIM_SECONDS pass
        before the next attempt.
        """
        is_cut = False
        with suppress(Problem):
            is_cut = await self.scrub()
        outcome = "was cut" if is_cut else "cannot be cut: see that Litestream runs"
        _log.warning("the log of the store has grown to %d MiB and %s", size >> 20, outcome)

    def version(self) -> int:
        """Return a number as `Store.version` does. Raises Problem `unavailable`."""
        if not self._connections.is_open:
            raise unavailable("The store is not open")
        try:
            return self._generation << 32 | self._connections.version()
        except sqlite3.Error as error:
            raise self._translate_error(error) from error

    async def scrub(self, *, full: bool = False) -> bool:
        """Remove deleted rows from the log too, as `Store` says; return whether that was possible.

        Deleted rows are overwritten in the file itself (`PRAGMA secure_delete`); the log keeps
        their contents until it is truncated. Raises Problem.
        """
        connections = await self._ready_connections()
        truncating = asyncio.create_task(self._cut(connections, full=full))
        try:
            return await asyncio.shield(truncating)
        except asyncio.CancelledError:
            # Wait for the thread that truncates: no replicator may start meanwhile.
            await asyncio.gather(truncating, return_exceptions=True)
            raise

    async def _cut(self, connections: StoreConnections, *, full: bool) -> bool:
        """Truncate the log without a replicator; return whether that was possible."""
        try:
            async with without_replicator(self._path):
                return await connections.writer.truncate_wal(vacuum=full)
        except (StoreRefusal, OSError):
            return False  # the replicator keeps the log open
        except (sqlite3.Error, StoreFileMoved) as error:
            raise self._translate_error(error) from error

    async def _end(self) -> None:
        if self._reopening is not None:
            await self._reopening
        if self._trimming is not None:
            await asyncio.gather(self._trimming, return_exceptions=True)
        await self._close_connections()
        self._locks.close()

    async def _close_connections(self) -> None:
        """Close every connection; an edge without a replicator first writes the log into the file.

        If the file was moved, the replicator is stopped and the log is written too: SQLite would
        apply it to the file in the former place. Otherwise the replicator goes on, since it may not
        have read the whole log. A command leaves the log to the edge.
        """
        if not self._connections.is_open:
            return
        with suppress(StoreRefusal, OSError):  # a replicator that does not end, an unreadable lock
            if self._connections.writer.files.is_lost():
                async with without_replicator(self._path):
                    await self._connections.close(truncates_wal=True)
            elif self._exclusive:
                with lock_if_unreplicated(self._path) as is_ours:
                    await self._connections.close(truncates_wal=is_ours)
        await self._connections.close()  # if they were not closed above

    async def _check(self) -> None:
        connections = await self._ready_connections()
        try:
            await connections.probe()
        except Problem as problem:
            self.record_failure(problem, problem)
            raise
        except (sqlite3.Error, StoreFileMoved) as error:
            raise self._translate_error(error) from error

    async def _ready_connections(self) -> StoreConnections:
        self.refuse_closed()
        if self._needs_reopen:
            await self._reopen()
        if not self._connections.is_open:
            problem = unavailable("The store's file is missing or damaged")
            self.record_failure(problem, problem)
            raise problem
        return self._connections

    async def _reopen(self) -> None:
        """Open the store again: one attempt at a time, and one a second.

        Callers wait for a second at most: an attempt that has to end a replicator may take thirty.
        """
        if self._reopening is None or (
            self._reopening.done() and time.monotonic() > self._next_reopen_at
        ):
            self._reopening = asyncio.create_task(self._open_again())
            self._next_reopen_at = time.monotonic() + REOPEN_SECONDS
        await asyncio.wait([self._reopening], timeout=REOPEN_SECONDS)
        if self._reopening.done():
            self._reopening.result()

    async def _open_again(self) -> None:
        # Close first: SQLite must not have two logs of one file open in a process.
        await self._close_connections()
        try:
            self._connections = await open_connections(
                self._path, exclusive=self._exclusive, replicated=self._replicated
            )
        except (sqlite3.Error, StoreFileMoved, StoreRefusal):
            return
        self._generation += 1
        self._needs_reopen = False

    def _translate_error(self, error: sqlite3.Error | StoreFileMoved) -> Exception:
        """Return the exception for an engine's error; note whether the store must be reopened."""
        if isinstance(error, StoreFileMoved):
            self._needs_reopen = True
            problem: Exception = unavailable("The store's file was moved or deleted")
        else:
            self._needs_reopen = self._needs_reopen or shows_damage(error)
            problem = sqlite_problem(error)
        self.record_failure(problem, error)
        return problem
