"""Translation of SQLite errors into problems."""

import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from edge_api.db.errors import (
    constraint_violation,
    outcome_unknown,
    query_timeout,
    unavailable,
    unique_violation,
)
from edge_api.db.problems import Problem
from edge_api.db.table import Row, Table


class StoreFileMoved(Exception):  # noqa: N818  the files changed, the code has no fault
    """A file of the store is gone, or another one has taken its place."""


class StoreFileIdentities:
    """The identities (device and inode) of an open store's files, to notice their replacement."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(f"{path.name}-wal")
        self._files = {str(file): _identity(str(file)) for file in (path, self._log)}

    def check(self) -> None:
        """Check that every file is the same (two microseconds). Raises StoreFileMoved."""
        for file, identity in self._files.items():
            if _identity(file) != identity:
                raise StoreFileMoved(f"{file} is another file than the one that was opened")

    def is_lost(self) -> bool:
        """Return whether a file was moved or deleted."""
        with suppress(StoreFileMoved):
            self.check()
            return False
        return True

    def wal_bytes(self) -> int:
        """Return the size of the log's file; 0 if there is none."""
        with suppress(OSError):
            return self._log.stat().st_size
        return 0


def _identity(file: str) -> tuple[int, int]:
    try:
        status = os.stat(file)  # noqa: PTH116  twice as fast as Path.stat, and run at each commit
    except OSError:
        raise StoreFileMoved(f"{file} is missing") from None
    return status.st_dev, status.st_ino


_MESSAGES: Mapping[int, str] = {
    sqlite3.SQLITE_BUSY: "The store is locked by another process",
    sqlite3.SQLITE_PROTOCOL: "The store is locked by another process",
    sqlite3.SQLITE_READONLY: "The store cannot be written",
    sqlite3.SQLITE_PERM: "The store cannot be written",
    sqlite3.SQLITE_FULL: "The disk of the store is full",
    sqlite3.SQLITE_IOERR: "The disk of the store fails",
    sqlite3.SQLITE_CANTOPEN: "The store's file cannot be opened",
}
"""Messages by SQLite's primary result code."""


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; SQLITE_ERROR for errors that Python itself raises."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def shows_damage(error: sqlite3.Error) -> bool:
    """Return whether an error shows that the file is damaged; a missing table is damage too."""
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return primary_code(error) in damage or str(error).startswith("no such ")


def sqlite_problem(error: sqlite3.Error) -> Problem | sqlite3.Error:
    """Return the problem for an engine's error; the error itself if it is a defect."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_INTERRUPT:
        return query_timeout()
    # The commit is in the log, but was not synced: no process reads it. The next commit overwrites
    # it; after a crash it may be recovered.
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_FSYNC:
        return outcome_unknown("The disk of the store fails")
    message = "The store is damaged" if shows_damage(error) else _MESSAGES.get(code)
    return error if message is None else unavailable(message)


def violation_problem(error: sqlite3.IntegrityError, table: Table, row: Row) -> Problem:
    """Return the problem of a violated constraint, as in PostgreSQL; `row` was to be stored."""
    columns = [name for name in re.findall(r"\w+", str(error)) if name in table.columns]
    sqlstates = {
        sqlite3.SQLITE_CONSTRAINT_NOTNULL: "23502",
        sqlite3.SQLITE_CONSTRAINT_CHECK: "23514",
    }
    sqlstate = sqlstates.get(error.sqlite_errorcode)
    if sqlstate is not None:
        return constraint_violation(table, columns, sqlstate)
    is_known = row.keys() >= set(columns)
    values = ", ".join(str(row[name]) for name in columns) if is_known else None
    return unique_violation(table, columns, values)
