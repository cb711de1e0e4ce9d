"""The DDL of tables in SQLite, and the search index: its tables, its triggers, its rows."""

import sqlite3
import time
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

import orjson

from edge_api.db.query import fold_accents
from edge_api.db.sql import SchemaDialect, format_search
from edge_api.db.table import Table
from edge_api.db.tables import TABLES
from edge_api.db.types import ColumnType


def _trigger(kind: str, name: str, event: str, *statements: str) -> str:
    """Return the text of a CREATE statement for `format_search`."""
    return f"CREATE {kind} {{table}}_search_{name} {event} BEGIN {'; '.join(statements)}; END"


_DECREASE_RENEWED: Final = "UPDATE {table}_search_keys SET renewed = renewed - 1 WHERE row_id = "
"""Decreases `renewed` after a change. Where a connection has `_INDEX_TRIGGERS`, these increased it
before an update, and removed the row before a deletion. Without them it becomes -1, and the
trigger `empty` empties the index."""
SQLITE_SCHEMA: Final = SchemaDialect(
    types=MappingProxyType(
        {**dict.fromkeys(ColumnType, "TEXT"), ColumnType.INTEGER: "INTEGER"},
    ),
    checks=MappingProxyType(
        {
            # In a pattern of GLOB a question mark is one character.
            ColumnType.UUID: "{column} GLOB '????????-????-????-????-????????????'",
            ColumnType.TIMESTAMP: "{column} GLOB '????-??-??T??:??:??.??????Z'",
            # Before 3.45 json_valid does not let NULL pass.
            ColumnType.JSON: "{column} IS NULL OR json_valid({column})",
        }
    ),
    options=" STRICT",  # refuse values of another type than their column's
    # Connections without `_INDEX_TRIGGERS` can still write: `maintain_search_index` indexes their
    # new rows later. A row that they change or delete empties the index, since nothing of an erased
    # row may stay in it.
    search=(
        (
            "CREATE TABLE {table}_search_keys (number INTEGER PRIMARY KEY, "
            "row_id TEXT NOT NULL UNIQUE, renewed INTEGER NOT NULL DEFAULT 0) STRICT"
        ),
        # Without texts and positions it takes a third of the space; callers check its results.
        (
            "CREATE VIRTUAL TABLE {table}_search USING fts5({columns}, "
            "content='', tokenize='trigram', detail=none, columnsize=0)"
        ),
        _trigger(
            "TRIGGER",
            "update",
            "AFTER UPDATE OF {columns} ON {table}",
            f"{_DECREASE_RENEWED}new.id",
        ),
        _trigger("TRIGGER", "delete", "AFTER DELETE ON {table}", f"{_DECREASE_RENEWED}old.id"),
        _trigger(
            "TRIGGER",
            "empty",
            "AFTER UPDATE ON {table}_search_keys WHEN new.renewed < 0",
            "INSERT INTO {table}_search ({table}_search) VALUES ('delete-all')",
            "DELETE FROM {table}_search_keys",
        ),
    ),
)
_UNINDEX: Final = (
    "INSERT INTO {table}_search ({table}_search, rowid, {columns}) "
    "SELECT 'delete', number, {old} FROM {table}_search_keys WHERE row_id = old.id"
)
_INDEX_TRIGGERS: Final = (
    _trigger(
        "TEMP TRIGGER",
        "update",
        "BEFORE UPDATE OF {columns} ON {table}",
        _UNINDEX,
        "UPDATE {table}_search_keys SET renewed = renewed + 1 WHERE row_id = old.id",
    ),
    _trigger(
        "TEMP TRIGGER",
        "updated",
        "AFTER UPDATE OF {columns} ON {table}",  # before that, a constraint may refuse the row
        "INSERT INTO {table}_search (rowid, {columns}) "
        "SELECT number, {new} FROM {table}_search_keys WHERE row_id = new.id",
    ),
    _trigger(
        "TEMP TRIGGER",
        "delete",
        "BEFORE DELETE ON {table}",
        _UNINDEX,
        "DELETE FROM {table}_search_keys WHERE row_id = old.id",
    ),
)
"""The temporary triggers by which each connection updates the index after changes; new rows are
indexed by `index_rows`. They are not in the schema, as they call a function that a former version
lacks, which may still serve the store when it is migrated. An entry is deleted by its former
values, since the index keeps no texts; it has a number of its own, since VACUUM changes the rowid
of a row whose key is a text. It is deleted BEFORE the change, so that the triggers in the schema
see that it was."""
_MISSING: Final = (
    "SELECT (SELECT count(*) FROM {table}) - (SELECT count(*) FROM {table}_search_keys), "
    "(SELECT max(rowid) FROM {table})"
)
"""Selects the number of rows that are not indexed, and the last rowid."""
_READ_MISSING: Final = (
    "SELECT id, {columns} FROM {table} WHERE rowid BETWEEN ? AND ? "
    "AND NOT EXISTS (SELECT 1 FROM {table}_search_keys WHERE row_id = id)"
)
_FILL_BATCH_SIZE: Final = 1000  # rows: about 0.1 s
_INDEX: Final = {
    table.name: tuple(
        format_search(
            table,
            (
                (
                    "INSERT INTO {table}_search_keys (row_id) "
                    "SELECT json_extract(value, '$[0]') FROM json_each(?)"
                ),
                (
                    "INSERT INTO {table}_search (rowid, {columns}) "
                    "SELECT number, {values} FROM json_each(?) "
                    "JOIN {table}_search_keys ON row_id = json_extract(value, '$[0]')"
                ),
            ),
        )
    )
    for table in TABLES.values()
}
"""The statements of `index_rows` by table; none for a table that is not searched."""


def index_rows(connection: sqlite3.Connection, table: Table, rows: Iterable[Iterable[str]]) -> None:
    """Index new rows, each given by its id and its searched texts, in the current transaction.

    FTS5 writes a segment for each statement: a trigger, which is one for each row, costs three
    times as much. The texts are folded here and handed over as JSON, since a function that SQLite
    calls waits for the thread that answers requests. Raises sqlite3.Error.
    """
    folded = orjson.dumps([(row_id, *map(fold_accents, texts)) for row_id, *texts in rows]).decode()
    for statement in _INDEX[table.name]:
        connection.execute(statement, (folded,))


def maintain_search_index(connection: sqlite3.Connection) -> None:
    """Make this connection index the rows that it changes, and index the rows that are missing.

    The second part takes several transactions, between which others can write. Raises
    sqlite3.Error.
    """
    for table in [each for each in TABLES.values() if each.searched]:
        *triggers, missing, read = format_search(table, (*_INDEX_TRIGGERS, _MISSING, _READ_MISSING))
        for trigger in triggers:
            connection.execute(trigger)
        lacking, last = connection.execute(missing).fetchone()
        for start in range(1, last + 1 if lacking else 1, _FILL_BATCH_SIZE):
            rowids = (start, start + _FILL_BATCH_SIZE - 1)
            if not connection.execute(read, rowids).fetchone():
                continue
            connection.execute("BEGIN IMMEDIATE")
            try:
                index_rows(connection, table, connection.execute(read, rowids))
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            time.sleep(0.05)  # the interval at which waiting writers retry
