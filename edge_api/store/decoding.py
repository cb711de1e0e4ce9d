"""From an engine's records to rows, and JSON columns: text in an engine without a type for them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from edge_api.schema.problems import Problem
from edge_api.schema.table import Row, Table


def decode(table: Table, names: Sequence[str], records: Iterable[Iterable[Any]]) -> list[Row]:
    """Return a row for each record, which holds the values of the columns `names`."""
    rows = [dict(zip(names, record, strict=True)) for record in records]
    for name in table.documents.intersection(names):
        for row in rows:
            row[name] = None if row[name] is None else read_json(row[name])
    return rows


def write_json(value: Any) -> str:
    """Return the text of a value. Raises Problem `invalid` for what JSON cannot say (RFC 8259)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise Problem("invalid", "the value cannot be written as JSON", sqlstate="22P02") from None


def read_json(text: str) -> Any:
    """Return the value of a text that `write_json` made."""
    return json.loads(text)
