"""Social cards, each the picture of a post where somebody shares it, and the paint of fore-edges.

Paper, ink, and the fore-edge painted in the hues of the post's tags, as on the page. It knows
values alone, and nothing of posts.
"""

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, features

from site_build.cache import make_key
from site_build.images import lettering, strip
from site_build.images.lettering import Font, Pen, fit, keep_writable, line_height, write_line
from site_build.images.strip import SIGNATURE, frame_chunk

SIZE = (1200, 630)
"""Pixels; what the places where people share links ask for."""

HUES = 90
"""How many hues tags are spread over; a style sheet has a class for each."""

LIGHTNESS, CHROMA = 0.6, 0.125
"""Of the paint by day, in OKLCH; every hue of it stands out from paper by 3:1."""

_DARK = 0.0031308
"""Light below which sRGB's channels are linear."""

Colour = tuple[int, int, int]
"""sRGB, each from 0 to 255."""

# By day, and the theme's: its sheet has them under these names, and the tests compare.
_PAPER: Colour = (0xF8, 0xF5, 0xEE)
_INK: Colour = (0x1F, 0x22, 0x2C)
_HAIRLINE: Colour = (0xD8, 0xD2, 0xC3)

# A palette: a ramp from paper to ink, then a colour and its cut for each band.
_RAMP = 32
_BANDS = 24
"""Tags that are painted; a band of less than 26 pixels would be a stripe."""

_MARGIN = 88
_EDGE = 96
_LEAF, _CUT = 9, 3
"""Every so many pixels a leaf of the book ends, in a cut as wide."""
_GAP = 3

_SMALL = 34
_SOFT = 178
"""Ink of the small print, of 255."""
_TITLE_SIZES = (112, 100, 90, 80, 72, 64, 58)
_TITLE_TOP = 162
_TITLE_BOX = (SIZE[0] - _EDGE - 2 * _MARGIN, 360)


@dataclass(frozen=True, slots=True)
class CardPlace:
    """A card as pages and feeds name it."""

    path: str
    width: int = SIZE[0]
    """Pixels."""
    height: int = SIZE[1]


@dataclass(frozen=True, slots=True)
class Card:
    """What a card shows."""

    site: str
    title: str = ""
    """Empty on the card of the site."""
    day: str = ""
    hues: tuple[int, ...] = ()
    """Of the tags, in their order."""


def digest_card(card: Card, font: Font) -> bytes:
    """Return the digest of all that makes the card what it is."""
    return make_key(card, font.digest, _fingerprint())


def has_title(card: Card, font: Font) -> bool:
    """Return whether the font can write the card's title; else the site's name stands there."""
    return keep_writable(card.title, font) is not None


def draw_card(card: Card, font: Font) -> bytes:
    """Return the card as PNG; the same card gives the same bytes."""
    sheet = Image.new("L", SIZE, 0)
    _write(sheet, card, keep_writable(card.title, font), font)
    _paint_edge(sheet, card.hues[:_BANDS])
    return write_png(sheet, _make_palette(card.hues[:_BANDS]))


def _write(sheet: Image.Image, card: Card, title: str | None, font: Font) -> None:
    """Write all that the card says, in steps of the ramp, the title from the top of its box."""
    site = keep_writable(card.site, font) or ""
    small = Pen(font, _SMALL, _RAMP - 1, _SOFT)
    if title:
        write_line(sheet, (_MARGIN, _MARGIN), site, small)
    write_line(sheet, (_MARGIN, SIZE[1] - _MARGIN + 20), card.day, small)
    size, lines = fit(title or site, font, _TITLE_SIZES, _TITLE_BOX)
    top = _TITLE_TOP + round(size * 0.74)
    for number, line in enumerate(lines):
        place = (_MARGIN, top + number * line_height(size))
        write_line(sheet, place, line, Pen(font, size, _RAMP - 1))


def _paint_edge(sheet: Image.Image, hues: tuple[int, ...]) -> None:
    draw = ImageDraw.Draw(sheet)
    left, right, bottom = SIZE[0] - _EDGE, SIZE[0] - 1, SIZE[1]
    count = max(1, len(hues))
    for band in range(count):
        top = bottom * band // count + (_GAP if band else 0)
        end = bottom * (band + 1) // count - 1
        colour = _RAMP + 2 * band
        draw.rectangle((left, top, right, end), fill=colour)
        for cut in range(left, right, _LEAF):
            draw.rectangle((cut, top, cut + _CUT - 1, end), fill=colour + 1)


