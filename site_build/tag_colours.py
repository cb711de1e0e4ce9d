"""The paint of fore-edges: which hue a tag has, and what colour a hue is."""

import math

HUES = 90
"""How many hues tags are spread over; a style sheet has a class for each."""

LIGHTNESS, CHROMA = 0.6, 0.125
"""Of the paint by day, in OKLCH; every hue of it stands out from paper by 3:1."""

_SPREAD = 47
"""Prime to HUES: words that differ by one letter are set well apart."""

_DARK = 0.0031308
"""Light below which sRGB's channels are linear."""

Colour = tuple[int, int, int]
"""sRGB, each from 0 to 255."""


def choose_hue(slug: str) -> int:
    """Return the number of a tag's hue, from 0: the same on every page and picture."""
    return sum(slug.encode()) * _SPREAD % HUES


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
