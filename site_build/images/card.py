"""Social cards, the pictures of posts where links to them are shared, and the colours of tags.

A card shows the title in ink on paper, and at the right the fore-edge in the hues of the post's
tags, as on the page. This module takes plain values and knows no posts.
"""

import io
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from PIL import Image, ImageDraw, features

from site_build.cache import make_key
from site_build.images import fonts
from site_build.images.fonts import (
    Font,
    adapt_to_font,
    choose_font,
    drop_missing_ornaments,
    open_font,
)

SIZE = (1200, 630)
"""Width and height in pixels that sites require where links are shared."""

HUES = 90
"""Number of hues of tags; a style sheet has a class for each."""

LIGHTNESS, CHROMA = 0.6, 0.125
"""OKLCH values of tag colours by day; every hue has a contrast of 3:1 to paper."""

_LINEAR_LIMIT = 0.0031308
"""Amount of light below which sRGB's channels are linear."""

Colour = tuple[int, int, int]
"""sRGB, each from 0 to 255."""

# Colours of the theme by day, whose style sheet has them under these names.
_PAPER: Colour = (0xF8, 0xF5, 0xEE)
_INK: Colour = (0x1F, 0x22, 0x2C)
_HAIRLINE: Colour = (0xD8, 0xD2, 0xC3)

# The palette: a ramp from paper to ink, then for each band its colour and a paler one for lines.
_RAMP = 32
_BANDS = 24
"""Most tags that get a band; more bands would be thinner than 26 pixels."""

_MARGIN = 88
_EDGE = 96
_LEAF, _CUT = 9, 3
"""Pixels of a leaf of the book, and of the paler line that it begins with."""
_SMALL = 34
"""Font size of the site's name and of the day."""

PHOTOGRAPH_SIZE = (560, SIZE[1])
"""Pixels of a photograph, which is beside the title, so that neither covers the other."""


_ELLIPSIS = "\u2026"
_JOINT = re.compile(r"[/_\-)]+(?=\w)")
"""Characters after which a long word, such as a path, is broken if it has any."""


@dataclass(frozen=True, slots=True)
class CardPlace:
    """A card's path and measures, for pages and feeds."""

    path: str
    width: int = SIZE[0]
    """Width in pixels."""
    height: int = SIZE[1]
    kind: str = "png"
    """`jpeg` with a photograph."""


@dataclass(frozen=True, slots=True)
class Card:
    """The content of a card."""

    site: str
    title: str = ""
    """Empty on the card of the site."""
    day: str = ""
    hues: tuple[int, ...] = ()
    """Hues of the tags, in their order."""
    photograph: str = ""
    """Identifies the photograph beside the title; empty if there is none."""


def digest_card(card: Card, font: Font) -> bytes:
    """Return the digest of the card's content, its fonts and the code that draws it."""
    chosen = [choose_font(each, font).digest for each in (card.site, card.title, card.day)]
    return make_key(card, font.digest, chosen, _fingerprint())


def can_write_title(card: Card, font: Font) -> bool:
    """Return whether a font has the letters of the card's title; if not, boxes replace them."""
    return adapt_to_font(card.title, choose_font(card.title, font)) is not None


def draw_card(card: Card, font: Font, photograph: Callable[[], Image.Image] | None = None) -> bytes:
    """Return the card as PNG, or as JPEG if a function gives a photograph.

    The photograph has the size PHOTOGRAPH_SIZE. The same card gives the same bytes.
    """
    sheet = Image.new("L", SIZE, 0)  # a pixel is an index of the palette
    sheet.putpalette(_make_palette(card.hues[:_BANDS]))
    file = io.BytesIO()
    if photograph is None:
        _draw_texts(sheet, card, font, SIZE[0] - _EDGE, (112, 100, 90, 80, 72, 64, 58))
        _paint_edge(sheet, card.hues[:_BANDS])
        # This takes half the time of the usual level 6, for a third more bytes.
        sheet.save(file, "PNG", compress_level=3)
    else:
        _draw_texts(sheet, card, font, SIZE[0] - PHOTOGRAPH_SIZE[0], (80, 72, 64, 58, 52, 46))
        page = sheet.convert("RGB")
        page.paste(photograph(), (SIZE[0] - PHOTOGRAPH_SIZE[0], 0))
        page.save(file, "JPEG", quality=86, optimize=True, progressive=True)
    return file.getvalue()


