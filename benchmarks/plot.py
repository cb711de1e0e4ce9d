"""Bars as SVG, by plain code: one for each server, on a scale of their own.

A picture stands on light and dark pages alike, and says its figures to who does not see it.
"""

from collections.abc import Mapping
from html import escape
from typing import Final

_WIDTH: Final = 720
_TOP: Final = 40
_BAR: Final = 22
_GAP: Final = 10
_LEFT: Final = 190
_RIGHT: Final = 110
COLOURS: Final = ("#b5452c", "#7d8891")
"""Of the edge, and of everybody else."""
STYLE: Final = (
    "text{font:14px system-ui,sans-serif;fill:#1d1d1d}"
    "@media(prefers-color-scheme:dark){text{fill:#e8e6e1}}"
)


def draw_bars(title: str, values: Mapping[str, float], unit: str, ours: str) -> str:
    """Return a picture of `values`, the longest first, each with its number."""
    ordered = sorted(values.items(), key=lambda each: each[1], reverse=True)
    height = _TOP + len(ordered) * (_BAR + _GAP)
    longest = (_WIDTH - _LEFT - _RIGHT) / (max(values.values()) or 1.0)
    bars = [
        _draw_bar(
            _TOP + place * (_BAR + _GAP),
            (name, f"{value:,.0f} {unit}"),
            max(1.0, longest * value),
            COLOURS[name != ours],
        )
        for place, (name, value) in enumerate(ordered)
    ]
    said = escape("; ".join(f"{name} {value:,.0f} {unit}" for name, value in ordered))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
        f"<title>{escape(title)}</title><desc>{said}</desc><style>{STYLE}</style>"
        f'<text x="0" y="20" style="font-weight:600">{escape(title)}</text>{"".join(bars)}</svg>\n'
    )


def _draw_bar(top: int, labels: tuple[str, str], length: float, colour: str) -> str:
    name, number = map(escape, labels)
    base = top + _BAR * 0.72
    return (
        f'<text x="{_LEFT - 10}" y="{base:.0f}" text-anchor="end">{name}</text>'
        f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>'
        f'<text x="{_LEFT + length + 8:.1f}" y="{base:.0f}">{number}</text>'
    )
