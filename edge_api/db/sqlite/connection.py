"""Connections to a SQLite file: their settings and functions, and the queries that they execute.

Each read goes to the least busy connection of its kind, and ends at its deadline.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

import aiosqlite
import orjson

from edge_api.db import sql
from edge_api.db.query import (
    MAX_SEARCHED_ROWS,
    Query,
    QueryResult,
    fold_accents,
    ilike,
    like,
)
from edge_api.db.sql import COMPARISONS, Dialect
from edge_api.db.sqlite.errors import violation_problem
from edge_api.db.sqlite.search_index import index_rows
from edge_api.db.tables import TABLES
from edge_api.db.transaction import NewRows, TransactionStep, plan_steps

LIKE: Final = "like_text"
ILIKE: Final = "ilike_text"
"""SQL functions that every connection defines; SQLite's own LIKE folds ASCII letters only."""

_SEARCH: Final = (
    "{{column}} IN (SELECT row_id FROM {{table}}_search_keys WHERE number IN "
    "(SELECT rowid FROM {{table}}_search WHERE {{table}}_search MATCH ?{}))"
)
SQLITE: Final = Dialect(
    operations=MappingProxyType(
        {
            **COMPARISONS,
            "like": f"{LIKE}({{column}}, ?)",
            "ilike": f"{ILIKE}({{column}}, ?)",
            # These ignore the case of ASCII letters alone, as SQLite's own LIKE does.
            "has": "{column} LIKE ?",
            "has_wide": "{column} LIKE ? AND length(CAST({column} AS BLOB)) > length({column})",
            "has_key": "length({column}) > 36 AND {column} LIKE ?",
            # One parameter however long the list. An empty one matches nothing, and its negation
            # everything, NULL included, as in PostgreSQL.
            "in": "{column} IN (SELECT value FROM json_each(?))",
            "search": _SEARCH.format(""),
            "search_newest": _SEARCH.format(f" ORDER BY rowid DESC LIMIT {MAX_SEARCHED_ROWS}"),
        }
    ),
    operands=MappingProxyType(
        {
            "in": lambda values: (json.dumps(values),),
            "is": lambda _null: (),
            **dict.fromkeys(
                ("search", "search_newest"), lambda words: (sql.match_trigrams(words),)
            ),
        }
    ),
    no_limit=-1,
    case_placeholders=MappingProxyType({}),
    format_placeholders=str,
)


def execute(
    connection: sqlite3.Connection, lists: Sequence[Sequence[Query]], *, defer_inserts: bool = False
) -> list[list[QueryResult]]:
    """Run lists of queries in the steps of `plan_steps`, and return the results of each list.

    Raises Problem `invalid` or `conflict`, and sqlite3.Error.
    """
    steps = plan_steps(lists, SQLITE, defer_inserts=defer_inserts)
    records: Sequence[Any] | None = None
    try:
        while True:
            records = _execute_one(connection, steps.send(records))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _execute_one(connection: sqlite3.Connection, step: TransactionStep) -> Sequence[Any]:
    remaining = iter(step.records) if isinstance(step, NewRows) else iter(())
    try:
        if isinstance(step, NewRows):
            connection.executemany(step.text, remaining)
        elif not step.many:
            return connection.execute(step.statement.text, step.statement.parameters).fetchall()
        else:
            # Fetch all records in one step of the engine, as JSON: each step releases the GIL and
            # waits to get it back, so a hundred rows would wait a hundred times for the thread that
            # answers other requests.
            columns = ", ".join(map(sql.quote, step.names))
            text = f"SELECT json_group_array(json_array({columns})) FROM ({step.statement.text})"  # noqa: S608
            (records,) = connection.execute(text, step.statement.parameters).fetchone()
            return orjson.loads(records)  # type: ignore[no-any-return]
    except sqlite3.IntegrityError as error:
        # The refused row is the last one that `executemany` has taken.
        refused = -1 - sum(1 for _ in remaining) if isinstance(step, NewRows) else 0
        raise violation_problem(error, step.table, step.rows[refused]) from None
    if searched := step.table.searched:  # beyond `try`: an error of the index is no lead's fault
        index_rows(connection, step.table, map(itemgetter(step.table.key, *searched), step.rows))
    return ()


T = TypeVar("T")

BUSY_SECONDS: Final = 2.0  # the wait for another process to release a lock

SETTINGS: Final = (
    # A commit is durable when it returns: the log is synced each time, on Macs with fullfsync, as
    # an ordinary sync may stay in the disk's cache.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    # What is deleted is overwritten, so that the file does not keep what a person had erased.
    "PRAGMA secure_delete = ON",
    # No commit checkpoints the log, which Litestream may not have read (see `enable_checkpoints`).
    "PRAGMA wal_autocheckpoint = 0",
    # The first commit after a checkpoint restarts the log and truncates the rest: Litestream would
    # take a frame of the former log, found where it stopped, for the continuation.
    "PRAGMA journal_size_limit = 0",
    # SQLite's page cache stays at 2 MiB a connection: the system caches the file for all of them.
    # No mmap: the process would be killed if the file were truncated.
)


