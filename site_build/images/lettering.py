"""Text on pictures: which of it a font can write, how large, where lines break, and its ink.

A line is put together from glyphs that are each drawn once: that takes most of the time that a card
takes, and titles have a hundred of them in common. What the font draws as one, ligatures and
letters with accents, is kept as one: the outcome is the same to the pixel as if the line were drawn
at a stroke.
"""

import hashlib
import io
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import floor
from pathlib import Path

from PIL import Image, ImageChops, ImageFont

LONGEST = 400
"""Code points of a title that are looked at; no card holds more."""

_VARIANTS = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""They choose between two looks of the sign before, and are no signs themselves."""

_ELLIPSIS = "\u2026"
_JOINT = re.compile(r"[/_\-)]+(?=\w)")
"""Where a word such as a path breaks rather than elsewhere."""

_MEASURED_AT = 100
"""Pixels; lengths grow with the size, near enough for lines with a margin beside them."""


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
    kept = []
    for sign in unicodedata.normalize("NFC", text[:LONGEST]):
        if not _is_word_part(sign) and not _is_drawn(sign, font):
            kept.append(" " if sign.isspace() else "")
        elif unicodedata.bidirectional(sign) in {"R", "AL"} or not _is_drawn(sign, font):
            return None
        else:
            kept.append(sign)
    return " ".join("".join(kept).split()) or None


def fit(
    text: str, font: Font, sizes: Sequence[int], box: tuple[int, int]
) -> tuple[int, tuple[str, ...]]:
    """Return the size at which `text` fits into a box of (width, height), and its lines.

    `sizes` come largest first; the text is cut where it fits at none. A line takes as much height
    as `line_height` says.
    """
    for size in sizes:  # A smaller one may spare a word from being broken.
        width = box[0] / size
        lines = _wrap(text, font, width)
        if len(lines) <= box[1] // line_height(size) and " ".join(lines) == text:
            return size, _even_out(text, font, width, len(lines))
    size = sizes[-1]
    width = box[0] / size
    return size, _cut(_wrap(text, font, width), font, width, box[1] // line_height(size))


def line_height(size: int) -> int:
    """Return the distance of two lines of a title, in pixels."""
    return round(size * 1.16)


def _is_word_part(sign: str) -> bool:
    """Return whether a word would be another without the sign."""
    if sign in _VARIANTS:
        return False
    return unicodedata.category(sign) in {"Mn", "Mc"} or unicodedata.category(sign)[0] in "LN"


@lru_cache(maxsize=4_096)
def _is_drawn(sign: str, font: Font) -> bool:
    """Return whether the font has something of its own for a sign."""
    if sign == " ":
        return True
    if not sign.isprintable():
        return False
    opened = open_font(font, 24)
    # What a font draws for a noncharacter, it draws for whatever it lacks.
    mask, missing = opened.getmask(sign), opened.getmask("\U0010fffe")
    return mask.size[0] > 0 and (mask.size, bytes(mask)) != (missing.size, bytes(missing))


def _find_length(text: str, font: Font) -> float:
    """Return the length of a text in multiples of the font's size; blanks count as blanks."""
    words = text.split(" ")
    blank, *lengths = (_measure(word, font, _MEASURED_AT) / _MEASURED_AT for word in (" ", *words))
    return sum(lengths) + blank * (len(words) - 1)


def _wrap(text: str, font: Font, width: float) -> list[str]:
    """Break `text` into lines no wider than `width`; a word that is wider is broken too."""
    lines: list[str] = []
    end = 0.0  # Of the last line.
    for word in text.split():
        longer = end + _find_length(" ", font) + _find_length(word, font)
        if longer <= width and lines:
            lines[-1] = f"{lines[-1]} {word}"
            end = longer
        else:
            lines += _split(word, font, width)
            end = _find_length(lines[-1], font)
    return lines


def _split(word: str, font: Font, width: float) -> Iterator[str]:
    """Yield the pieces of a word that is wider than a line; a narrower one is one piece."""
    while len(word) > 1 and _find_length(word, font) > width:
        fitting = max(
            1, bisect_right(range(len(word)), width, key=lambda n: _find_length(word[:n], font)) - 1
        )
        joint = max((found.end() for found in _JOINT.finditer(word, 0, fitting)), default=fitting)
        yield word[:joint]
        word = word[joint:]
    yield word


