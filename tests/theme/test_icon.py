"""The icon for home screens: the picture of the icon in the pages."""

import re
from pathlib import Path

from PIL import Image, ImageColor

STATIC = Path(__file__).resolve().parent.parent.parent / "theme" / "static"
_FILLED = re.compile(r'fill="(#\w{6})" d="M(\d+) (\d+)h(\d+)v(\d+)')
_UNITS = 32
"""The width of the drawing."""


def test_the_icon_for_home_screens_shows_the_drawing() -> None:
    """A square of 180 pixels, with each rectangle of `icon.svg` in its place and colour."""
    drawn = _FILLED.findall((STATIC / "icon.svg").read_text(encoding="utf-8"))
    with Image.open(STATIC / "touch_icon.png") as opened:
        icon = opened.convert("RGB")

    assert icon.size == (180, 180)
    assert len(drawn) == 5
    # A rectangle that others cover is seen in the lines over them alone.
    for colour, left, top, _, height in (each for each in drawn if each[0] != "#f7f4ec"):
        x, y = float(left) + 0.5, float(top) + float(height) / 2
        at = round(x * icon.width / _UNITS), round(y * icon.width / _UNITS)
        assert icon.getpixel(at) == ImageColor.getrgb(colour), f"{colour} at {at}"
