"""Rows as CSV (RFC 4180) that a spreadsheet program opens without running anything in it."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

from edge_api.domain.selection import spell_value
from edge_api.schema.table import Row

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheet programs take for the beginning of a formula."""


def to_csv(names: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a line of names and a line for each row; NULL is an empty cell.

    A cell that begins like a formula gets an apostrophe before it, which marks text.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return sheet.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else spell_value(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
