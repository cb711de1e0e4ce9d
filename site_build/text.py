"""Helpers for texts: positions, slugs, and characters that are not allowed in pages and feeds."""

import re
from bisect import bisect_right
from datetime import UTC, datetime
from functools import lru_cache
from unicodedata import normalize

from unidecode import unidecode

LONGEST_SLUG = 80
"""The most code points of a slug that is made of a title; an author may write a longer one."""


@lru_cache(maxsize=4_096)  # The same few tags come with thousands of posts.
def make_slug(title: str) -> str:
    """Return a slug for `title`; it is empty if no part of the title can be written in a-z0-9."""
    plain = unidecode(title, errors="ignore").lower()
    plain = re.sub(r"(?<=[a-z0-9])['\u2019`](?=[a-z0-9])", "", plain)  # an apostrophe in a word
    slug = "-".join(re.findall("[a-z0-9]+", plain))
    if len(slug) <= LONGEST_SLUG:
        return slug
    return slug[: LONGEST_SLUG + 1].rpartition("-")[0] or slug[:LONGEST_SLUG]


def fold(text: str) -> str:
    """Return a name or address folded: those that macOS or Windows treat as equal become equal."""
    return normalize("NFC", text.casefold())


# XML 1.0 (section 2.2) does not allow these, so a feed with one of them is not well-formed.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


def find_control_characters(text: str) -> list[int]:
    """Return the offsets of characters that pages and feeds must not contain."""
    return [found.start() for found in _CONTROL.finditer(text)]


def strip_control_characters(text: str) -> str:
    """Return `text` without characters that pages and feeds must not contain."""
    return _CONTROL.sub("", text)


def shorten(text: str, longest: int = 60) -> str:
    """Return `text` for a message: on one line, without control characters, cut if it is long."""
    plain = text[: longest + 1]
    if not plain.isprintable():
        plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in plain)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}\u2026"


def write_instant(instant: datetime) -> str:
    """Return an RFC 3339 date-time in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Places:
    """Turns offsets of one text into lines and columns, both from 1, columns in code points."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.starts = [0, *(end.end() for end in re.finditer("\n", text))]
        """Offsets at which lines begin."""
        self._first_line = first_line

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of `offset`."""
        line = bisect_right(self.starts, offset) - 1
        return self._first_line + line, offset - self.starts[line] + 1
