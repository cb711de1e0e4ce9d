"""Rows for any declared table, which have a value in every column, or in those that must."""

from collections.abc import Callable, Mapping
from typing import Any

from edge_api.db.table import Column, Row, Table
from edge_api.db.types import ColumnType

Bounds = tuple[int | None, int | None]
_JSON = {"b": [1, 2.5, None, True], "a": {"\u00fc": "\U0001f58b"}}


def full_row(table: Table, number: int) -> Row:
    """Return a row of which every column has a value; rows of other numbers differ in each."""
    return table.new_row(
        {name: _value(column, number) for name, column in table.columns.items()}, "", str
    )


def bare_row(table: Table, number: int) -> Row:
    """Return a row with NULL wherever a column allows it."""
    given = full_row(table, number)
    return {name: None if table.columns[name].nullable else given[name] for name in given}


def _value(column: Column, number: int) -> Any:
    if column.choices:
        return column.choices[number % len(column.choices)]
    if column.kind is ColumnType.INTEGER:
        least, most = column.bounds
        return min(max(number, least or 0), most or number + 1)
    return _TEXTS[column.kind](number, column.bounds)


def _text(number: int, bounds: Bounds) -> str:
    least, most = bounds
    return f"{number:04d} \u00e4\u2028'".ljust(least or 0, "x")[: most or 100]


_TEXTS: Mapping[ColumnType, Callable[[int, Bounds], Any]] = {
    ColumnType.TEXT: _text,
    ColumnType.UUID: lambda number, _: f"{number:08d}-0000-4000-8000-000000000000",
    ColumnType.TIMESTAMP: lambda number, _: f"2026-01-01T00:00:{number % 60:02d}.{number:06d}Z",
    ColumnType.JSON: lambda number, _: {**_JSON, "n": number},
}
