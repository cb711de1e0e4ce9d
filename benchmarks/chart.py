"""Curves as SVG, by plain code: what grows with what, both on scales of powers of ten.

A picture stands on light and dark pages alike, and says its figures to who does not see it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from benchmarks.plot import COLOURS, STYLE

Point = tuple[float, float]

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 50, 40
_LINE: Final = 19
"""The height of a line of text."""
_DASHES: Final = ("none", "8 5", "2 4")
_AXIS: Final = "stroke:#7d8891;stroke-opacity:.35"


@dataclass(frozen=True, slots=True)
class Chart:
    """Several curves in one picture."""

    title: str
    across: str
    """What the horizontal scale counts."""
    unit: str
    ours: str
    """The curve that stands out."""
    curves: Mapping[str, Sequence[Point]]
    """By name, each from left to right; all figures are above 0."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Powers of ten on a length of the picture."""

    least: float
    most: float
    start: float
    end: float

    def place(self, value: float) -> float:
        share = (log10(value) - self.least) / (self.most - self.least)
        return self.start + share * (self.end - self.start)


def draw_chart(chart: Chart) -> str:
    """Return the picture."""
    points = [point for curve in chart.curves.values() for point in curve]
    across = _scale([x for x, _ in points], _LEFT + 20, _WIDTH - _RIGHT - 20)
    up = _scale([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
    drawn = (*_draw_axes(chart, across, up), *_draw_curves(chart, across, up))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
        f"<title>{escape(chart.title)}</title><desc>{_say(chart)}</desc><style>{STYLE}</style>"
        f'<text x="0" y="20" style="font-weight:600">{escape(chart.title)}</text>'
        f"{''.join(drawn)}</svg>\n"
    )


def _scale(values: Sequence[float], start: float, end: float) -> _Scale:
    least, most = floor(log10(min(values))), ceil(log10(max(values)))
    return _Scale(least, max(most, least + 1), start, end)


def _say(chart: Chart) -> str:
    said = (
        f"{name}: " + ", ".join(f"{_spell(y)} {chart.unit} with {x:,.0f}" for x, y in curve)
        for name, curve in chart.curves.items()
    )
    return escape("; ".join(said))


def _spell(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _draw_axes(chart: Chart, across: _Scale, up: _Scale) -> Iterator[str]:
    for power in range(int(up.least), int(up.most) + 1):
        y = up.place(10.0**power)
        yield f'<path d="M{_LEFT} {y:.1f}H{across.end:.1f}" style="{_AXIS}"/>'
        yield _text(_LEFT - 8, y + 5, f"{10.0**power:,.6g} {chart.unit}", "end")
    for x in sorted({x for curve in chart.curves.values() for x, _ in curve}):
        said = f"{x:,.0f} {chart.across}"
        yield _text(across.place(x), _HEIGHT - _BOTTOM + 24, said, "middle")


def _draw_curves(chart: Chart, across: _Scale, up: _Scale) -> Iterator[str]:
    lines = {
        name: [(across.place(x), up.place(y)) for x, y in curve]
        for name, curve in chart.curves.items()
    }
    heights = _spread({name: line[-1][1] for name, line in lines.items()})
    for place, (name, line) in enumerate(lines.items()):
        colour = COLOURS[name != chart.ours]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        style = f"fill:none;stroke:{colour};stroke-width:2;stroke-dasharray:{_DASHES[place % 3]}"
        yield f'<polyline points="{path}" style="{style}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in line)
        said = f"{name} {_spell(chart.curves[name][-1][1])} {chart.unit}"
        yield _text(line[-1][0] + 12, heights[name] + 5, said, "start")


def _spread(heights: Mapping[str, float]) -> dict[str, float]:
    """Return the heights of labels, moved apart where one would stand on another."""
    names = sorted(heights, key=heights.__getitem__)
    moved = dict(heights)
    for upper, lower in pairwise(names):
        moved[lower] = max(moved[lower], moved[upper] + _LINE)
    return moved


def _text(x: float, y: float, said: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'
