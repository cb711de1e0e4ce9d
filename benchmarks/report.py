"""The report of a run: Markdown with the table first, and a plot beside each race."""

import os
import platform
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from benchmarks.chart import draw_chart
from benchmarks.plot import draw_bars
from benchmarks.race import EDGE, Race
from benchmarks.section import Grid, Reached, Section
from benchmarks.table import TABLE, Line

FILE: Final = "README.md"
_RACE_COLUMNS: Final = (
    "server",
    "requests/s",
    "edge is",
    "p50 ms",
    "p99 ms",
    "CPU us a request",
    "RSS MiB",
)


def write_report(folder: Path, sections: Sequence[Section], *, is_whole: bool) -> None:
    """Write the report and its plots; without `is_whole`, lines that were not measured stay out."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for title, drawn in _draw(section):
            (folder / _name_plot(section, title)).write_text(drawn, encoding="utf-8")
    lines = "\n".join(_write(sections, is_whole))
    (folder / FILE).write_text(f"{lines}\n", encoding="utf-8")


def find_missed(reached: Mapping[str, Reached], *, is_whole: bool) -> list[Line]:
    """Return the lines that are not kept; in a whole run, also those that were not measured."""
    asked = (line for line in TABLE if is_whole or line.name in reached)
    return [line for line in asked if not line.holds(reached.get(line.name))]


def list_promises(reached: Mapping[str, Reached]) -> Iterator[str]:
    """Yield a text for each measured line: what it reached, and what may be promised for that."""
    for line in TABLE:
        found = reached.get(line.name)
        if (value := line.value(found)) is None or found is None:
            continue
        rounds = ", ".join(f"{each:.3g}" for each in line.rounds(found))
        yield (
            f"{line.name}: {line.spell(value)} ({rounds}){_spell_other(line, found)}; "
            f"{_spell_wanted(line)}; to be promised: {line.promise(value):.3g}"
        )


def gather(sections: Sequence[Section]) -> dict[str, Reached]:
    """Return what all sections reached, by line."""
    return {name: each for section in sections for name, each in section.reached.items()}


def _write(sections: Sequence[Section], is_whole: bool) -> Iterator[str]:  # noqa: FBT001
    yield from ("# The figures", "", _machine(), "", "## The table", "")
    yield from _table(gather(sections), is_whole)
    for section in sections:
        yield from ("", f"## {section.title}", "", section.about)
        for race in section.races:
            yield from ("", f"### {race.title}", *_show(section, race.title), "")
            yield from _rows(_RACE_COLUMNS, _race_rows(race))
        for chart in section.charts:
            yield from _show(section, chart.title)
        for grid in section.grids:
            yield from ("", f"### {grid.title}", "", *_grid(grid))


def _machine() -> str:
    load = os.getloadavg()[0]
    packages = ", ".join(f"{name} {version(name)}" for name in ("aiohttp", "uvloop"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, {packages}, SQLite {sqlite3.sqlite_version}; "
        f"load average {load:.1f} at the end. Servers have one core and their load the other, "
        "builds have all; medians of rounds in which all take turns. Ratios are what lasts "
        "from machine to machine."
    )


def _table(reached: Mapping[str, Reached], is_whole: bool) -> Iterator[str]:  # noqa: FBT001
    rows = []
    for line in TABLE:
        found = reached.get(line.name)
        if found is None and not is_whole:
            continue
        value, said, rounds, other = line.value(found), "not measured", "", ""
        if found is not None and value is not None:
            said, other = line.spell(value), _spell_other(line, found).strip(" ;")
            rounds = ", ".join(f"{each:.3g}" for each in line.rounds(found))
        verdict = "yes" if line.holds(found) else "**no**"
        verdict = verdict if line.wanted is not None else ""
        rows.append((line.path, _spell_wanted(line), said, rounds, other, verdict))
    yield from _rows(("path", "wanted", "reached", "rounds", "otherwise", "kept"), rows)


def _spell_wanted(line: Line) -> str:
    return "reported" if line.wanted is None else f"{line.sense} {line.wanted:g}"


def _spell_other(line: Line, reached: Reached) -> str:
    """Return the measure of which the line does not speak, if there is one."""
    if line.is_by_cost:
        return f"; {reached.value:.3g} by the clock"
    return "" if reached.by_cost is None else f"; {reached.by_cost:.3g} by CPU time"


def _race_rows(race: Race) -> Iterator[tuple[str, ...]]:
    for name, figure in race.middles().items():
        speeds = sorted(race.speeds(name))
        yield (
            name,
            f"{figure.per_second:,.0f}",
            "" if name == EDGE else f"{speeds[len(speeds) // 2]:.2f} x",
            f"{figure.p50_ms:.2f}",
            f"{figure.p99_ms:.2f}",
            f"{figure.cpu_us:.1f}",
            f"{figure.resident_mib:.0f}",
        )


def _grid(grid: Grid) -> Iterator[str]:
    yield from _rows(grid.columns, grid.rows)


def _rows(
    columns: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]
) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _draw(section: Section) -> Iterator[tuple[str, str]]:
    """Yield each picture with its title."""
    for race in section.races:
        speeds = {name: figure.per_second for name, figure in race.middles().items()}
        yield race.title, draw_bars(race.title, speeds, "/s", EDGE)
    for chart in section.charts:
        yield chart.title, draw_chart(chart)


def _show(section: Section, title: str) -> tuple[str, str]:
    return ("", f"![{title}]({_name_plot(section, title)})")


def _name_plot(section: Section, title: str) -> str:
    """Return the name of a picture's file; two sections may race for the same."""
    words = f"{section.title} {title}".lower()
    return f"{re.sub('[^a-z0-9]+', '-', words).strip('-')}.svg"
