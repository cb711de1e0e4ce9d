"""From an engine's records to rows: names put to values, and JSON columns read."""

from collections.abc import Iterable, Sequence
from typing import Any

from edge_api.schema.table import Row, Table
from edge_api.store.json_text import read_json


def decode(table: Table, names: Sequence[str], records: Iterable[Iterable[Any]]) -> list[Row]:
    """Return a row for each record, which holds the values of the columns `names`."""
    rows = [dict(zip(names, record, strict=True)) for record in records]
    for name in table.documents.intersection(names):
        for row in rows:
            row[name] = None if row[name] is None else read_json(row[name])
    return rows