def _even_out(text: str, font: Font, width: float, count: int) -> tuple[str, ...]:
    """Return as many lines in the narrowest column, so that none is left with one word."""
    low, high = 0.0, width
    for _ in range(8):  # So many halvings are finer than anybody sees.
        middle = (low + high) / 2
        lines = _wrap(text, font, middle)
        if len(lines) > count or " ".join(lines) != text:
            low = middle
        else:
            high = middle
    return tuple(_wrap(text, font, high))


def _cut(lines: Sequence[str], font: Font, width: float, most: int) -> tuple[str, ...]:
    """Return the first lines, with an ellipsis where more would follow."""
    if len(lines) <= most:
        return tuple(lines)
    last = lines[most - 1]
    while last and _find_length(last + _ELLIPSIS, font) > width:
        last = last[:-1]
    return (*lines[: most - 1], last.rstrip(" ,.;:-\u2013\u2014") + _ELLIPSIS)


_COMPARED_AT = 24
"""Pixels; large enough for a ligature to look other than its letters."""


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Letters as they are drawn; offsets in pixels from where the pen stands on the base line."""

    ink: Image.Image
    left: int
    top: int


@dataclass(frozen=True, slots=True)
class Pen:
    """What is written with: a font, and how dark, on a ramp from 0, the paper, to `full`."""

    font: Font
    size: int
    """Pixels."""
    full: int
    strength: int = 255
    """How much of `full` is used, of 255."""


def write_line(sheet: Image.Image, place: tuple[int, int], text: str, pen: Pen) -> None:
    """Write `text` from the left end of its base line."""
    for letters, at in _set(text, pen.font, pen.size):
        if stamp := _dip(letters, pen):
            sheet.paste(pen.full, (place[0] + at + stamp.left, place[1] + stamp.top), stamp.ink)


def _set(text: str, font: Font, size: int) -> Iterator[tuple[str, int]]:
    """Yield letters that are drawn as one, and how many pixels from the start they stand."""
    letters, end = text[:1], 0.0
    for before, after in pairwise(text):
        if _are_joined(before, after, font):
            letters += after
            continue
        yield letters, floor(end + 0.5)
        end += _advance(letters, after, font, size)
        letters = after
    yield letters, floor(end + 0.5)


def _advance(letters: str, after: str, font: Font, size: int) -> float:
    """Return how far the pen moves over `letters` when `after` comes next, in pixels."""
    return _measure(letters + after, font, size) - _measure(after, font, size)


@lru_cache(maxsize=16_384)
def _measure(letters: str, font: Font, size: int) -> float:
    return open_font(font, size).getlength(letters)


@lru_cache(maxsize=4_096)
def _dip(letters: str, pen: Pen) -> _Stamp | None:
    """Return letters as they are drawn with a pen: on paper each pixel is a step of its ramp."""
    stamp = _draw_glyph(letters, pen.font, pen.size)
    if stamp is None:
        return None
    steps = (round(level * pen.strength / 255) * pen.full // 255 for level in range(256))
    return replace(stamp, ink=stamp.ink.point([round(step * 255 / pen.full) for step in steps]))


@lru_cache(maxsize=4_096)
def _draw_glyph(letters: str, font: Font, size: int) -> _Stamp | None:
    """Return letters as they are drawn; None where nothing is to be seen."""
    mask, (left, top) = open_font(font, size).getmask2(letters, "L", anchor="ls")
    if 0 in mask.size:
        return None
    return _Stamp(Image.frombytes("L", mask.size, bytes(mask)), round(left), round(top))


@lru_cache(maxsize=16_384)
def _are_joined(before: str, after: str, font: Font) -> bool:
    """Return whether the font draws two letters other than one beside the other."""
    whole = _draw_glyph(before + after, font, _COMPARED_AT)
    if whole is None:
        return False
    apart = Image.new("L", whole.ink.size, 0)
    end = floor(_advance(before, after, font, _COMPARED_AT) + 0.5)
    for letter, at in ((before, 0), (after, end)):
        if stamp := _draw_glyph(letter, font, _COMPARED_AT):
            apart.paste(255, (at + stamp.left - whole.left, stamp.top - whole.top), stamp.ink)
    return ImageChops.difference(whole.ink, apart).getbbox() is not None
