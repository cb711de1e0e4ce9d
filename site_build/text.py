"""Texts: places in them, slugs of them, and characters that no page or feed can carry."""

import re
from bisect import bisect_right
from datetime import UTC, datetime
from functools import lru_cache
from unicodedata import normalize

from unidecode import unidecode

LONGEST_SLUG = 80
"""Code points of a made slug; an author may write a longer one."""


@lru_cache(maxsize=4_096)  # The same few tags come with thousands of posts.
def make_slug(title: str) -> str:
    """Return a slug for `title`, or an empty string when nothing in it can be written in a-z0-9."""
    plain = unidecode(title, errors="ignore").lower()
    plain = re.sub(r"(?<=[a-z0-9])['\u2019`](?=[a-z0-9])", "", plain)  # an apostrophe in a word
    slug = "-".join(re.findall("[a-z0-9]+", plain))
    if len(slug) <= LONGEST_SLUG:
        return slug
    return slug[: LONGEST_SLUG + 1].rpartition("-")[0] or slug[:LONGEST_SLUG]


def fold(text: str) -> str:
    """Return what two names have in common that are one to the disks of macOS and Windows."""
    return normalize("NFC", text.casefold())


# XML 1.0 (section 2.2) has no way to write these, so a feed that quotes them is not well-formed.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


def find_control_characters(text: str) -> list[int]:
    """Return the offsets of the characters that must not stand in a text."""
    return [found.start() for found in _CONTROL.finditer(text)]


def strip_control_characters(text: str) -> str:
    """Return `text` without the characters that must not stand in it."""
    return _CONTROL.sub("", text)


def shorten(text: str, longest: int = 60) -> str:
    """Return `text` fit for a message: on one line, without control characters, cut if long."""
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