class Connection(aiosqlite.Connection):
    """A connection whose thread can run a whole function, not only one statement.

    aiosqlite has no public method for that. To switch threads for each statement would cost a
    long transaction more than its sync. All of aiosqlite's own methods use `_execute`, too.
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
    """Let commits of this connection checkpoint the log; only for an edge without a replicator."""
    # Fewer, larger checkpoints: 4,000 pages are 16 MiB of log.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    # After a peak the log shrinks again, to 64 MiB.
    connection.execute("PRAGMA journal_size_limit = 67108864")


def truncate_wal(connection: sqlite3.Connection, *, vacuum: bool = False) -> bool:
    """Checkpoint the log and truncate it to zero bytes, unless somebody still reads from it.

    It does not wait for readers. `vacuum` rewrites the file first, since rows that were moved from
    page to page leave copies in unused space, which `secure_delete` does not overwrite.
    Returns whether the log is empty; raises sqlite3.Error.
    """
    if vacuum:
        # Segments of the search index keep the trigrams of deleted rows until they are merged.
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
        # For triggers of the search index: the tokenizer cannot fold accents before SQLite 3.45.
        # The text may be NULL: SQLite checks NOT NULL only after the triggers have run.
        connection.create_function(
            "fold_accents", 1, lambda text: fold_accents(text or ""), deterministic=True
        )
    except BaseException:
        connection.close()
        raise
    return connection


Match = Callable[[str | None, str], bool | None]
"""Returns whether a text matches a pattern, as `like` does."""


class _Deadline:
    """The deadline of a read; its caller may shorten it."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def shorten(self, seconds: float) -> None:
        self._ends_at = min(self._ends_at, time.monotonic() + seconds)

    def is_expired(self) -> bool:
        return time.monotonic() >= self._ends_at


class _Reader:
    """One connection, and the deadlines of all reads that were given to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.deadlines: list[_Deadline] = []
        self.current_deadline = _Deadline(0)
        """The deadline of the read that runs now; known to the connection's thread alone."""

    def set_deadline_checks(self, steps: int, connection: sqlite3.Connection) -> None:
        """Check the deadline between instructions, and in each call of a slow function."""

        def is_expired() -> bool:
            return self.current_deadline.is_expired()

        def timed(match: Match) -> Match:
            def match_in_time(text: str | None, pattern: str) -> bool | None:
                if is_expired():
                    connection.interrupt()
                return match(text, pattern)

            return match_in_time

        connection.set_progress_handler(is_expired, steps)
        connection.create_function(LIKE, 2, timed(like), deterministic=True)
        connection.create_function(ILIKE, 2, timed(ilike), deterministic=True)


class Readers:
    """Open connections that read one file; each has a thread of its own."""

    def __init__(self, readers: Sequence[_Reader]) -> None:
        self._readers = readers

    @classmethod
    async def open(
        cls, connector: Callable[[], sqlite3.Connection], count: int, steps: int = 4000
    ) -> Self:
        """Return `count` connections, which check deadlines every `steps`. Raises sqlite3.Error.

        A step is an instruction of SQLite's virtual machine: 4,000 take some 100 us.
        """
        readers: list[_Reader] = []
        try:
            for _ in range(count):
                readers.append(_Reader(await Connection.open(connector)))
                await readers[-1].connection.call(partial(readers[-1].set_deadline_checks, steps))
        except BaseException:
            await cls(readers).close()
            raise
        return cls(readers)

    @property
    def load(self) -> int:
        """The number of reads, running and waiting."""
        return sum(len(reader.deadlines) for reader in self._readers)

    async def run(
        self, work: Callable[[sqlite3.Connection], T], seconds: float, run_seconds: float = inf
    ) -> T:
        """Run `work` within `seconds`, its wait included, and return its result.

        `run_seconds` limit its run alone. Raises TimeoutError if it cannot begin in time, and
        sqlite3.Error: SQLITE_INTERRUPT if it runs too long. Cancelled work that waits is not run.
        """
        reader = min(self._readers, key=lambda reader: len(reader.deadlines))
        deadline = _Deadline(seconds)

        def work_in_time(connection: sqlite3.Connection) -> T:
            if deadline.is_expired():
                raise TimeoutError
            deadline.shorten(run_seconds)
            reader.current_deadline = deadline
            return work(connection)

        reader.deadlines.append(deadline)
        try:
            return await reader.connection.call(work_in_time)
        except asyncio.CancelledError:
            deadline.shorten(0)
            raise
        finally:
            reader.deadlines.remove(deadline)

    async def close(self) -> None:
        """Let running reads finish within a second, and close every connection."""
        for reader in self._readers:
            for deadline in reader.deadlines:
                deadline.shorten(1.0)
        await asyncio.gather(*(reader.connection.close() for reader in self._readers))
