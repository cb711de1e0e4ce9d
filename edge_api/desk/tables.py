"""Screens of the administrative tables: their list, their filtered rows, and one row's form."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import uuid4

import orjson

from edge_api.admin.filters import COMPARABLE, OPERATORS
from edge_api.admin.rows import DEFAULT_LIMIT, ReturnOptions, Rows
from edge_api.db.problems import Problem
from edge_api.db.query import find_row, require_row
from edge_api.db.table import Column, Row, Table
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.db.types import ColumnType, refuse_inexact
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.operation.input import FormErrors
from edge_api.operation.sheets import format_value

FIRST_COLUMNS: Final = ("name", "email", "recipient_email", "status", "reason", "created_at")
"""Columns that a list of rows shows first."""


async def list_tables(visit: Visit) -> Values:
    """Return the tables that the sign-in may use."""
    return {"tables": [each for each in ADMINISTRATIVE.values() if visit.actor.may_use(each.name)]}


def find_table(visit: Visit) -> Table:
    """Return the table that the address names. Raises Problem `not_found`, `forbidden`."""
    table = ADMINISTRATIVE.get(visit.path["table"])
    if table is None:
        raise Problem("not_found", "There is no such table")
    if not visit.actor.may_use(table.name):
        raise Problem("forbidden", f"Your key is not for the table {table.name}")
    return table


async def list_rows(visit: Visit) -> Values:
    """Return a page of rows; the address has filters and order in PostgREST's dialect."""
    table = find_table(visit)
    # The fields of the form that adds a filter, a notice, and `select`, which is ignored.
    not_filters = ("column", "operator", "value", "done", "select")
    pairs = [pair for pair in visit.pairs if pair[0] not in not_filters]
    fault, page = "", None
    order = dict(pairs).get("order") or ",".join(
        f"{name}.desc" for name in ("created_at", table.key) if name in table.columns
    )
    if visit.query.get("column") and visit.query.get("operator") in OPERATORS:
        text = f"{visit.query['operator']}.{visit.query.get('value', '')}"
        pairs.append((visit.query["column"], text))
    try:
        page = await visit.service[Rows].read(
            table, [*(pair for pair in pairs if pair[0] != "order"), ("order", order)]
        )
    except Problem as problem:
        if problem.code != "invalid":
            raise
        fault = f"{problem.message}."
    offset = page.offset if page else 0
    limit = int(dict(pairs).get("limit", DEFAULT_LIMIT)) if page else DEFAULT_LIMIT
    has_more = page is not None and page.count == limit
    return {
        "title": table.name,
        "table": table,
        "rows": page.rows if page else [],
        "pairs": pairs,
        "filters": [pair for pair in pairs if pair[0] in table.columns],
        "order": order.partition(",")[0],
        "names": sorted(
            table.readable, key=lambda name: (name not in FIRST_COLUMNS, name == table.key)
        ),
        "operators": OPERATORS,
        "sortable": [name for name in table.readable if table.columns[name].kind in COMPARABLE],
        "fault": fault,
        "before": max(0, offset - limit) if offset else None,
        "after": offset + limit if has_more else None,
        "first": offset + 1,
    }


async def read_row(visit: Visit, table: Table, key: str) -> Row:
    """Return the row with this key, which comes from an address. Raises Problem `not_found`."""
    missing = f"There is no such row of {table.name}: it may be deleted"
    return await require_row(visit.service.store, table, key, missing)


async def show_row(visit: Visit) -> Values:
    """Return the values of a row's form; without a key in the address, those of a new row."""
    table, key = find_table(visit), visit.path.get("key")
    row = await read_row(visit, table, key) if key else {}
    shown = row or {name: column.default for name, column in table.columns.items()}
    return {
        "title": f"A row of {table.name}" if key else f"A new row of {table.name}",
        "table": table,
        "row": row,
        "fields": form_fields(table, shown),
        "once": str(uuid4()),
    }


