"""The picture on a fore-edge: a part of a photograph, or a landscape in the tags' colours."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from site_build.cache import make_key
from site_build.images.card import blend, convert_hue
from site_build.images.encode import Picture, cut

SIZE: Final = (480, 1200)
"""Width and height of a photograph in pixels: twice the width at which pages show it."""
PHOTOGRAPH_KINDS: Final = frozenset({"jpeg", "webp", "avif"})
"""Kinds of pictures that photographs are stored as."""
_WIDTH: Final = 224
_HILLS: Final = 9
_STEP: Final = 8
"""Pixels between two points of a hill's outline."""


def crop_key(picture: Picture) -> bytes:
    """Return the cache key of the result of `crop`."""
    return make_key("edge", picture.folder, Path(__file__).read_bytes())


def crop(source: Path, picture: Picture) -> bytes:
    """Return the middle of a photograph as WebP. Raises BuildError and OSError."""
    file = io.BytesIO()
    # The page draws the lines of a fore-edge over the picture, which hide a low quality.
    cut(source, picture, SIZE, "white").save(file, "WEBP", quality=45, method=4)
    return file.getvalue()


def draw_landscape(seed: str, hues: Sequence[int], *, night: bool = False) -> str:
    """Return a landscape as SVG: the same hills for the same seed, by day and by night."""
    # Without tags, the hues of straw, moss and ochre.
    random, colours, height = Random(seed), list(hues) or [20, 28, 13], SIZE[1]  # noqa: S311
    # A second generator is used, so that the hills do not depend on the number of tags.
    Random(seed).shuffle(colours)  # noqa: S311
    sky, horizon, light = (
        ("#1b2330", "#3b3a46", "#d9d4c8") if night else ("#cddee4", "#f4e8d0", "#f2bd73")
    )
    x, y = random.randint(70, 160), random.randint(120, 180)
    drawn = [f'<circle cx="{x}" cy="{y}" r="24" fill="{light}"/>']
    lightness, air = (0.36, (27, 35, 48)) if night else (0.66, (214, 224, 222))
    for number in range(_HILLS):
        crest, steep = height * (0.17 + 0.78 * number / _HILLS), 36 - 2 * number
        phase, long, short = (
            random.uniform(*each) for each in ((0, 6), (0.024, 0.05), (0.05, 0.09))
        )
        tops = [
            crest + steep * (math.sin(long * x + phase) + 0.3 * math.sin(short * x + 2 * phase))
            for x in range(0, _WIDTH + _STEP, _STEP)
        ]
        line = " ".join(f"{_STEP * place},{top:.1f}" for place, top in enumerate(tops))
        # Farther hills have more of the colour of the air.
        hill_colour = convert_hue(colours[number % len(colours)], lightness, 0.08)
        colour = blend(hill_colour, air, 0.35 + 0.65 * (number + 1) / _HILLS)
        fill = "#{:02x}{:02x}{:02x}".format(*colour)
        drawn.append(f'<path d="M0,{height} L{line} {_WIDTH},{height}z" fill="{fill}"/>')
        for _ in range(random.randint(1, 4) if number > 2 else 0):  # noqa: PLR2004  trees, near by
            place, size = random.randrange(1, len(tops) - 1), random.uniform(0.7, 1.2)
            drawn.append(
                f'<ellipse cx="{_STEP * place}" cy="{tops[place] - 9 * size:.0f}" '
                f'rx="{4 * size:.1f}" ry="{13 * size:.1f}" fill="#1f3328" fill-opacity=".75"/>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" preserveAspectRatio="xMidYMin slice"><linearGradient id="sky" x2="0" '
        f'y2="1"><stop stop-color="{sky}"/><stop offset=".5" stop-color="{horizon}"/>'
        f'</linearGradient><rect width="100%" height="100%" fill="url(#sky)"/>'
        f"{''.join(drawn)}</svg>\n"
    )