def _draw_texts(
    sheet: Image.Image, card: Card, font: Font, right: int, title_sizes: tuple[int, ...]
) -> None:
    """Draw the texts of the card, up to `right`; the title begins at the top of its box."""
    width = right - 2 * _MARGIN
    site, title = (drop_missing_ornaments(each, font) for each in (card.site, card.title))
    day = (SIZE[1] - _MARGIN + 20, card.day)
    for height, text in ((_MARGIN, site), day) if title else (day,):
        chosen = choose_font(text, font)
        _, lines = fit(text, chosen, (_SMALL,), (width, line_height(_SMALL)))
        # Small print is paler than the title: it has step 22 of the ramp.
        write_line(sheet, (_MARGIN, height), "".join(lines), 22, (chosen, _SMALL), width)
    title = title or site
    title_font = choose_font(title, font)
    size, lines = fit(title, title_font, title_sizes, (width, 360))
    top = 162 + round(size * 0.74)
    for number, line in enumerate(lines):
        place = (_MARGIN, top + number * line_height(size))
        write_line(sheet, place, line, _RAMP - 1, (title_font, size), width)


def _paint_edge(sheet: Image.Image, hues: tuple[int, ...]) -> None:
    draw = ImageDraw.Draw(sheet)
    left, right, bottom = SIZE[0] - _EDGE, SIZE[0] - 1, SIZE[1]
    count = max(1, len(hues))
    for band in range(count):
        top = bottom * band // count + (3 if band else 0)  # a gap between bands
        end = bottom * (band + 1) // count - 1
        colour = _RAMP + 2 * band
        draw.rectangle((left, top, right, end), fill=colour)
        for cut in range(left, right, _LEAF):
            draw.rectangle((cut, top, cut + _CUT - 1, end), fill=colour + 1)


def _make_palette(hues: tuple[int, ...]) -> list[int]:
    """Return the colours of the ramp and of the bands; without tags there is one unpainted band."""
    colours = [blend(_INK, _PAPER, step / (_RAMP - 1)) for step in range(_RAMP)]
    for hue in hues:
        colours += [convert_hue(hue), blend(convert_hue(hue), _PAPER, 0.76)]
    if not hues:
        colours += [_PAPER, _HAIRLINE]
    return [channel for colour in colours for channel in colour]


@cache
def _fingerprint() -> bytes:
    """Return the digest of the code and the libraries that draw cards."""
    codecs = [features.version(each) for each in ("freetype2", "raqm", "zlib")]
    return make_key(
        version("pillow"), codecs, [Path(e).read_bytes() for e in (__file__, fonts.__file__)]
    )


def fit(
    text: str, font: Font, sizes: Sequence[int], box: tuple[int, int]
) -> tuple[int, tuple[str, ...]]:
    """Return the size at which `text` fits into a box of (width, height), and its lines.

    `sizes` come largest first; a text that fits at none is cut. `line_height` gives the height of
    a line.
    """
    for size in sizes:  # A smaller size may keep a word whole.
        lines = _wrap(text, font, size, box[0])
        if len(lines) <= box[1] // line_height(size) and _keeps_words(text, lines):
            return size, _balance_lines(text, font, size, (box[0], len(lines)))
    most = box[1] // line_height(size)
    if len(lines) > most:
        last = lines[most - 1]
        while last and _measure(last + _ELLIPSIS, font, size) > box[0]:
            last = last[:-1]
        lines[most - 1 :] = [last.rstrip(" ,.;:-\u2013\u2014") + _ELLIPSIS]
    return size, tuple(lines)


def _keeps_words(text: str, lines: Sequence[str]) -> bool:
    """Return whether no word of `text` is broken, or its script has no spaces between words."""
    return " ".join(lines) == text or bool(
        re.search("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]", text)
    )


def line_height(size: int) -> int:
    """Return the distance of two lines of a title, in pixels."""
    return round(size * 1.16)


@lru_cache(maxsize=16_384)
def _measure(text: str, font: Font, size: int) -> float:
    """Return the width of a text in pixels; cached, since many titles share words."""
    return open_font(font, size).getlength(text)


