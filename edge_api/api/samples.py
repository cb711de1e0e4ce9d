"""Example rows of the administrative tables, made from the declared columns."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from edge_api.schema.kinds import Kind
from edge_api.schema.table import Column, Row, Table

SAMPLE_ID: Final = "01989f3a-7c00-7000-8000-3d2b1c0a9f8e"
SAMPLE_TIME: Final = "2026-01-31T08:05:09.000000Z"

_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "name": "Ada Lovelace",
        "email": "ada@example.org",
        "recipient_email": "ada@example.org",
        "budget_tier": "growth",
        "message": "We would like to talk about a new journal.",
        "template_name": "lead-acknowledgement",
        "token": "5f1d7a84db00d2fce00b31a7fc73224f",
    }
)
"""What is likely in a column of that name; for any other the name itself."""


def new_row_sample(table: Table) -> Row:
    """Return the least that an insert takes."""
    return {name: _sample(column) for name, column in table.columns.items() if column.required}


def stored_row_sample(table: Table) -> Row:
    """Return that row as it is stored."""
    row = table.new_row(new_row_sample(table), SAMPLE_TIME, lambda: SAMPLE_ID)
    return {name: row[name] for name in table.readable}


def match_sample(table: Table) -> Row:
    """Return a match for one row by its key."""
    return {table.key: _sample(table.columns[table.key])}


def values_sample(table: Table) -> Row:
    """Return a new value for one column: enumerated, else nullable, else the first writable one."""
    writable = [table.columns[name] for name in table.readable if name != table.key]
    enumerated = [column for column in writable if column.choices]
    nullable = [column for column in writable if column.nullable]
    return {column.name: _sample(column) for column in (enumerated or nullable or writable)[:1]}


def _sample(column: Column) -> Any:
    if column.choices:
        return column.choices[-1]
    least, most = column.bounds
    number = max(1, least or 0)
    return {
        Kind.TEXT: _TEXTS.get(column.name, column.name).ljust(least or 0, "0")[:most],
        Kind.INTEGER: number if most is None else min(number, most),
        Kind.UUID: SAMPLE_ID,
        Kind.TIMESTAMP: SAMPLE_TIME,
        Kind.JSON: {"source": "example"},
    }[column.kind]
