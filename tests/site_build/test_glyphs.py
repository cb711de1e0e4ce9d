"""Lines that are put together from glyphs, and the pictures that are packed a strip at a time."""

import io
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageDraw

from site_build.images.card import write_png
from site_build.images.lettering import Pen, open_font, read_font, write_line

FONT = read_font(Path(__file__).resolve().parents[2] / "theme/fonts/SourceSerif4-SemiBold.ttf")
SIZE = (900, 160)
PLACE = (20, 110)


@pytest.mark.parametrize(
    "text",
    [
        "Announcing Rust 1.67.0",
        "Tofu, AVATAR, office, waffle, after",
        "A\u0301ngstrom e\u0308tude x\u0302y",
        "\u201cquick\u201d \u2013 \u0416\u0443\u0440\u043d\u0430\u043b \u03b1\u03b2\u03b3",
        "",
        " ",
    ],
)
@pytest.mark.parametrize("size", [34, 58, 112])
def test_glyph_by_glyph(text: str, size: int) -> None:
    """A line put together from glyphs is the line that the library draws at a stroke."""
    stroke, composed = Image.new("L", SIZE), Image.new("L", SIZE)
    ImageDraw.Draw(stroke).text(PLACE, text, fill=255, font=open_font(FONT, size), anchor="ls")
    write_line(composed, PLACE, text, Pen(FONT, size, 255))
    assert ImageChops.difference(stroke, composed).getbbox() is None


def test_png_says_its_pixels() -> None:
    """A packed picture is read back pixel by pixel, whatever its strips have in common."""
    numbers = Image.effect_noise((301, 130), 90).point([level % 40 for level in range(256)])
    numbers.paste(0, (0, 10, 301, 100))
    colours = [level for number in range(40) for level in (number, 255 - number, 2 * number)]
    with Image.open(io.BytesIO(write_png(numbers, colours))) as image:
        image.load()
        assert image.mode == "P"
        assert image.tobytes() == numbers.tobytes()
        assert (image.getpalette() or [])[: len(colours)] == colours
