"""Screens of the administrative tables: rows as the address filters and sorts them, and one."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from edge_api.admin.filters import COMPARABLE, OPERATORS, format_value
from edge_api.admin.query import DEFAULT_LIMIT
from edge_api.admin.rows import ReturnOptions, Rows
from edge_api.db.problems import Problem
from edge_api.db.query import require_row
from edge_api.db.table import Column, Row, Table
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.db.types import ColumnType, refuse_inexact
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.operation.input import FormErrors

_OWN: Final = ("column", "operator", "value", "done", "select")
"""Parameters that are no filters: of the form that adds one, of a notice, and one left aside."""


async def list_tables(visit: Visit) -> Values:
    """Return the tables that the sign-in reaches."""
    return {"tables": [each for each in ADMINISTRATIVE.values() if visit.may_use(each.name)]}


def find_table(visit: Visit) -> Table:
    """Return the table of the address. Raises Problem `not_found`, `forbidden`."""
    table = ADMINISTRATIVE.get(visit.path["table"])
    if table is None:
        raise Problem("not_found", "There is no such table")
    if not visit.may_use(table.name):
        raise Problem("forbidden", f"Your key is not for the table {table.name}")
    return table


async def list_rows(visit: Visit) -> Values:
    """Return a page of rows; the address has filters and order in PostgREST's dialect."""
    table = find_table(visit)
    pairs = [pair for pair in visit.pairs if pair[0] not in _OWN]
    fault, page = "", None
    if visit.query.get("column") and visit.query.get("operator") in OPERATORS:
        text = f"{visit.query['operator']}.{visit.query.get('value', '')}"
        pairs.append((visit.query["column"], text))
    try:
        page = await visit.service[Rows].read(table, pairs)
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
        "order": dict(pairs).get("order", ""),
        "operators": OPERATORS,
        "sortable": [name for name in table.readable if table.columns[name].kind in COMPARABLE],
        "fault": fault,
        "before": max(0, offset - limit) if offset else None,
        "after": offset + limit if has_more else None,
        "first": offset + 1,
    }


async def read_row(visit: Visit, table: Table, key: str) -> Row:
    """Return a row by its key as it stands in an address. Raises Problem `not_found`."""
    missing = f"There is no such row of {table.name}: it may be deleted"
    return await require_row(visit.service.store, table, key, missing)


async def show_row(visit: Visit) -> Values:
    """Return one row with what its form needs."""
    table = find_table(visit)
    row = await read_row(visit, table, visit.path["key"])
    title = f"A row of {table.name}"
    return {"title": title, "table": table, "row": row, "fields": fields(table, row)}


def fields(table: Table, row: Row) -> list[tuple[Column, str]]:
    """Return the columns that can be changed, with their values as a form has them; NULL: empty."""
    return [
        (column, "" if row[name] is None else format_value(row[name]).replace("\r\n", "\n"))
        for name, column in table.columns.items()
        if name not in table.hidden and not column.on_update_now and name != table.key
    ]


def _to_value(column: Column, text: str) -> Any:
    """Return the value of a field. Raises ValueError with what to fix."""
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


async def save_row(visit: Visit, table: Table, key: str) -> None:
    """Change the columns that the form changed, unless they have changed since it was shown.

    Each field comes with its former text, `was.<column>`; a second press finds nothing to change.
    Raises FormErrors.
    """
    row = await read_row(visit, table, key)
    match: dict[str, Any] = {table.key: row[table.key]}
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for column, current in fields(table, row):
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
        try:
            values[name] = _to_value(column, wanted)
        except ValueError as error:
            errors[name] = f"{name} {error}."
        if column.kind is not ColumnType.JSON:
            match[name] = row[name]
    if errors:
        raise FormErrors(errors)
    if values:
        await _update(visit, table, match, values)


async def _update(
    visit: Visit, table: Table, match: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    try:
        await visit.service[Rows].update(
            table, match, values, visit.actor, ReturnOptions(single=True)
        )
    except Problem as problem:
        if problem.code == "not_acceptable":
            raise Problem(
                "conflict", "The row has changed this moment: look at it again, and save again"
            ) from None
        name, colon, sentence = problem.message.partition(": ")
        if problem.code == "invalid" and colon and name in values:
            raise FormErrors({name: f"{name} {sentence}."}) from None
        raise


async def save(visit: Visit) -> str:
    """Save the form of a row."""
    table, key = find_table(visit), visit.path["key"]
    await save_row(visit, table, key)
    return f"/desk/tables/{table.name}/{key}/"


async def delete(visit: Visit) -> str:
    """Delete a row; one that is gone already stays so."""
    table = find_table(visit)
    try:
        row = await read_row(visit, table, visit.path["key"])
        await visit.service[Rows].delete(table, {table.key: row[table.key]}, visit.actor)
    except Problem as problem:
        if problem.code != "not_found":
            raise
    return f"/desk/tables/{table.name}/"


ROW: Final = Screen("/desk/tables/{table}/{key}/", "A row", "row", show_row, is_open=True)
SCREENS: Final = (
    Screen("/desk/tables/", "Tables", "tables", list_tables, nav="Tables", is_open=True),
    Screen("/desk/tables/{table}/", "Rows", "rows", list_rows, is_open=True),
    ROW,
)
ACTIONS: Final = (
    Action(ROW.path, ROW, save),
    Action("/desk/tables/{table}/{key}/delete/", ROW, delete),
)
