"""Execution of queries on a SQLite connection; transactions are begun and ended elsewhere."""

import json
import sqlite3
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from edge_api.db import sql
from edge_api.db.query import Query, QueryResult
from edge_api.db.sql import COMPARISONS, Dialect
from edge_api.db.sqlite.errors import violation
from edge_api.db.transaction import NewRows, TransactionStep, plan_steps

LIKE: Final = "like_text"
ILIKE: Final = "ilike_text"
"""Functions that every connection brings; SQLite's own LIKE folds ASCII letters only."""

SQLITE: Final = Dialect(
    operations=MappingProxyType(
        {
            **COMPARISONS,
            "like": f"{LIKE}({{column}}, ?)",
            "ilike": f"{ILIKE}({{column}}, ?)",
            # One parameter however long the list. An empty one matches nothing, and its negation
            # everything, NULL included, as in PostgreSQL.
            "in": "{column} IN (SELECT value FROM json_each(?))",
        }
    ),
    operands=MappingProxyType({"in": lambda values: (json.dumps(values),), "is": lambda _null: ()}),
    no_limit=-1,
    case_placeholders=MappingProxyType({}),
    format_placeholders=str,
)


def execute(
    connection: sqlite3.Connection, lists: Sequence[Sequence[Query]], *, defer_inserts: bool = False
) -> list[list[QueryResult]]:
    """Run lists of queries, as `plan_steps` says, and return the results of each.

    Raises Problem `invalid` or `conflict`, and sqlite3.Error where the engine cannot.
    """
    steps = plan_steps(lists, SQLITE, defer_inserts=defer_inserts)
    records: Sequence[Any] | None = None
    try:
        while True:
            records = _execute_one(connection, steps.send(records))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _execute_one(connection: sqlite3.Connection, step: TransactionStep) -> Sequence[Any]:
    before = connection.total_changes
    try:
        if isinstance(step, NewRows):
            connection.executemany(step.text, step.records)
            return ()
        if step.many:
            return _fetch_at_once(connection, step.names, step.statement)
        return connection.execute(step.statement.text, step.statement.parameters).fetchall()
    except sqlite3.IntegrityError as error:
        stored = connection.total_changes - before if isinstance(step, NewRows) else 0
        raise violation(error, step.table, step.rows[stored]) from None


def _fetch_at_once(
    connection: sqlite3.Connection, names: Sequence[str], statement: sql.Statement
) -> Sequence[Any]:
    """Fetch all records in one step of the engine, which writes them as JSON.

    Each step lets go of the interpreter's lock, and waits to have it back: a hundred rows would
    wait a hundred times for the thread that answers others meanwhile.
    """
    columns = ", ".join(map(sql.quote, names))
    text = f"SELECT json_group_array(json_array({columns})) FROM ({statement.text})"  # noqa: S608
    (records,) = connection.execute(text, statement.parameters).fetchone()
    return orjson.loads(records)  # type: ignore[no-any-return]
