"""Rows as CSV, in which spreadsheet programs run nothing."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from typing import Any, Final

from edge_api.db.table import Row

CSV_TYPE: Final = "text/csv; charset=utf-8"
_LINE_BREAKS: Final = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_SKIPPED_CHARACTERS: Final = (
    '"\x00-\x08\x0e-\x1b\x1f\x20\x7f-\x84\x86-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5'
    "\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""Characters that spreadsheet programs skip at the start of a cell: quotes, blanks, invisible
ones."""
_FORMULA_ONLY: Final = r"=\uff1d\ufe66@\uff20\ufe6b"
"""Characters that begin nothing but a formula, with their wide and their small forms."""
_FORMULA_STARTS: Final = rf"{_FORMULA_ONLY}+\-\uff0b\uff0d\ufe62\ufe63\u2212"
"""All characters that begin a formula: `+` and `-` too."""
_LEADING_FORMULA: Final = re.compile(
    rf"[\t\r]|[{_SKIPPED_CHARACTERS}{_LINE_BREAKS}]*[{_FORMULA_STARTS}|]"
)
_INNER_FORMULA: Final = re.compile(
    rf"[;\t|{_LINE_BREAKS}](?=[{_SKIPPED_CHARACTERS}]*[{_FORMULA_STARTS}])"
)
"""A formula inside a cell, where a program that separates cells not at commas but at other
characters, and rows at every line break, begins a new cell."""
_INNER_FORMULA_IN_PLAIN_LINE: Final = re.compile(
    rf"[;\t|](?=[{_SKIPPED_CHARACTERS}]*[{_FORMULA_STARTS}])|[{_LINE_BREAKS}](?=[{_SKIPPED_CHARACTERS}]*[{_FORMULA_ONLY}])"
)
"""The same in a plain line, one without `_CALL_OR_REFERENCE`: there `+` and `-` after a line break
begin a list item or a phone number."""
_LINE: Final = re.compile(r"\n?[^\n]*")
_CALL_OR_REFERENCE: Final = re.compile(
    r"[(\[{!#$&|'\"\\^*\uff08\uff3b\uff5b\uff01\uff03\uff04\uff06\uff5c\uff07\uff02\uff3c\uff3e\uff0a"
    r"\ufe35\ufe37\ufe47\ufe57\ufe59\ufe5b\ufe5f\ufe60\ufe61\ufe68\ufe69\u207d\u208d]"
    rf"|[.\uff0e\ufe52\uff61\u3002][{_SKIPPED_CHARACTERS}]*+[^\W\d_]{{1,3}}\d"
)
"""Text that can call a function or a program, or name a cell of another sheet (`Sheet1.A1`)."""


def format_value(value: object) -> str:
    """Return a text as it is, and any other value as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_csv(names: Sequence[str], rows: Iterable[Row], *, has_header: bool = True) -> str:
    """Return CSV (RFC 4180): a header and a line for each row; NULL is an empty cell.

    Spreadsheet programs run nothing in it, whether they separate cells at commas, semicolons, tabs
    or vertical bars: an apostrophe, which marks text, is put before everything that begins like a
    formula.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    if has_header:
        writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return sheet.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else format_value(value)
    if _INNER_FORMULA.search(text):
        text = _LINE.sub(_guard_line, text)
    return f"'{text}" if _LEADING_FORMULA.match(text) else text


def _guard_line(line: re.Match[str]) -> str:
    pattern = (
        _INNER_FORMULA
        if _CALL_OR_REFERENCE.search(line[0])
        # For a program with another separator, the last line of a cell includes the next cells.
        or (line.end() == len(line.string) and not line[0].rstrip()[-1:].isalnum())
        else _INNER_FORMULA_IN_PLAIN_LINE
    )
    return pattern.sub(r"\g<0>'", line[0])


async def stream_csv(
    names: Sequence[str], pages: AsyncIterable[Sequence[Row]]
) -> AsyncGenerator[bytes, None]:
    """Yield pages of rows as CSV, the first with the header. Raises what `pages` raises."""
    head = to_csv(names, ())
    async for rows in pages:
        lines = await asyncio.to_thread(to_csv, names, rows, has_header=False)
        if part := f"{head}{lines}".encode():
            yield part
        head = ""
    if head:
        yield head.encode()
