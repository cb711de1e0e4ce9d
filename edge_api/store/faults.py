"""What an engine's errors mean to a client: a rule of the schema, or a store that cannot work now.

Whatever is neither is a fault of ours and stays the exception that it is.
"""

import re
import sqlite3
from collections.abc import Mapping
from types import MappingProxyType

from edge_api.schema.problems import Problem
from edge_api.schema.table import Row, Table

_RETRY: Mapping[str, str] = MappingProxyType({"Retry-After": "2"})
"""In seconds: a lock is gone by then, or a person has to act anyway."""

_SENTENCES: Mapping[int, str] = MappingProxyType(
    {
        sqlite3.SQLITE_BUSY: "The store is locked by another process",
        sqlite3.SQLITE_PROTOCOL: "The store is locked by another process",
        sqlite3.SQLITE_READONLY: "The store cannot be written",
        sqlite3.SQLITE_PERM: "The store cannot be written",
        sqlite3.SQLITE_FULL: "The disk of the store is full",
        sqlite3.SQLITE_IOERR: "The disk of the store fails",
        sqlite3.SQLITE_CANTOPEN: "The store's file cannot be opened",
    }
)
"""By primary result code."""

_CONSTRAINTS: Mapping[int, str] = MappingProxyType(
    {
        sqlite3.SQLITE_CONSTRAINT_NOTNULL: "23502",
        sqlite3.SQLITE_CONSTRAINT_CHECK: "23514",
    }
)
"""PostgreSQL's codes, by extended result code, for what the checks of a row let through."""


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; errors that Python itself raises have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def unavailable(sentence: str) -> Problem:
    """Return the problem of a store that cannot do its work now."""
    return Problem("unavailable", f"{sentence}; try again later", headers=_RETRY)


def overdue() -> Problem:
    """Return the problem of a read that was ended because it took too long."""
    sentence = "The query took too long; narrow it, or sort by a column with an index"
    return Problem("unavailable", sentence, sqlstate="57014", headers=_RETRY)


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether the file is no sound store.

    A missing table is damage too: all were there when the store was opened.
    """
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return primary_code(error) in damage or str(error).startswith("no such ")


def problem_of(error: sqlite3.Error) -> Problem | sqlite3.Error:
    """Return the problem that an engine's error is to a client; the error itself if it is ours."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_INTERRUPT:
        return overdue()
    sentence = "The store is damaged" if is_damage(error) else _SENTENCES.get(code)
    return error if sentence is None else unavailable(sentence)


def violation(error: sqlite3.IntegrityError, table: Table, row: Row) -> Problem:
    """Return the problem of a row that a rule of the schema refuses, in PostgreSQL's terms.

    `row` holds the values that were to be stored, as far as they are known.
    """
    columns = [name for name in re.findall(r"\w+", str(error)) if name in table.columns]
    names = ", ".join(dict.fromkeys(columns)) or table.name
    sqlstate = _CONSTRAINTS.get(error.sqlite_errorcode)
    if sqlstate is not None:
        return Problem("invalid", f"{names}: breaks a rule of {table.name}", sqlstate=sqlstate)
    known = all(name in row for name in columns)
    values = f"=({', '.join(str(row[name]) for name in columns)})" if known else ""
    return Problem(
        "conflict",
        f"{names}: a row with this value exists already",
        details=f"Key ({names}){values} already exists.",
    )
