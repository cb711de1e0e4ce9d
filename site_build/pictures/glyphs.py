"""Text as ink, put together from glyphs that are each drawn once.

To draw a glyph takes most of the time that a card takes, and titles have a hundred of them in
common. What the font draws as one, ligatures and letters with accents, is kept as one: the outcome
is the same to the pixel as if the line were drawn at a stroke.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import floor

from PIL import Image, ImageChops

from site_build.pictures.lettering import Font, open_font

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
    stamp = _cut(letters, pen.font, pen.size)
    if stamp is None:
        return None
    steps = (round(level * pen.strength / 255) * pen.full // 255 for level in range(256))
    return replace(stamp, ink=stamp.ink.point([round(step * 255 / pen.full) for step in steps]))


@lru_cache(maxsize=4_096)
def _cut(letters: str, font: Font, size: int) -> _Stamp | None:
    """Return letters as they are drawn; None where nothing is to be seen."""
    mask, (left, top) = open_font(font, size).getmask2(letters, "L", anchor="ls")
    if 0 in mask.size:
        return None
    return _Stamp(Image.frombytes("L", mask.size, bytes(mask)), round(left), round(top))


@lru_cache(maxsize=16_384)
def _are_joined(before: str, after: str, font: Font) -> bool:
    """Tell whether the font draws two letters other than one beside the other."""
    whole = _cut(before + after, font, _COMPARED_AT)
    if whole is None:
        return False
    apart = Image.new("L", whole.ink.size, 0)
    end = floor(_advance(before, after, font, _COMPARED_AT) + 0.5)
    for letter, at in ((before, 0), (after, end)):
        if stamp := _cut(letter, font, _COMPARED_AT):
            apart.paste(255, (at + stamp.left - whole.left, stamp.top - whole.top), stamp.ink)
    return ImageChops.difference(whole.ink, apart).getbbox() is not None
