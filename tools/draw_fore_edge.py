"""Draws the picture of a painted fore-edge, and the icon for home screens.

`content/images/painted-fore-edge.jpg`: a closed book lies with its leaves towards us, and on them a
landscape in the paints of our tags. `theme/static/touch_icon.png`: what `icon.svg` beside it shows.
`python -m tools.draw_fore_edge` writes both anew, the same each time.
"""

import math
import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from site_build.images.card import Colour, blend, convert_hue
from tools.environment import ROOT

TARGET = ROOT / "content" / "images" / "painted-fore-edge.jpg"
ICON = ROOT / "theme" / "static" / "touch_icon.png"
ICON_SIZE = 180
"""Pixels of its width, as iPhones ask for."""
SIZE = (1600, 900)
BLOCK = (200, 246, 1400, 650)
"""The leaves, from left and top to right and bottom."""
BOARD = 26
"""Thickness of a cover, and how far it stands out."""

_WALL: Colour = (0xF3, 0xEE, 0xE2)
_TABLE: Colour = (0xC9, 0xB6, 0x98)
_LEATHER: Colour = (0x5A, 0x26, 0x2A)
_RIBBON: Colour = (0x97, 0x19, 0x2F)
_INK: Colour = (0x1F, 0x22, 0x2C)
_LEAF: Colour = (0xEC, 0xE0, 0xC6)

_HILLS = (
    # Hue, lightness, chroma, height of the ridge as a share of the block, length of its waves.
    (17, 0.80, 0.040, 0.50, 520),
    (15, 0.73, 0.055, 0.56, 390),
    (12, 0.66, 0.070, 0.63, 610),
    (9, 0.60, 0.090, 0.71, 450),
    (7, 0.55, 0.095, 0.80, 700),
    (9, 0.42, 0.070, 0.90, 540),
)

_ICON_RECTANGLES = (
    # Left, top, right, bottom, of 32 by 32.
    (6, 4, 21, 28, "#9a1b33"),
    (21, 4, 27, 11, "#c9862b"),
    (21, 11, 27, 17, "#2f8f83"),
    (21, 17, 27, 28, "#4a6fb5"),
    *((edge - 0.5, 4, edge + 0.5, 28, "#f7f4ec8c") for edge in (22.5, 24, 25.5)),
)


def draw_picture() -> Image.Image:
    """Return the picture."""
    chance = random.Random(1651)  # noqa: S311 - a picture, no secret
    scene = _draw_room()
    _draw_shadow(scene)
    left, top, right, bottom = BLOCK
    leaves = _cut_leaves(_paint_landscape((right - left, bottom - top), chance), chance)
    scene.paste(leaves, (left, top))
    _draw_boards(scene)
    _draw_ribbon(scene)
    return _add_grain(scene)


def _draw_room() -> Image.Image:
    scene = _shade(SIZE, blend((255, 255, 255), _WALL, 0.35), _WALL)
    table = _shade((SIZE[0], 290), _TABLE, blend(_INK, _TABLE, 0.28))
    scene.paste(table, (0, 610))
    return scene.filter(ImageFilter.GaussianBlur(3))


def _draw_shadow(scene: Image.Image) -> None:
    left, _, right, bottom = BLOCK
    shadow = Image.new("L", SIZE, 0)
    ImageDraw.Draw(shadow).ellipse((left - 70, bottom - 6, right + 120, bottom + 92), fill=190)
    scene.paste(_INK, mask=shadow.filter(ImageFilter.GaussianBlur(26)))


def _paint_landscape(size: tuple[int, int], chance: random.Random) -> Image.Image:
    """Return what a painter would have put on the leaves: a sun, hills, trees and birds."""
    width, height = size
    scene = _shade(size, convert_hue(16, 0.80, 0.055), convert_hue(5, 0.93, 0.060))
    draw = ImageDraw.Draw(scene)
    sun = (width * 0.70, height * 0.33)
    for radius, lightness in ((78, 0.92), (60, 0.91), (44, 0.86)):
        box = (sun[0] - radius, sun[1] - radius, sun[0] + radius, sun[1] + radius)
        draw.ellipse(box, fill=convert_hue(4, lightness, 0.05 + (78 - radius) * 0.0022))
    for number, hill in enumerate(_HILLS):
        ridge = _trace_ridge(size, hill[3], hill[4], chance)
        draw.polygon([(0, height), *ridge, (width, height)], fill=convert_hue(*hill[:3]))
        if number >= 3:  # noqa: PLR2004 - further away no tree is seen
            _plant(draw, ridge, convert_hue(hill[0] + 1, hill[1] - 0.14, 0.06), chance, number)
    for _ in range(9):
        _draw_bird(draw, sun[0] - chance.uniform(60, 420), height * chance.uniform(0.12, 0.4))
    return scene.filter(ImageFilter.GaussianBlur(0.7))


def _trace_ridge(
    size: tuple[int, int], share: float, length: float, chance: random.Random
) -> list[tuple[float, float]]:
    waves = [(length / n, 26 / n, chance.uniform(0, math.tau)) for n in (1, 2, 3, 7)]
    return [
        (x, size[1] * share - sum(a * math.sin(math.tau * x / w + p) for w, a, p in waves))
        for x in range(0, size[0] + 4, 4)
    ]


