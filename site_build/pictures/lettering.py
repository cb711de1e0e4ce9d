"""Words set in a box: which of them a font can write, how large, and where lines break.

It knows a font and lengths in pixels, and nothing of what is drawn around them.
"""

import hashlib
import io
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

LONGEST = 400
"""Code points of a title that are looked at; no card holds more."""

_NEVER_DRAWN = "\U0010fffe"
"""A noncharacter: what a font draws for it, it draws for whatever it lacks."""

_VARIANTS = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""They choose between two looks of the sign before, and are no signs themselves."""

_ELLIPSIS = "\u2026"
_JOINT = re.compile(r"[/_\-)]+(?=\w)")
"""Where a word such as a path breaks rather than elsewhere."""

_MEASURED_AT = 100
"""Pixels; lengths grow with the size, near enough for lines with a margin beside them."""

_STEPS = 8
"""Halvings in the search for even lines; finer than anybody sees."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A text broken into lines."""

    size: int
    """Of the font, in pixels."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Font:
    """A font as it was read, the same whatever becomes of its file."""

    data: bytes = field(compare=False, repr=False)
    digest: str
    """SHA-256 of the data, hexadecimal; what tells fonts apart."""


def read_font(file: Path) -> Font:
    """Return the font in a file; raises OSError when it cannot be read."""
    data = file.read_bytes()
    return Font(data, hashlib.sha256(data).hexdigest())


@lru_cache(maxsize=16)
def open_font(font: Font, size: int) -> ImageFont.FreeTypeFont:
    """Return a font at a size; raises OSError when its file was none."""
    return ImageFont.truetype(io.BytesIO(font.data), size)


def keep_writable(text: str, font: Font) -> str | None:
    """Return what of `text` the font can write, or None when it lacks a letter.

    Ornaments that it lacks, emoji among them, are left out. So is nothing that makes words: rather
    none than half a title. Scripts that run from right to left count as lacking.
    """
    plain = unicodedata.normalize("NFC", text[:LONGEST])
    kept = []
    for sign in plain:
        if not _is_word_part(sign) and not _is_drawn(sign, font):
            kept.append(" " if sign.isspace() else "")
        elif unicodedata.bidirectional(sign) in {"R", "AL"} or not _is_drawn(sign, font):
            return None
        else:
            kept.append(sign)
    return " ".join("".join(kept).split()) or None


def fit(text: str, font: Font, sizes: Sequence[int], box: tuple[int, int]) -> Lines:
    """Return `text` as large as it fits into a box of (width, height); cut where none does.

    `sizes` come largest first. A line takes as much height as `line_height` says.
    """
    ruler = _Ruler(font)
    for size in sizes:
        width = box[0] / size
        lines = _wrap(text, ruler, width)
        if len(lines) <= box[1] // line_height(size) and not _is_broken(text, lines):
            return Lines(size, _even_out(text, ruler, width, len(lines)))
    size = sizes[-1]
    width = box[0] / size
    return Lines(size, _cut(_wrap(text, ruler, width), ruler, width, box[1] // line_height(size)))


def line_height(size: int) -> int:
    """Return the distance of two lines of a title, in pixels."""
    return round(size * 1.16)


def _is_word_part(sign: str) -> bool:
    """Tell whether a word would be another without the sign."""
    if sign in _VARIANTS:
        return False
    return unicodedata.category(sign) in {"Mn", "Mc"} or unicodedata.category(sign)[0] in "LN"


@lru_cache(maxsize=4_096)
def _is_drawn(sign: str, font: Font) -> bool:
    """Tell whether the font has something of its own for a sign."""
    if sign == " ":
        return True
    if not sign.isprintable():
        return False
    opened = open_font(font, 24)
    mask, missing = opened.getmask(sign), opened.getmask(_NEVER_DRAWN)
    return mask.size[0] > 0 and (mask.size, bytes(mask)) != (missing.size, bytes(missing))


class _Ruler:
    """Lengths of texts in multiples of the font's size, each word measured once."""

    def __init__(self, font: Font) -> None:
        self._font = font
        self.blank = _measure_word(" ", font)

    def measure(self, text: str) -> float:
        """Return the length of a text; the blanks between words count as blanks."""
        words = text.split(" ")
        return sum(_measure_word(word, self._font) for word in words) + self.blank * (
            len(words) - 1
        )


@lru_cache(maxsize=8_192)
def _measure_word(word: str, font: Font) -> float:
    return open_font(font, _MEASURED_AT).getlength(word) / _MEASURED_AT


def _wrap(text: str, ruler: _Ruler, width: float) -> list[str]:
    """Break `text` into lines no wider than `width`; a word that is wider is broken too."""
    lines: list[str] = []
    end = 0.0  # Of the last line.
    for word in text.split():
        longer = end + ruler.blank + ruler.measure(word)
        if longer <= width and lines:
            lines[-1] = f"{lines[-1]} {word}"
            end = longer
        else:
            lines += _split(word, ruler, width)
            end = ruler.measure(lines[-1])
    return lines


def _split(word: str, ruler: _Ruler, width: float) -> Iterator[str]:
    """Yield the pieces of a word that is wider than a line; a narrower one is one piece."""
    while len(word) > 1 and ruler.measure(word) > width:
        fitting = max(
            1, bisect_right(range(len(word)), width, key=lambda n: ruler.measure(word[:n])) - 1
        )
        joint = max((found.end() for found in _JOINT.finditer(word, 0, fitting)), default=fitting)
        yield word[:joint]
        word = word[joint:]
    yield word


def _is_broken(text: str, lines: Sequence[str]) -> bool:
    """Tell whether a word had to be broken: a smaller size may spare it."""
    return " ".join(lines) != text


def _even_out(text: str, ruler: _Ruler, width: float, count: int) -> tuple[str, ...]:
    """Return as many lines in the narrowest column, so that none is left with one word."""
    low, high = 0.0, width
    for _ in range(_STEPS):
        middle = (low + high) / 2
        lines = _wrap(text, ruler, middle)
        if len(lines) > count or _is_broken(text, lines):
            low = middle
        else:
            high = middle
    return tuple(_wrap(text, ruler, high))


def _cut(lines: Sequence[str], ruler: _Ruler, width: float, most: int) -> tuple[str, ...]:
    """Return the first lines, with an ellipsis where more would follow."""
    if len(lines) <= most:
        return tuple(lines)
    last = lines[most - 1]
    while last and ruler.measure(last + _ELLIPSIS) > width:
        last = last[:-1]
    return (*lines[: most - 1], last.rstrip(" ,.;:-\u2013\u2014") + _ELLIPSIS)
