"""What an engine's troubles mean to a client, and to the person who starts the service."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from edge_api.schema.history import HISTORY
from edge_api.schema.problems import OVERDUE, Problem
from edge_api.schema.table import Row, Table

_RETRY: Mapping[str, str] = MappingProxyType({"Retry-After": "2"})
"""In seconds: a lock is gone by then, or a person has to act anyway."""


LATER: Final = "; try again later"


def unavailable(sentence: str) -> Problem:
    """Return the problem of a store that cannot do its work now."""
    return Problem("unavailable", f"{sentence}{LATER}", headers=_RETRY)


def overdue() -> Problem:
    """Return the problem of a read that was ended because it took too long."""
    sentence = "The query took too long; narrow it, or sort by a column with an index"
    return Problem("unavailable", sentence, sqlstate=OVERDUE, headers=_RETRY)


def changed_meanwhile() -> Problem:
    """Return the problem of a change that rested on what is no longer so."""
    return Problem("conflict", "What was to be changed has changed meanwhile: look again")


def too_many(most: int) -> Problem:
    """Return the problem of a change that would meet more rows than it may."""
    return Problem(
        "invalid",
        f"match: fits more than {most} rows, which is the most for one call; narrow it",
        sqlstate="54000",
    )


def broken_rule(table: Table, columns: Sequence[str], sqlstate: str) -> Problem:
    """Return the problem of a row that a rule of the schema refuses, with PostgreSQL's code."""
    names = _names(table, columns)
    return Problem("invalid", f"{names}: breaks a rule of {table.name}", sqlstate=sqlstate)


def exists_already(table: Table, columns: Sequence[str], row: Row) -> Problem:
    """Return the problem of a value that must be unique and is there already.

    `row` holds the values that were to be stored, as far as they are known.
    """
    names = _names(table, columns)
    known = all(name in row for name in columns)
    values = f"=({', '.join(str(row[name]) for name in columns)})" if known else ""
    return Problem(
        "conflict",
        f"{names}: a row with this value exists already",
        details=f"Key ({names}){values} already exists.",
    )


def _names(table: Table, columns: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(columns)) or table.name


class StoreRefusal(Exception):  # noqa: N818  it refuses; nothing is broken in the code
    """The store cannot be used as it is; the message is one sentence with the mend."""


def refuse_newer(version: int, place: str) -> None:
    """Refuse a store that a later version of the edge has made. Raises StoreRefusal."""
    if version > len(HISTORY):
        raise StoreRefusal(
            f"{place} has schema version {version} and this edge knows {len(HISTORY)}: "
            "start the version that made it, or a later one"
        )


def no_store(where: str) -> StoreRefusal:
    """Return what to raise where a store should be and is none: `at` a path, `in` a database."""
    return StoreRefusal(f"there is no store {where}: serve, migrate or keys issue makes one")
