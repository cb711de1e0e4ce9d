"""The forms in which administrative rows can be had: which one a client asked for, and CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from edge_api.api.preferences import media_weight, preferences
from edge_api.api.reply import JSON
from edge_api.domain.selection import spell_value
from edge_api.schema.table import Row

CSV: Final = "text/csv"
OBJECT: Final = "application/vnd.pgrst.object+json"
"""PostgREST's name for one row that is not wrapped in an array."""
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheet programs take for the beginning of a formula."""


@lru_cache(512)
def chosen_form(accept: str | None) -> str:
    """Return JSON, CSV or OBJECT: the one with most weight (RFC 9110, section 12.5.1).

    JSON wins among equals, stands for every wildcard, and is the answer to any other wish.
    """
    wanted = accept or "*/*"
    weights = {JSON: media_weight(wanted, JSON), CSV: 0.0, OBJECT: 0.0}
    for preference in preferences(wanted):
        if preference.name in (CSV, OBJECT):
            weights[preference.name] = max(weights[preference.name], preference.weight)
    return max(weights, key=lambda form: weights[form])


def to_csv(names: Sequence[str], rows: Iterable[Row]) -> str:
    """Return CSV (RFC 4180): a line of names and a line for each row; NULL is an empty cell.

    A spreadsheet program opens it without running anything in it: a cell that begins like a formula
    gets an apostrophe before it, which marks text.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return sheet.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else spell_value(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
