"""Plans carried out on a connection, in SQLite's words. It begins and ends nothing."""

import json
import sqlite3
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

import orjson

from edge_api.db import sql
from edge_api.db.errors import changed_meanwhile, too_many
from edge_api.db.problems import not_one_row
from edge_api.db.query import Delete, Insert, Outcome, Plan, Read, Update
from edge_api.db.sql import COMPARISONS, Dialect, Spelling, decode
from edge_api.db.sqlite.errors import violation
from edge_api.db.table import Row, Table
from edge_api.db.types import Kind

SPELLING: Final = Spelling(
    types=MappingProxyType(
        {
            Kind.TEXT: "TEXT",
            Kind.UUID: "TEXT",
            Kind.TIMESTAMP: "TEXT",
            Kind.INTEGER: "INTEGER",
            Kind.JSON: "TEXT",
        }
    ),
    # GLOB patterns, in which a question mark is one character. Values of one width: so the order
    # of texts is the order in time. Before 3.45 json_valid does not let NULL pass.
    rules=MappingProxyType(
        {
            Kind.UUID: "{column} GLOB '????????-????-????-????-????????????'",
            Kind.TIMESTAMP: "{column} GLOB '????-??-??T??:??:??.??????Z'",
            Kind.JSON: "{column} IS NULL OR json_valid({column})",
        }
    ),
    # A value of another type than its column's is refused; SQLite would else keep it.
    ending=" STRICT",
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
    operands=MappingProxyType(
        {"in": lambda values: (json.dumps(values),), "is": lambda _null: ()},
    ),
    no_limit=-1,
    mark=str,
)


def carry_out(connection: sqlite3.Connection, plans: Sequence[Plan]) -> list[Outcome]:
    """Carry out plans in their order and return an outcome for each.

    Raises Problem `invalid` or `conflict`, and sqlite3.Error where the engine cannot.
    """
    outcomes: list[Outcome] = []
    for plan in plans:
        outcomes.append(_carry_out_one(connection, plan, outcomes))
    return outcomes


def _carry_out_one(
    connection: sqlite3.Connection, plan: Plan, earlier: Sequence[Outcome]
) -> Outcome:
    match plan:
        case Read():
            return _read(connection, plan)
        case Insert():
            return _insert(connection, plan, [len(outcome.rows) for outcome in earlier])
        case Update():
            return _update(connection, plan)
        case Delete():
            _refuse_more_than_allowed(connection, plan)
            return Outcome(_changed(connection, plan, sql.delete_rows(plan, SQLITE)))


def _read(connection: sqlite3.Connection, plan: Read) -> Outcome:
    names = plan.columns or tuple(plan.table.columns)
    fetch = _fetch_at_once if plan.limit is not None and plan.limit > 1 else _fetch
    rows = fetch(connection, plan.table, names, sql.read_rows(plan, SQLITE))
    total = _number(connection, sql.count_rows(plan, SQLITE)) if plan.counted else None
    return Outcome(rows, total)


def _insert(connection: sqlite3.Connection, plan: Insert, affected: Sequence[int]) -> Outcome:
    """Store the rows one by one, so that the one that is refused is known."""
    text = sql.insert_row(plan.table, SQLITE)
    names = tuple(plan.table.columns)
    records = sql.insert_parameters(plan, affected)
    for record in records:
        try:
            connection.execute(text, record)
        except sqlite3.IntegrityError as error:
            row = dict(zip(names, record, strict=True))
            raise violation(error, plan.table, row) from None
    return Outcome(decode(plan.table, names, records))


def _update(connection: sqlite3.Connection, plan: Update) -> Outcome:
    _refuse_more_than_allowed(connection, plan)
    try:
        rows = _changed(connection, plan, sql.update_rows(plan, SQLITE))
    except sqlite3.IntegrityError as error:
        raise violation(error, plan.table, dict(plan.values)) from None
    if len(rows) < plan.at_least:
        raise changed_meanwhile()
    return Outcome(rows)


def _refuse_more_than_allowed(connection: sqlite3.Connection, plan: Update | Delete) -> None:
    """Count before anything is changed: undoing a million changes costs as much as making them."""
    most = plan.at_most
    if most is not None and _number(connection, sql.count_matches(plan, most, SQLITE)) > most:
        raise too_many(most)


def _changed(
    connection: sqlite3.Connection, plan: Update | Delete, statement: sql.Statement
) -> list[Row]:
    """Return the rows that a change gives back, by key: SQLite leaves their order open."""
    rows = _fetch(connection, plan.table, tuple(plan.table.columns), statement)
    if plan.single and len(rows) != 1:
        raise not_one_row(len(rows))
    return sorted(rows, key=lambda row: row[plan.table.key])


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
    wait a hundred times for whoever answers others meanwhile.
    """
    columns = ", ".join(map(sql.quote, names))
    text = f"SELECT json_group_array(json_array({columns})) FROM ({statement.text})"  # noqa: S608
    (records,) = connection.execute(text, statement.parameters).fetchone()
    return decode(table, names, orjson.loads(records))
