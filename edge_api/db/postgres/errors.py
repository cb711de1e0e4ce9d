"""Translation of PostgreSQL errors into problems."""

import re
from collections.abc import Collection, Mapping
from typing import Final

import asyncpg

from edge_api.db.errors import constraint_violation, unavailable, unique_violation
from edge_api.db.problems import CANCELED, Problem
from edge_api.db.table import Table

_Broken = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""asyncpg's errors of a lost connection; InternalClientError if the server has closed it."""
EngineError = (asyncpg.PostgresError, *_Broken)
"""asyncpg's errors: of the server, of the connection, of the network."""

UNREACHABLE: Final = "The store's server cannot be reached"

_SENTENCES: Mapping[str, str] = {
    "08": UNREACHABLE,
    "25P03": UNREACHABLE,
    "57": UNREACHABLE,
    CANCELED: "The store took too long",
    "40": "The store is locked by another process",
    "55P03": "The store is locked by another process",
    "25006": "The store cannot be written",
    "42501": "The store cannot be written",
    "28": "The store's server does not let the edge in",
    "3D": "The store's database is gone",
    "3F": "The store's tables are gone",
    "42P01": "The store's tables are gone",
    "53100": "The disk of the store is full",
    "53": "The store's server is short of connections or memory",
    "58030": "The disk of the store fails",
    "XX001": "The store is damaged",
    "XX002": "The store is damaged",
}
"""By SQLSTATE, or by its class where the whole class means the same."""


def sqlstate_of(error: BaseException) -> str:
    """Return the SQLSTATE of a server's error; other errors have none."""
    return getattr(error, "sqlstate", None) or ""


def is_disconnection(error: BaseException) -> bool:
    """Return whether the server's answer may have been lost."""
    if isinstance(error, asyncpg.PostgresError):
        return _sentence_of(sqlstate_of(error)) == UNREACHABLE
    return isinstance(error, _Broken)


def postgresql_problem(error: Exception) -> Exception:
    """Return the problem for an engine's error; the error itself if it is a defect."""
    if isinstance(error, asyncpg.PostgresError):
        message = _sentence_of(sqlstate_of(error))
        return error if message is None else unavailable(message)
    return unavailable(UNREACHABLE) if isinstance(error, _Broken) else error


def _sentence_of(sqlstate: str) -> str | None:
    return _SENTENCES.get(sqlstate) or _SENTENCES.get(sqlstate[:2])


def violation(
    error: asyncpg.IntegrityConstraintViolationError, table: Table, stored: Collection[str]
) -> Problem:
    """Return the problem of a violation; `stored` are the columns that have new values."""
    name = error.constraint_name or ""
    if not isinstance(error, asyncpg.UniqueViolationError):
        column = name.removeprefix(f"{table.name}_").removesuffix("_check")
        return constraint_violation(table, [error.column_name or column], error.sqlstate)
    declared = {index.name: index.columns for index in table.indexes}
    columns = declared.get(name, (table.key,))
    # The server's message, in its language, has `(columns)=(values)`.
    found = re.search(r"\)=\((.*)\)", error.detail or "", re.DOTALL)
    values = found[1] if found and set(columns) <= set(stored) else None
    return unique_violation(table, columns, values)
