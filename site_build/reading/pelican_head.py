"""Reads the head that Pelican's own sites have: lines `Key: value`, up to the first empty one."""

import re
from datetime import date, datetime

from dateutil.parser import ParserError  # type: ignore[import-untyped]
from dateutil.parser import parse as parse_date

from site_build.reading.located_yaml import Entry

_LINE = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")
_NAMES = {"modified": "updated", "authors": "author"}
"""Keys of Pelican, with the one that means the same here."""
_LISTS = frozenset({"tags", "aliases", "authors"})
_DATES = frozenset({"date", "modified", "updated"})
_LONGEST_DATE = 60
"""Characters; the parser takes a time with the square of what is longer."""
_DEFAULTS = (datetime(2001, 1, 1), datetime(2002, 2, 2))  # noqa: DTZ001 - only compared


def read_pelican_head(text: str) -> tuple[list[Entry], int] | None:
    """Return the entries at the head of a text and the offset of its body; None without any.

    An indented line goes on with the value above, as in Python-Markdown's `meta` extension.
    """
    found: list[tuple[str, int, int, list[str]]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if match := _LINE.match(line):
            found.append((match[1].lower(), at, at + match.start(2), [match[2].strip()]))
        elif found and line.strip() and line.startswith("    "):
            found[-1][3].append(line.strip())
        else:
            break
        at += len(line)
    entries = [
        _read(key, " ".join(lines).strip(), key_at, value_at)
        for key, key_at, value_at, lines in found
    ]
    return (entries, at) if entries else None


def _read(key: str, text: str, key_at: int, value_at: int) -> Entry:
    """Return one entry; a list is parted by commas, or by semicolons where it has any."""
    name = _NAMES.get(key, key)
    if key in _LISTS:
        sign = ";" if ";" in text else ","
        members = [member.strip() for member in text.split(sign) if member.strip()]
        if key == "authors":
            return Entry(name, "; ".join(members) or None, key_at, value_at)
        return Entry(name, members, key_at, value_at, (value_at,) * len(members))
    value = _read_date(text) if key in _DATES else text
    return Entry(name, value or None, key_at, value_at)


def _read_date(text: str) -> date | str:
    """Return the date, or the text where it names no whole day: the check of the head tells why."""
    if len(text) > _LONGEST_DATE:
        return text
    try:
        first: datetime = parse_date(text, default=_DEFAULTS[0])
        second: datetime = parse_date(text, default=_DEFAULTS[1])
    except (ParserError, OverflowError):
        return text
    if first != second:
        return text
    return first if ":" in text else first.date()
