"""Actors, the audit log of their changes, how one is undone, and the identifiers of new rows."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from struct import unpack
from typing import Final, Literal
from uuid import UUID

from edge_api.db.internal_tables import FORMER_ROWS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    InsertFromRead,
    Order,
    Query,
    Read,
    RowCount,
    Store,
    Update,
    Where,
    read_all,
)
from edge_api.db.table import Row, Table
from edge_api.db.tables import AUDIT_LOG, TABLES
from edge_api.db.types import ColumnType, format_instant

Clock = Callable[[], datetime]
"""Returns the current instant in UTC, with its zone. Tests pass a clock of their own."""


def system_clock() -> datetime:
    """Return the current instant in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Actor:
    """The sender of a request or author of a change, such as the holder of a credential."""

    credential_id: str  # empty for a client that acts for itself
    name: str
    type: str  # `api_key` or `access_token`
    scopes: frozenset[str]
    tables: frozenset[str] | None = None
    """The administrative tables that it may use; `None` is all of them."""
    client_id: str = ""  # the OAuth client that acts, for the credential or for itself

    def may_use(self, table: str) -> bool:
        """Return whether it may use an administrative table; an empty name stands for all."""
        return self.tables is None or table in self.tables

    @property
    def limit_key(self) -> str:
        """The key of the actor's rate limits: the credential's id, whatever client acts for it."""
        return self.credential_id or self.client_id

    @property
    def label(self) -> str:
        """The name of the actor in the audit log."""
        key = f"credential:{self.credential_id}" if self.credential_id else ""
        client = f"client:{self.client_id}" if self.client_id else ""
        return f"{key} {client}".strip() or self.name


OPERATOR = Actor("operator", "operator", "api_key", frozenset())  # the user of the command line

ANYONE = Actor("", "anybody", "", frozenset())  # anyone without a credential

SERVICE = Actor("service", "service", "api_key", frozenset())  # the running service by itself


def audit_entry(
    actor: Actor,
    verb: str,
    table: Table | Literal["posts"],
    rows: int | RowCount,
    now: datetime,
    *columns: str,
) -> Insert:
    """Return the query that stores the audit entry of a change.

    `rows` is the number of changed rows; for a `RowCount` the engine fills in the number after the
    change. `columns` are the columns that the change filtered by. Posts have no table: of one,
    `columns` are its slug and its version, or the path of a picture.
    """
    given = {
        "actor": actor.label,
        "verb": verb,
        "table_name": table if isinstance(table, str) else table.name,
        "columns": ",".join(columns),
        "rows": 0,
    }
    row = AUDIT_LOG.new_row(given, format_instant(now), partial(new_id, now))
    return Insert(AUDIT_LOG, [{**row, "rows": rows}])


async def recent_entries(store: Store, limit: int) -> list[Row]:
    """Return the newest entries of the audit log, the newest first."""
    order = (Order("at", descending=True), Order("id", descending=True))
    return await read_all(store, Read(AUDIT_LOG, order=order, limit=limit))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_random_pool: list[int] = []  # random numbers of 64 bits, each used once