def write_line(  # noqa: PLR0913, PLR0917
    sheet: Image.Image,
    place: tuple[int, int],
    text: str,
    ink: int,
    sized_font: tuple[Font, int],
    width: int = 0,
) -> None:
    """Draw a line of text: its baseline begins at `place`, `sized_font` is a font and a size.

    A line that runs from right to left ends at `width`. `ink` is an index of the palette.
    """
    left, words = float(place[0]), text.split(" ")
    if any(unicodedata.bidirectional(sign) in {"R", "AL"} for sign in text):
        # The line is one piece, since its words are not shown in the order of the text.
        left, words = left + max(0, width - _measure(text, *sized_font)), [text]
    for word in words:
        picture, x, y = _draw_word(word, *sized_font)
        sheet.paste(ink, (round(left) + x, place[1] + y), picture)
        left += _measure(word, *sized_font) + _measure(" ", *sized_font)


@lru_cache(maxsize=256)
def _draw_word(word: str, font: Font, size: int) -> tuple[Image.Image, int, int]:
    """Return the picture of a word, and its offset from the start of the base line.

    Drawing takes most of the time that a card takes, and titles have many words in common. A
    picture takes up to 100 kB: with 4,096 of them a build took no less time, and more memory.
    """
    opened = open_font(font, size)
    left, top, right, bottom = map(math.floor, opened.getbbox(word, anchor="ls"))
    picture = Image.new("L", (right - left + 1, bottom - top + 1))
    ImageDraw.Draw(picture).text((-left, -top), word, 255, opened, anchor="ls")
    return picture, left, top


def _wrap(text: str, font: Font, size: int, width: float) -> list[str]:
    """Break `text` into lines no wider than `width`; a word that is wider is broken too."""
    lines: list[str] = []
    end = 0.0  # Width of the last line.
    for word in text.split():
        longer = end + _measure(" ", font, size) + _measure(word, font, size)
        if longer <= width and lines:
            lines[-1] = f"{lines[-1]} {word}"
            end = longer
        else:
            lines += _split(word, font, size, width)
            end = _measure(lines[-1], font, size)
    return lines


def _split(word: str, font: Font, size: int, width: float) -> Iterator[str]:
    """Yield the pieces of a word that is wider than a line; a narrower one is one piece."""
    while len(word) > 1 and _measure(word, font, size) > width:
        lengths = (range(len(word)), width)
        fitting = max(1, bisect_right(*lengths, key=lambda n: _measure(word[:n], font, size)) - 1)
        joint = max((found.end() for found in _JOINT.finditer(word, 0, fitting)), default=fitting)
        # No line of Japanese may begin with these characters (JIS X 4051).
        while joint > 1 and word[joint] in (
            "、。，．：；！？）」』】〕〉》ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ…"  # noqa: RUF001
        ):
            joint -= 1
        yield word[:joint]
        word = word[joint:]
    yield word


def _balance_lines(text: str, font: Font, size: int, block: tuple[int, int]) -> tuple[str, ...]:
    """Return the lines in the narrowest column that still fits into a block of (width, lines).

    So the last line does not have a single word.
    """
    low, high = 0.0, float(block[0])
    for _ in range(8):  # After 8 halvings, nobody sees a difference.
        middle = (low + high) / 2
        lines = _wrap(text, font, size, middle)
        if len(lines) > block[1] or not _keeps_words(text, lines):
            low = middle
        else:
            high = middle
    return tuple(_wrap(text, font, size, high))


def choose_hue(slug: str) -> int:
    """Return the number of a tag's hue, from 0: the same on every page and picture."""
    # 47 is prime to HUES: words that differ by one letter get hues far apart.
    return sum(slug.encode()) * 47 % HUES


def convert_hue(hue: int, lightness: float = LIGHTNESS, chroma: float = CHROMA) -> Colour:
    """Return the colour of a hue, by default that by day, clipped to sRGB (CSS Color 4, 9.2)."""
    angle = math.radians(hue * 360 / HUES)
    a, b = chroma * math.cos(angle), chroma * math.sin(angle)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _encode_channel(4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short),
        _encode_channel(-1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short),
        _encode_channel(-0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short),
    )


def blend(colour: Colour, ground: Colour, share: float) -> Colour:
    """Return `colour` laid over `ground`, of which 1 - `share` shows through."""
    red, green, blue = (
        round(over * share + under * (1 - share))
        for over, under in zip(colour, ground, strict=True)
    )
    return red, green, blue


def _encode_channel(light: float) -> int:
    """Return the sRGB channel for an amount of light from 0 to 1 (IEC 61966-2-1)."""
    light = min(1.0, max(0.0, light))
    channel = 12.92 * light if light <= _LINEAR_LIMIT else 1.055 * light ** (1 / 2.4) - 0.055
    return round(channel * 255)
