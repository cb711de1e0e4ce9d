"""Header fields: lists, preferences, conditions and ranges (RFC 9110, sections 12 to 14)."""

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

_ENTITY_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\U0010ffff]*"'
_LISTED_TAG: Final = re.compile(rf"[ \t]*+({_ENTITY_TAG})?[ \t]*+(?:,|\Z)")
"""Possessive, so that a header of nothing but blanks costs no more than its length."""
_RANGE: Final = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)", re.IGNORECASE)
_DIGITS_MOST: Final = 18
"""No file is longer; Python refuses to read numbers of thousands of digits."""


def etag_matches(condition: str, etag: str) -> bool:
    """Tell whether an `If-None-Match` names `etag`, compared weakly (section 8.8.3.2).

    A list that breaks the grammar matches nothing, so that the client gets the whole answer.
    """
    if condition == etag:
        return True
    if condition.strip() == "*":
        return True
    return etag.removeprefix("W/") in _opaque_tags(condition)


@lru_cache(256)
def _opaque_tags(condition: str) -> frozenset[str]:
    tags: set[str] = set()
    position = 0
    while position < len(condition):
        listed = _LISTED_TAG.match(condition, position)
        if listed is None:
            return frozenset()
        if listed[1]:
            tags.add(listed[1].removeprefix("W/"))
        position = max(listed.end(), position + 1)
    return frozenset(tags)


def range_holds(condition: str | None, etag: str) -> bool:
    """Tell whether an `If-Range` lets a range be sent: absent, or the very same strong validator.

    A date never does: answers carry no `Last-Modified` that it could equal (section 13.1.5).
    """
    return condition is None or (condition.strip() == etag and not etag.startswith("W/"))


class Span(NamedTuple):
    """Part of a body: `length` bytes from `start` on."""

    start: int
    length: int

    def content_range(self, size: int) -> str:
        """Return the value of `Content-Range` for this part of `size` bytes (section 14.4)."""
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"


def asked_span(header: str, size: int) -> Span | Literal["whole", "unsatisfiable"]:
    """Return the part of `size` bytes that a `Range` asks for (section 14.1.2).

    `whole` for what may be ignored: another unit, broken syntax, several ranges at once.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return "whole"
    first, last = (_number(digits) for digits in match.groups())
    if first is None:
        return _span(max(size - (last or 0), 0), size - 1, size)
    if last is not None and last < first:
        return "whole"
    return _span(first, size - 1 if last is None else min(last, size - 1), size)


def _number(digits: str) -> int | None:
    """Return the number, any that is too long to matter cut down to one that is still too long."""
    if not digits:
        return None
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _DIGITS_MOST else 10**_DIGITS_MOST


def _span(first: int, last: int, size: int) -> Span | Literal["unsatisfiable"]:
    return Span(first, last - first + 1) if first < size else "unsatisfiable"