def new_id(now: datetime) -> str:
    """Return a UUID, version 7, that sorts after all UUIDs of earlier microseconds.

    The twelve bits after the milliseconds hold the fraction of a millisecond (RFC 9562, section
    6.2, method 3); the other 62 are random.
    """
    milliseconds, microseconds = divmod((now - _EPOCH) // _MICROSECOND, 1000)
    fraction = (microseconds << 12) // 1000
    try:
        number = _random_pool.pop()
    except IndexError:
        # Get many numbers by one system call: it releases the interpreter lock, and acquiring that
        # again costs more than the rest of an identifier.
        _random_pool.extend(unpack("512Q", os.urandom(8 * 512)))
        number = _random_pool.pop()
    bits = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | number >> 2
    return str(UUID(int=bits))


if hasattr(os, "register_at_fork"):  # no two processes may use the same numbers
    os.register_at_fork(after_in_child=_random_pool.clear)


def audited(
    actor: Actor,
    verb: str,
    query: Insert | Update | Delete,
    now: datetime,
    columns: Sequence[str] | None = None,
) -> tuple[Query, Query, Query]:
    """Return the queries of a change that can be undone, for the beginning of a transaction.

    The first stores the rows before and after the change, the second is the change, the third its
    audit entry, which names `columns`; by default those of the filters.
    """
    where = () if isinstance(query, Insert) else query.where
    named = tuple(each.column for each in where) if columns is None else tuple(columns)
    entry = audit_entry(actor, verb, query.table, RowCount(1), now, *named)
    keep = partial(_insert_former_rows, query.table, entry.rows[0]["id"], now)
    if isinstance(query, Insert):
        return keep((None, dict(row)) for row in query.rows), query, entry
    most = query.at_most and query.at_most + 1  # enough, since the change refuses more
    read = Read(query.table, where=where, limit=most)
    values = query.values if isinstance(query, Update) else None

    def keep_both(rows: list[Row]) -> Insert:
        return keep((row, None if values is None else {**row, **values}) for row in rows)

    return InsertFromRead(read, keep_both), query, entry


def _insert_former_rows(
    table: Table, audit_id: str, now: datetime, pairs: Iterable[tuple[Row | None, Row | None]]
) -> Insert:
    """Return the query that stores rows before and after a change; `None` is no row."""
    at, make_id = format_instant(now), partial(new_id, now)
    rows = []
    for former, changed in pairs:
        row_id = str((former or changed or {})[table.key])
        named = {"audit_id": audit_id, "table_name": table.name, "row_id": row_id}
        given = {**named, "former": former, "changed": changed}
        rows.append(FORMER_ROWS.trusted_row(given, at, make_id))
    return Insert(FORMER_ROWS, rows)


async def find_undoable(store: Store, audit_ids: Sequence[str]) -> dict[str, list[Row]]:
    """Return the first stored row of each audit entry that can be undone, by the entry's id."""
    reads = (Read(FORMER_ROWS, where=_entry_filter(each), limit=1) for each in audit_ids)
    results = await store.run(*reads) if audit_ids else []
    found = zip(audit_ids, results, strict=True)
    return {audit_id: result.rows for audit_id, result in found if result.rows}


def _entry_filter(audit_id: str) -> Where:
    return (Filter("audit_id", "eq", audit_id),)


async def undo(
    store: Store,
    clock: Clock,
    actor: Actor,
    audit_id: str,
    check: Callable[[Table, Row], None] | None = None,
) -> None:
    """Restore the rows of a change as they were before it; this can be undone in turn.

    `check` may refuse a restored row. Raises Problem `not_found` if the former rows are not stored,
    `forbidden` for a table that the actor may not use, `conflict` if a row has changed since, and
    what `check` raises.
    """
    kept = await read_all(store, Read(FORMER_ROWS, where=_entry_filter(audit_id.lower())))
    if not kept:
        raise Problem(
            "not_found",
            "No change with this id can be undone: it was undone already, what it changed was "
            "erased or is no longer kept, or the id is none that `audit --ids` shows",
        )
    table = TABLES[kept[0]["table_name"]]
    if not actor.may_use(table.name):
        raise Problem("forbidden", f"Your key is not for the table {table.name}")
    keys = tuple((row["former"] or row["changed"])[table.key] for row in kept)
    (found,) = await store.run(Read(table, where=(Filter(table.key, "in", keys),)))
    current = {str(row[table.key]): row for row in found.rows}
    now = clock()
    for row in kept:
        present, changed = current.get(row["row_id"]), row["changed"]
        # The rows that a former version stored lack the columns that were added since.
        if (present and {name: present[name] for name in changed or present}) != changed:
            raise await _conflict(store, row, present)
        if row["former"]:
            new = present or table.trusted_row(
                row["former"], format_instant(now), partial(new_id, now)
            )
            row["former"] = {**new, **row["former"]}
            if check:
                check(table, row["former"])
        row["changed"] = present
    entry = audit_entry(actor, "undo", table, len(kept), now, table.key)
    back = _insert_former_rows(
        table, entry.rows[0]["id"], now, ((row["changed"], row["former"]) for row in kept)
    )
    # This fails if a row read above is gone: rows that were erased since must not come back.
    still_kept = Update(
        FORMER_ROWS, {"table_name": table.name}, _entry_filter(audit_id), at_least=len(kept)
    )
    forget = Delete(FORMER_ROWS, _entry_filter(audit_id))
    try:
        await store.run(still_kept, *_restore(table, kept), forget, back, entry)
    except Problem as problem:
        if problem.code == "not_acceptable":
            raise Problem(
                "conflict", "A row has changed this moment: look, and try again"
            ) from None
        raise


def _restore(table: Table, kept: Sequence[Row]) -> list[Query]:
    """Return the queries that restore the rows; they fail if one is not as the change left it."""
    queries: list[Query] = []
    for row in kept:
        former, changed = row["former"], row["changed"]
        if changed is None:
            queries.append(Insert(table, [former]))
        elif former is None:
            queries.append(Delete(table, _exact_filters(table, changed), single=True))
        else:
            values = {name: value for name, value in former.items() if value != changed[name]}
            if values:
                queries.append(Update(table, values, _exact_filters(table, changed), single=True))
    return queries


def _exact_filters(table: Table, row: Row) -> Where:
    """Return the filters of a row with exactly these values; JSON is not compared."""
    return tuple(
        Filter(name, "is", None) if row[name] is None else Filter(name, "eq", row[name])
        for name, column in table.columns.items()
        if column.kind is not ColumnType.JSON
    )


async def _conflict(store: Store, kept: Row, current: Row | None) -> Problem:
    """Return the problem of a row that has changed since; it names the later change if known."""
    where = (Filter("table_name", "eq", kept["table_name"]), Filter("row_id", "eq", kept["row_id"]))
    newest = (Order("id", descending=True),)
    (later,) = await store.run(Read(FORMER_ROWS, ("audit_id",), where, newest, limit=1))
    by = (Filter("id", "eq", later.rows[0]["audit_id"]),) if later.rows else ()
    entries = await read_all(store, Read(AUDIT_LOG, where=by, limit=1))
    known = [row for row in entries if by and row["id"] != kept["audit_id"]]
    who = "".join(f" ({row['verb']} by {row['actor']}, {row['at'][:16]})" for row in known)
    name = f"The row {kept['row_id']} of {kept['table_name']}"
    if kept["changed"] is None:
        return Problem("conflict", f"{name} is there again{who}: nothing was undone")
    if current is None:
        return Problem("conflict", f"{name} was deleted since{who}: nothing was undone")
    columns = ", ".join(key for key, value in kept["changed"].items() if value != current[key])
    return Problem("conflict", f"{name} has changed since, in {columns}{who}: nothing was undone")