def _make_palette(hues: tuple[int, ...]) -> list[int]:
    """Return the colours of the ramp and of the bands; a book without tags is unpainted."""
    colours = [blend(_INK, _PAPER, step / (_RAMP - 1)) for step in range(_RAMP)]
    for hue in hues:
        colours += [mix_paint(hue), blend(mix_paint(hue), _PAPER, 0.76)]
    if not hues:
        colours += [_PAPER, _HAIRLINE]
    return [channel for colour in colours for channel in colour]


@cache
def _fingerprint() -> bytes:
    """Return the digest of what draws, but for the font: this code, the paint, the libraries."""
    libraries = version("pillow"), features.version("freetype2"), features.version("raqm")
    code = [Path(each).read_bytes() for each in (__file__, lettering.__file__, strip.__file__)]
    return make_key(libraries, zlib.ZLIB_RUNTIME_VERSION, code)


def choose_hue(slug: str) -> int:
    """Return the number of a tag's hue, from 0: the same on every page and picture."""
    # 47 is prime to HUES: words that differ by one letter are set well apart.
    return sum(slug.encode()) * 47 % HUES


def mix_paint(hue: int, lightness: float = LIGHTNESS, chroma: float = CHROMA) -> Colour:
    """Return the colour of a hue, by day unless told, clipped to sRGB (CSS Color 4, 9.2)."""
    angle = math.radians(hue * 360 / HUES)
    a, b = chroma * math.cos(angle), chroma * math.sin(angle)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _encode(4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short),
        _encode(-1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short),
        _encode(-0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short),
    )


def blend(colour: Colour, ground: Colour, share: float) -> Colour:
    """Return `colour` laid over `ground`, of which 1 - `share` shows through."""
    red, green, blue = (
        round(over * share + under * (1 - share))
        for over, under in zip(colour, ground, strict=True)
    )
    return red, green, blue


def _encode(light: float) -> int:
    """Return the sRGB channel for an amount of light from 0 to 1 (IEC 61966-2-1)."""
    light = min(1.0, max(0.0, light))
    channel = 12.92 * light if light <= _DARK else 1.055 * light ** (1 / 2.4) - 0.055
    return round(channel * 255)


# A card has few colours and large even areas. Each row is written as its difference from the one
# above, which is nothing nearly everywhere. To pack runs of nothing needs no search for
# repetitions, which takes other packers long. Rows are packed a strip at a time, so that what cards
# have in common is packed once.
def write_png(numbers: Image.Image, colours: Sequence[int]) -> bytes:
    """Return a picture whose pixels are numbers of `colours`: red, green and blue, up to 255."""
    # Colour type 3: pixels are numbers of colours.
    head = struct.pack(">2I5B", *numbers.size, 8, 3, 0, 0, 0)
    width, height = numbers.size
    # Every row begins with the number of its filter: 2 takes the row above away.
    filtered = Image.new("L", (width + 1, height), 2)
    filtered.paste(numbers.crop((0, 0, width, 1)), (1, 0))
    below = numbers.crop((0, 1, width, height))
    filtered.paste(ImageChops.subtract_modulo(below, numbers), (1, 1))
    rows, strip = filtered.tobytes(), (width + 1) * 42
    # A stream of zlib (RFC 1950) made of parts, each a whole number of bytes long; before its sum,
    # an empty block says that it is the last (RFC 1951, section 3.2.3).
    strips = [_pack_strip(rows[at : at + strip]) for at in range(0, len(rows), strip)]
    packed = b"".join((b"\x78\x01", *strips, b"\x03\x00", struct.pack(">I", zlib.adler32(rows))))
    chunks = ((b"IHDR", head), (b"PLTE", bytes(colours)), (b"IDAT", packed), (b"IEND", b""))
    return SIGNATURE + b"".join(frame_chunk(*chunk) for chunk in chunks)


@lru_cache(maxsize=64)  # Fifty kilobytes each; what all cards have is asked for all the time.
def _pack_strip(rows: bytes) -> bytes:
    packer = zlib.compressobj(level=1, wbits=-zlib.MAX_WBITS, strategy=zlib.Z_RLE)
    return packer.compress(rows) + packer.flush(zlib.Z_FULL_FLUSH)
