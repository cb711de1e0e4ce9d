"""Reads the head that Pelican's own sites have: lines `Key: value`, up to the first empty one."""

import re

from dateutil.parser import ParserError  # type: ignore[import-untyped]
from dateutil.parser import parse as parse_date

from site_build.reading.located_yaml import Entry

_LINE = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")
_NAMES = {"modified": "updated", "authors": "author"}
"""Keys of Pelican, with the one that means the same here."""
_LISTS = frozenset({"tags", "aliases"})
_DATES = frozenset({"date", "updated"})


def read_pelican_head(text: str) -> tuple[list[Entry], int] | None:
    """Return the entries at the head of a text and the offset of its body; None without any.

    An indented line goes on with the value above, as in Python-Markdown's `meta` extension.
    """
    entries: list[Entry] = []
    at = 0
    for line in text.splitlines(keepends=True):
        found = _LINE.match(line)
        if found and not line.startswith(" "):
            key = found[1].lower()
            entries.append(_read(_NAMES.get(key, key), found[2].strip(), at, at + found.start(2)))
        elif entries and line.strip() and line.startswith("    "):
            last = entries[-1]
            entries[-1] = _read(
                last.key, f"{last.value} {line.strip()}", last.key_at, last.value_at
            )
        else:
            break
        at += len(line)
    return (entries, at) if entries else None


def _read(key: str, text: str, key_at: int, value_at: int) -> Entry:
    """Return one entry; a list is parted by commas, or by semicolons where it has any."""
    if key in _LISTS:
        sign = ";" if ";" in text else ","
        members = [member.strip() for member in text.split(sign) if member.strip()]
        return Entry(key, members, key_at, value_at, (value_at,) * len(members))
    if key in _DATES:
        try:
            return Entry(key, parse_date(text), key_at, value_at)
        except (ParserError, OverflowError):
            pass  # The check of the head says what a date looks like.
    return Entry(key, text or None, key_at, value_at)
