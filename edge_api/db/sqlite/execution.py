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


def _trigger(name: str, event: str, *statements: str) -> str:
    body = "; ".join(statements)
    return f"CREATE TRIGGER {{table}}_search_{name} AFTER {event} ON {{table}} BEGIN {body}; END"


_TRIGRAMS: Final = "content='', tokenize='trigram', detail=none, columnsize=0"
"""Neither text nor places: who asks compares the rows that are found, and the index is a third."""
_KEYS: Final = (
    "CREATE TABLE {table}_search_keys "
    "(number INTEGER PRIMARY KEY, row_id TEXT NOT NULL UNIQUE) STRICT"
)
_NUMBER: Final = "INSERT INTO {table}_search_keys (row_id) VALUES (new.id)"
_FREE: Final = "DELETE FROM {table}_search_keys WHERE row_id = old.id"
_INDEX: Final = (
    "INSERT INTO {table}_search (rowid, {columns}) "
    "SELECT number, {new} FROM {table}_search_keys WHERE row_id = new.id"
)
_FORGET: Final = (
    "INSERT INTO {table}_search ({table}_search, rowid, {columns}) "
    "SELECT 'delete', number, {old} FROM {table}_search_keys WHERE row_id = old.id"
)
SEARCH: Final = (
    _KEYS,
    f"CREATE VIRTUAL TABLE {{table}}_search USING fts5({{columns}}, {_TRIGRAMS})",
    _trigger("insert", "INSERT", _NUMBER, _INDEX),
    _trigger("update", "UPDATE OF {columns}", _FORGET, _INDEX),
    _trigger("delete", "DELETE", _FORGET, _FREE),
)
"""The statements that make the index of a table's searched columns. A row is deleted by its former
values, since the index keeps no text; by a number of its own, since VACUUM changes the number of a
row whose key is a text."""


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
            "search": "{column} IN (SELECT row_id FROM {table}_search_keys WHERE number IN "
            "(SELECT rowid FROM {table}_search WHERE {table}_search MATCH ?))",
        }
    ),
    operands=MappingProxyType(
        {
            "in": lambda values: (json.dumps(values),),
            "is": lambda _null: (),
            "search": lambda words: (sql.match_trigrams(words),),
        }
    ),
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
    rest = iter(step.records) if isinstance(step, NewRows) else iter(())
    try:
        if isinstance(step, NewRows):
            connection.executemany(step.text, rest)
            return ()
        if step.many:
            return _fetch_at_once(connection, step.names, step.statement)
        return connection.execute(step.statement.text, step.statement.parameters).fetchall()
    except sqlite3.IntegrityError as error:
        # Of new rows the last one that was taken is refused.
        refused = -1 - sum(1 for _ in rest) if isinstance(step, NewRows) else 0
        raise violation(error, step.table, step.rows[refused]) from None


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
