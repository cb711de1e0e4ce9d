"""The table: every promise of speed and memory once, with what it is measured against.

`benchmarks/parts/` measures, the report sets what was reached beside what is wanted here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.builders import HUGO, PELICAN
from benchmarks.peers import DATASETTE, FASTAPI, HELLO, SDK, STATIC

Sense = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Line:
    """One promise."""

    name: str
    path: str
    measured: str
    """What the number is, with `{}` in its place."""
    wanted: float | None
    """`None`: reported only."""
    sense: Sense = "at least"

    def holds(self, value: float) -> bool:
        """Tell whether a value keeps the promise."""
        if self.wanted is None:
            return True
        return value >= self.wanted if self.sense == "at least" else value <= self.wanted

    def spell(self, value: float) -> str:
        """Return a value in the words of the line."""
        return self.measured.format(f"{value:.3g}" if value < 100 else f"{value:.0f}")


def _times(name: str, path: str, wanted: Mapping[str, float | None]) -> tuple[Line, ...]:
    return tuple(
        Line(f"{name}/{peer}", path, f"{{}} x {peer}", least) for peer, least in wanted.items()
    )


def _most(name: str, path: str, measured: str, wanted: float | None) -> Line:
    return Line(name, path, measured, wanted, "at most")


ONE_WORKER: Final = "one worker"
TWO_WORKERS: Final = "two workers on PostgreSQL, on the cores of load and server"

_WAITS: Final = "other requests' p99 {} ms"
_LONGEST: Final = "other requests' longest wait {} ms"
_BUILT: Final = "10,000 posts"

TABLE: Final = (
    *_times("post", "`GET /posts/{slug}`, keyed", {HELLO: 0.85, FASTAPI: 3.3, DATASETTE: 14.0}),
    *_times("posts", "`GET /posts` (28 kB), keyed", {HELLO: 0.85, FASTAPI: 5.0, DATASETTE: 30.0}),
    *_times("new leads", "`POST /leads`, 64 clients", {FASTAPI: 3.5}),
    _most("new leads, p99", "`POST /leads`, 64 clients", f"p99 {{}} x {FASTAPI}'s p50", 1.0),
    *_times("leads", "`GET /leads?limit=50`", {FASTAPI: 7.0, DATASETTE: 25.0}),
    *_times("rows", "admin filter and order of 1,000,000", {FASTAPI: 6.0, DATASETTE: 6.0}),
    _most("offset", "admin `offset=900000` of 1,000,000", _WAITS, 50.0),
    _most("ilike", "admin `ilike` over 1,000,000", _WAITS, 50.0),
    Line("overdue", "admin `ilike` beyond its time", "{} answers 503 with a sentence", 1.0),
    _most("analyses", "analyses of hostile documents", _LONGEST, 100.0),
    *_times("page", "a built page (8 kB)", {HELLO: 1.05, STATIC: 6.5}),
    _most("tools", "`mcp tools/call`", f"{{}} x the processor time of {SDK}", 0.85),
    Line("two workers", f"`POST /leads`, {TWO_WORKERS}", f"{{}} x {ONE_WORKER}", None),
    _most("two workers, p99", f"`POST /leads`, {TWO_WORKERS}", "p99 {} ms", None),
    _most("memory, 1,000 posts", "the edge with MCP loaded, 1,000 posts", "{} MiB", 150.0),
    _most("memory, 10,000 posts", "the edge with MCP loaded, 10,000 posts", "{} MiB", 350.0),
    *_times("cold build", f"cold build, {_BUILT}", {PELICAN: 3.5, HUGO: None}),
    *_times("one edit", f"one edit among {_BUILT}", {HUGO: 3.0, PELICAN: None}),
    _most("build memory", f"memory of the build, {_BUILT}", "{} MiB", 600.0),
)
