"""Execution of queries on a SQLite connection; transactions are begun and ended elsewhere."""

import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import orjson

from edge_api.db import sql
from edge_api.db.errors import stale_update, too_many_rows
from edge_api.db.problems import not_one_row
from edge_api.db.query import Delete, Query, QueryResult, Read, Update
from edge_api.db.sql import COMPARISONS, DdlDialect, Dialect, decode
from edge_api.db.sqlite.errors import violation
from edge_api.db.table import Row, Table
from edge_api.db.transaction import NewRows, TransactionStep, plan_steps
from edge_api.db.types import ColumnType

DDL: Final = DdlDialect(
    types=MappingProxyType(
        {
            ColumnType.TEXT: "TEXT",
            ColumnType.UUID: "TEXT",
            ColumnType.TIMESTAMP: "TEXT",
            ColumnType.INTEGER: "INTEGER",
            ColumnType.JSON: "TEXT",
        }
    ),
    # GLOB patterns, in which a question mark is one character. Values of one width: so the order
    # of texts is the order in time. Before 3.45 json_valid does not let NULL pass.
    checks=MappingProxyType(
        {
            ColumnType.UUID: "{column} GLOB '????????-????-????-????-????????????'",
            ColumnType.TIMESTAMP: "{column} GLOB '????-??-??T??:??:??.??????Z'",
            ColumnType.JSON: "{column} IS NULL OR json_valid({column})",
        }
    ),
    # A value of another type than its column's is refused; SQLite would else keep it.
    table_suffix=" STRICT",
)


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
    result = None
    try:
        while True:
            result = _execute_one(connection, steps.send(result))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _execute_one(connection: sqlite3.Connection, step: TransactionStep) -> QueryResult:
    match step:
        case Read():
            return _read(connection, step)
        case Update():
            return _update(connection, step)
        case Delete():
            _refuse_more_than_allowed(connection, step)
            return QueryResult(_changed(connection, step, sql.delete_rows(step, SQLITE)))
        case NewRows():
            _store(connection, step)
            return QueryResult()


def _read(connection: sqlite3.Connection, query: Read) -> QueryResult:
    names = query.columns or tuple(query.table.columns)
    statement = sql.read_rows(query, SQLITE)
    total = _number(connection, sql.count_rows(query, SQLITE)) if query.with_total else None
    if query.as_json:
        terms = _json_terms(query.table, names)
        return QueryResult([], total, *_fetch_json(connection, terms, statement))
    fetch = _fetch_at_once if query.limit is not None and query.limit > 1 else _fetch
    return QueryResult(fetch(connection, query.table, names, statement), total)


def _store(connection: sqlite3.Connection, new: NewRows) -> None:
    before = connection.total_changes
    try:
        connection.executemany(new.text, new.records)
    except sqlite3.IntegrityError as error:
        refused = new.rows[connection.total_changes - before]
        raise violation(error, new.table, refused) from None


def _update(connection: sqlite3.Connection, query: Update) -> QueryResult:
    _refuse_more_than_allowed(connection, query)
    try:
        rows = _changed(connection, query, sql.update_rows(query, SQLITE))
    except sqlite3.IntegrityError as error:
        raise violation(error, query.table, dict(query.values)) from None
    if len(rows) < query.at_least:
        raise stale_update()
    return QueryResult(rows)


def _refuse_more_than_allowed(connection: sqlite3.Connection, query: Update | Delete) -> None:
    """Count before anything is changed: undoing a million changes costs as much as making them."""
    most = query.at_most
    if most is not None and _number(connection, sql.count_matches(query, most, SQLITE)) > most:
        raise too_many_rows(most)


def _changed(
    connection: sqlite3.Connection, query: Update | Delete, statement: sql.Statement
) -> list[Row]:
    """Return the rows that a change gives back, by key: SQLite leaves their order open."""
    rows = _fetch(connection, query.table, tuple(query.table.columns), statement)
    if query.single and len(rows) != 1:
        raise not_one_row(len(rows))
    return sorted(rows, key=lambda row: row[query.table.key])


def _number(connection: sqlite3.Connection, statement: sql.Statement) -> int:
    (number,) = connection.execute(statement.text, statement.parameters).fetchone()
    return int(number)


def _fetch(
    connection: sqlite3.Connection, table: Table, names: Sequence[str], statement: sql.Statement
) -> list[Row]:
    records = connection.execute(statement.text, statement.parameters)
    return decode(table, names, records)


def _fetch_at_once(
    connection: sqlite3.Connection, table: Table, names: Sequence[str], statement: sql.Statement
) -> list[Row]:
    """Do the same in one step of the engine, which writes the rows as JSON.

    Each step lets go of the interpreter's lock, and waits to have it back: a hundred rows would
    wait a hundred times for the thread that answers others meanwhile.
    """
    columns = ", ".join(map(sql.quote, names))
    text = f"SELECT json_group_array(json_array({columns})) FROM ({statement.text})"  # noqa: S608
    (records,) = connection.execute(text, statement.parameters).fetchone()
    return decode(table, names, orjson.loads(records))


def _fetch_json(
    connection: sqlite3.Connection, terms: str, statement: sql.Statement
) -> tuple[bytes, int]:
    """Return the rows as the JSON of an answer, which the engine writes, and their number."""
    text = f"SELECT {terms} FROM ({statement.text})"  # noqa: S608
    answer, count, has_fractions = connection.execute(text, statement.parameters).fetchone()
    # orjson writes only fractions and exponents differently: 0.00001 for 1e-05.
    return orjson.dumps(orjson.loads(answer)) if has_fractions else answer.encode(), count


@lru_cache(sql.STATEMENT_CACHE_SIZE)
def _json_terms(table: Table, names: tuple[str, ...]) -> str:
    """Return the terms for rows as JSON, their number, and whether one may have a fraction."""
    nested = table.json_columns.intersection(names)
    members = (f"'{name}', {'json' if name in nested else ''}({sql.quote(name)})" for name in names)
    fractions = " OR ".join(f"{sql.quote(name)} GLOB '*[0-9][.eE]*'" for name in nested) or "0"
    return f"json_group_array(json_object({', '.join(members)})), count(*), max({fractions})"
