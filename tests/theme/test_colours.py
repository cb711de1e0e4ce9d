"""Every pair of colours that meet on a page, in both schemes, by WCAG 2.2's formula."""

import math
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Literal

import pytest

Scheme = Literal["light", "dark"]
Rgb = tuple[float, float, float]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

TEXT, GRAPHICS, MORE = 4.5, 3.0, 7.0
"""Least contrast: WCAG 2.2, success criteria 1.4.3, 1.4.11, and 1.4.6 for `prefers-contrast`."""
HUES = 90

CODE = ("ink", "code-word", "code-name", "code-text", "code-number", "code-aside")
TEXT_PAIRS = [
    *((ink, "paper") for ink in ("ink", "ink-soft", "accent", "note", "good", "warn", "important")),
    *((ink, "sheet") for ink in ("ink", "ink-soft", "accent", *CODE)),
    *((ink, "code-marked") for ink in CODE),
    ("accent", "code-marked"),
    ("ink", "code-added"),
    ("ink", "code-removed"),
    ("paper", "accent"),
    ("paper", "ink"),
]

_PROPERTY = re.compile(r"--(?P<name>[a-z-]+): light-dark\((?P<light>#\w{6}), (?P<dark>#\w{6})\)")
_PAINT = re.compile(
    r"--paint: light-dark\(oklch\((?P<light>[\d. ]+) var\(--hue\)\),"
    r" oklch\((?P<dark>[\d. ]+) var\(--hue\)\)\)"
)
_HUE = re.compile(r"^\.hue-(\d+) \{ --hue: (\d+); \}$", re.MULTILINE)


def to_linear(channel: float) -> float:
    """Return the light of an sRGB channel, both from 0 to 1 (IEC 61966-2-1)."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def from_hex(colour: str) -> Rgb:
    """Return linear sRGB for `#rrggbb`."""
    red, green, blue = (to_linear(value / 255) for value in bytes.fromhex(colour[1:]))
    return red, green, blue


def from_oklch(lightness: float, chroma: float, hue: float) -> Rgb:
    """Return linear sRGB, clipped to the gamut (CSS Color 4, section 9.2; hue in degrees)."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        min(1, max(0, 4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short)),
        min(1, max(0, -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short)),
        min(1, max(0, -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short)),
    )


def contrast(one: Rgb, other: Rgb) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted(
        0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in (one, other)
    )
    return (lighter + 0.05) / (darker + 0.05)


def declarations(style: str) -> tuple[dict[str, re.Match[str]], dict[str, re.Match[str]]]:
    """Return the colours for everybody, and those that `prefers-contrast: more` replaces."""
    usual, _, more = style.partition("prefers-contrast: more")
    first, second = (
        {found["name"]: found for found in _PROPERTY.finditer(part)} for part in (usual, more)
    )
    return first, second


@pytest.fixture(scope="session")
def colour(style: str) -> Callable[[str, Scheme], Rgb]:
    """Return a look-up of a declared colour by its name and scheme."""
    usual, _ = declarations(style)
    return lambda name, scheme: from_hex(usual[name][scheme])


def test_contrast_ratios_of_known_colours() -> None:
    """The formula gives the ratios that are known: black on white, and the grey at the limit."""
    assert contrast(from_hex("#000000"), from_hex("#ffffff")) == pytest.approx(21)
    assert contrast(from_hex("#767676"), from_hex("#ffffff")) == pytest.approx(4.54, abs=0.01)
    assert from_oklch(1, 0, 0) == pytest.approx((1, 1, 1), abs=1e-4)
    assert from_oklch(0.62796, 0.25768, 29.234) == pytest.approx((1, 0, 0), abs=1e-3)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), TEXT_PAIRS)
def test_text_is_legible(
    colour: Callable[[str, Scheme], Rgb], ink: str, ground: str, scheme: Scheme
) -> None:
    """Text of each colour has AA contrast on each of its backgrounds."""
    assert contrast(colour(ink, scheme), colour(ground, scheme)) >= TEXT


@pytest.mark.parametrize("scheme", SCHEMES)
def test_prefers_contrast_raises_contrast(style: str, scheme: Scheme) -> None:
    """With `prefers-contrast: more` it is 7 to 1 for text, and 3 to 1 for hairlines."""
    usual, more = declarations(style)
    paper, sheet = (from_hex(more[name][scheme]) for name in ("paper", "sheet"))
    text = more.keys() - {"paper", "sheet", "hairline"}

    assert text == {"ink", "ink-soft", "accent", "note", "good", "warn", "important"}
    assert more.keys() <= usual.keys()
    for name in text:
        assert contrast(from_hex(more[name][scheme]), paper) >= MORE
        assert contrast(from_hex(more[name][scheme]), sheet) >= MORE
    assert contrast(from_hex(more["hairline"][scheme]), paper) >= GRAPHICS


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_colour_is_paired(style: str, scheme: Scheme) -> None:
    """No declared colour is left out of the pairs, but the hairlines, which carry no meaning."""
    declared = {found["name"] for found in _PROPERTY.finditer(style) if found[scheme]}

    assert declared - {"hairline"} == {name for pair in TEXT_PAIRS for name in pair}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tags_can_be_seen(style: str, colour: Callable[[str, Scheme], Rgb], scheme: Scheme) -> None:
    """The paint of every hue stands out from the paper by the ratio that graphics need."""
    paint = _PAINT.search(style)
    assert paint
    lightness, chroma = map(float, paint[scheme].split())
    ratios = {
        int(hue): contrast(from_oklch(lightness, chroma, int(hue)), colour("paper", scheme))
        for _, hue in _HUE.findall(style)
    }

    assert len(ratios) == HUES
    assert len(set(_HUE.findall(style))) == HUES
    assert {hue: ratio for hue, ratio in ratios.items() if ratio < GRAPHICS} == {}


def test_swagger_ui_has_the_colours_of_the_site(style: str) -> None:
    """Its sheet names one colour, behind a picture that is white in both schemes."""
    sheet = files("edge_api.http").joinpath("try_out/look.css").read_text(encoding="utf-8")
    named = re.findall(r"#[0-9a-f]{3,8}\b|rgb|hsl|oklch", sheet)
    asked = set(re.findall(r"var\((--[\w-]+)", sheet))

    assert [contrast(from_hex(each), (1, 1, 1)) >= TEXT for each in named] == [True]
    assert {name for name in asked if f"{name}:" not in style} == set()