def _plant(
    draw: ImageDraw.ImageDraw,
    ridge: list[tuple[float, float]],
    colour: Colour,
    chance: random.Random,
    near: int,
) -> None:
    """Put cypresses on a ridge, in groups, larger the nearer it is."""
    for _ in range(4):
        start = chance.randrange(len(ridge) - 16)
        for _ in range(chance.randint(2, 5)):
            x, y = ridge[start + chance.randrange(16)]
            tall = near * chance.uniform(7, 13)
            draw.ellipse((x - tall / 7, y - tall, x + tall / 7, y + 4), fill=colour)


def _draw_bird(draw: ImageDraw.ImageDraw, x: float, y: float) -> None:
    wings = ((-14, -5), (-8, -8), (-3, -5), (0, 0), (3, -5), (8, -8), (14, -5))
    draw.line([(x + dx, y + dy) for dx, dy in wings], fill=_INK, width=2, joint="curve")


def _cut_leaves(painting: Image.Image, chance: random.Random) -> Image.Image:
    """Return the painting as the edges of some hundred leaves show it, hollow in the middle."""
    width, height = painting.size
    leaves = Image.new("RGB", painting.size, _LEAF)
    y = 0
    while y < height:
        thick = chance.choice((2, 3, 3, 4))
        strip = painting.crop((0, y, width, min(height, y + thick)))
        worn = Image.blend(strip, Image.new("RGB", strip.size, _LEAF), chance.uniform(0.02, 0.20))
        leaves.paste(worn, (round(chance.gauss(0, 1.1)), y))
        cut = Image.new("RGB", (width, 1), _INK)
        leaves.paste(Image.blend(leaves.crop((0, y, width, y + 1)), cut, 0.13), (0, y))
        y += thick
    hollow = Image.new("L", (1, height))
    hollow.putdata([round(255 - 120 * abs(2 * at / height - 1) ** 3.2) for at in range(height)])
    return ImageChops.multiply(leaves, Image.merge("RGB", [hollow.resize(painting.size)] * 3))


def _draw_boards(scene: Image.Image) -> None:
    left, top, right, bottom = BLOCK
    draw = ImageDraw.Draw(scene)
    for edge, light in ((top - BOARD, 0.20), (bottom, 0.06)):
        box = (left - BOARD, edge, right + BOARD, edge + BOARD)
        draw.rounded_rectangle(box, radius=9, fill=_LEATHER)
        bright = blend((255, 255, 255), _LEATHER, light)
        draw.line((left - BOARD + 9, edge + 3, right + BOARD - 9, edge + 3), fill=bright, width=4)
        dark = blend(_INK, _LEATHER, 0.55)
        draw.line((left - 20, edge + BOARD - 3, right + 20, edge + BOARD - 3), fill=dark, width=5)


def _draw_ribbon(scene: Image.Image) -> None:
    """Let a ribbon hang out of the leaves, over the lower board."""
    x, top, bottom = 1216, 470, 792
    sway = [(x + 7 * math.sin((y - top) / 70), y) for y in range(top, bottom)]
    draw = ImageDraw.Draw(scene)
    for dx, share in ((0, 0.0), (6, 0.10), (12, 0.0), (18, 0.22)):
        colour = blend(_INK, _RIBBON, share)
        draw.line([(a + dx, b) for a, b in sway], fill=colour, width=8)
    end = sway[-1][0]
    draw.polygon([(end - 4, bottom), (end + 22, bottom), (end + 9, bottom - 18)], fill=_TABLE)


def _add_grain(scene: Image.Image) -> Image.Image:
    """Lay the grain of paper over all."""
    chance = random.Random(4)  # noqa: S311 - likewise
    grain = Image.new("L", (SIZE[0] // 2, SIZE[1] // 2))
    grain.putdata([round(chance.gauss(248, 4)) for _ in range(grain.width * grain.height)])
    layer = grain.resize(SIZE, Image.Resampling.BICUBIC)
    return ImageChops.multiply(scene, Image.merge("RGB", [layer] * 3))


def _shade(size: tuple[int, int], top: Colour, bottom: Colour) -> Image.Image:
    """Return a sheet that runs from one colour into the other."""
    ramp = Image.linear_gradient("L").resize(size)
    return Image.composite(Image.new("RGB", size, bottom), Image.new("RGB", size, top), ramp)


def draw_icon() -> Image.Image:
    """Return the square of `icon.svg`, on the paper of the pages."""
    icon = Image.new("RGB", (ICON_SIZE, ICON_SIZE), "#f8f5ee")
    draw = ImageDraw.Draw(icon, "RGBA")
    for left, top, right, bottom, colour in _ICON_RECTANGLES:
        box = [round(edge * ICON_SIZE / 32) for edge in (left, top, right, bottom)]
        draw.rectangle((*box[:2], box[2] - 1, box[3] - 1), colour)
    return icon


if __name__ == "__main__":
    draw_icon().save(ICON, "PNG", optimize=True)
    draw_picture().save(TARGET, "JPEG", quality=84, progressive=True, optimize=True)
