"""Places in a text, instants as text, and the characters that no page or feed can carry."""

import re
from bisect import bisect_right
from datetime import UTC, datetime

# XML 1.0 (section 2.2) has no way to write these, so a feed that quotes them is not well-formed.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


def find_control_character(text: str) -> int | None:
    """Return the offset of the first character that must not stand in a text, or None."""
    found = _CONTROL.search(text)
    return found.start() if found else None


def count_control_characters(text: str) -> int:
    """Return how many characters of `text` must not stand in it."""
    return sum(1 for _ in _CONTROL.finditer(text))


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
        self._starts = [0, *(end.end() for end in re.finditer("\n", text))]
        self._first_line = first_line

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of `offset`."""
        line = bisect_right(self._starts, offset) - 1
        return self._first_line + line, offset - self._starts[line] + 1