def form_fields(table: Table, row: Row) -> list[tuple[Column, str]]:
    """Return the columns of a form, with their values as text; NULL is an empty text."""
    return [
        (column, "" if row[name] is None else format_value(row[name]).replace("\r\n", "\n"))
        for name, column in table.columns.items()
        if name not in table.hidden and not column.on_update_now and name != table.key
    ]


def _to_value(column: Column, text: str) -> Any:
    """Parse the text of a field. Raises ValueError, which says what to fix."""
    if not text and column.nullable:
        return None
    if column.kind is ColumnType.INTEGER:
        try:
            return int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
    if column.kind is ColumnType.JSON:
        try:
            value = orjson.loads(text)
        except ValueError:
            raise ValueError("must be JSON") from None
        refuse_inexact(text.encode())
        return value
    return text


def _to_values(table: Table, texts: Mapping[str, str], errors: Mapping[str, str]) -> dict[str, Any]:
    """Parse the texts of fields. Raises FormErrors, which include the given `errors`."""
    values, found = dict[str, Any](), dict(errors)
    for name, text in texts.items():
        try:
            values[name] = _to_value(table.columns[name], text)
        except ValueError as error:
            found[name] = f"{name} {error}."
    if found:
        raise FormErrors(found, "conflict" if errors else "invalid")
    return values


async def save_row(visit: Visit, table: Table, key: str) -> None:
    """Change the columns that the form changed, unless they have changed since it was shown.

    Each field comes with its former text, `was.<column>`; a second press finds nothing to change.
    Raises FormErrors.
    """
    row = await read_row(visit, table, key)
    match: dict[str, Any] = {table.key: row[table.key]}
    texts: dict[str, str] = {}
    errors: dict[str, str] = {}
    for column, current in form_fields(table, row):
        name = column.name
        wanted, was = visit.typed.get(name), visit.typed.get(f"was.{name}", current)
        if wanted is None or wanted in (was, current):
            continue
        if current != was:
            errors[name] = (
                f"Meanwhile this was changed to: {current or 'nothing'}. "
                "What you typed is kept here; save again to replace it."
            )
            continue
        texts[name] = wanted
        if column.kind is not ColumnType.JSON:
            match[name] = row[name]
    values = _to_values(table, texts, errors)
    if not values:
        return
    options = ReturnOptions(single=True)
    try:
        await visit.service[Rows].update(table, match, values, visit.actor, options)
    except Problem as problem:
        if problem.code == "not_acceptable":
            raise Problem(
                "conflict", "The row has changed this moment: look at it again, and save again"
            ) from None
        raise


async def add(visit: Visit) -> str:
    """Store a new row, with defaults for empty fields; the form's key prevents a second row."""
    table = find_table(visit)
    values = _to_values(
        table, {name: visit.typed[name] for name in table.readable if visit.typed.get(name)}, {}
    )
    (row,) = await visit.service[Rows].insert(table, [values], visit.actor)
    return f"/desk/tables/{table.name}/{row[table.key]}/"


async def save(visit: Visit) -> str:
    """Save the form of a row."""
    table = find_table(visit)
    await save_row(visit, table, visit.path["key"])
    return f"/desk/tables/{table.name}/{visit.path['key']}/"


async def delete(visit: Visit) -> str:
    """Delete a row, if it still exists."""
    table = find_table(visit)
    if row := await find_row(visit.service.store, table, visit.path["key"]):
        await visit.service[Rows].delete(table, {table.key: row[table.key]}, visit.actor)
    return f"/desk/tables/{table.name}/"


_screen: Final = partial(Screen, section="Settings", checks_tables=True)
NEW: Final = _screen("/desk/tables/{table}/new/", "A new row", "row", show_row)
ROW: Final = _screen("/desk/tables/{table}/{key}/", "A row", "row", show_row)
SCREENS: Final = (
    _screen("/desk/tables/", "Tables", "tables", list_tables),
    _screen("/desk/tables/{table}/", "Rows", "rows", list_rows),
    NEW,  # before ROW, whose address pattern matches this address too
    ROW,
)
ACTIONS: Final = (
    Action(NEW.path, NEW, add),
    Action(ROW.path, ROW, save),
    Action("/desk/tables/{table}/{key}/delete/", ROW, delete),
)
