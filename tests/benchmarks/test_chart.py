import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from benchmarks.chart import Chart, Point, draw_chart

SVG = "{http://www.w3.org/2000/svg}"


def chart(curves: dict[str, list[Point]]) -> Chart:
    """Return a chart of curves."""
    return Chart("Cold & <edited>", "posts", "s", "Fore-edge", curves)


def draw(curves: dict[str, list[Point]]) -> ET.Element:
    """Return the picture of curves, parsed."""
    return ET.fromstring(draw_chart(chart(curves)))  # noqa: S314  our own


def test_a_chart_has_a_text_alternative_with_its_figures() -> None:
    """Each with what it counts, and names are escaped."""
    drawn = draw({"Fore-edge": [(100, 0.5), (1_000, 123.4)], "<b>": [(100, 2.0), (1_000, 20.0)]})

    assert drawn.findtext(f"{SVG}title") == "Cold & <edited>"
    said = str(drawn.findtext(f"{SVG}desc"))
    assert said == "Fore-edge: 0.5 s with 100, 123 s with 1,000; <b>: 2 s with 100, 20 s with 1,000"


def test_axes_are_logarithmic() -> None:
    """Both scales are powers of ten, so that what grows evenly is a straight line."""
    drawn = draw({"Fore-edge": [(100, 1.0), (1_000, 10.0), (10_000, 100.0)]})

    line = drawn.find(f"{SVG}polyline")
    assert line is not None
    points = [tuple(map(float, each.split(","))) for each in line.attrib["points"].split()]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x0 < x1
    assert y0 > y1
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)


@pytest.mark.parametrize("size", [1, 2])
def test_labels_of_equal_figures_do_not_overlap(size: int) -> None:
    """Each name is beside its curve's end, a line apart from the next; one size is enough."""
    curve = [(100.0, 10.0), (1_000.0, 10.0)][:size]
    drawn = draw({"Fore-edge": list(curve), "stock Pelican": list(curve), "Hugo": list(curve)})

    labels = [
        text for text in drawn.findall(f"{SVG}text") if re.search(r"[a-z] 10 s$", str(text.text))
    ]
    heights = sorted(float(text.attrib["y"]) for text in labels)
    assert len(heights) == 3
    assert min(low - high for high, low in pairwise(heights)) >= 15
