"""The table: every promise of speed and memory once, with what it is measured against.

`benchmarks/parts/` measures, the report sets what was reached beside what is wanted here. A promise
is less than one whole run on an idle machine shows, so that only a change of the code misses it;
what varies more from run to run is reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.builders import HUGO, PELICAN
from benchmarks.peers import DATASETTE, FASTAPI, HELLO, SDK, STATIC, UNKEPT

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
        """Return whether a value keeps the promise."""
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
    *_times("post", "`GET /posts/{slug}`, keyed", {HELLO: 0.55, FASTAPI: 2.5, DATASETTE: 8.0}),
    *_times("posts", "`GET /posts` (28 kB), keyed", {HELLO: 0.5, FASTAPI: 3.5, DATASETTE: 20.0}),
    *_times(
        "newest posts",
        "`GET /posts?limit=40` to 50, keyed",
        {HELLO: 0.2, FASTAPI: 1.8, DATASETTE: 14.0},
    ),
    *_times("new leads", "`POST /leads`, 64 clients", {FASTAPI: 0.75}),
    _most("new leads, p99", "`POST /leads`, 64 clients", f"p99 {{}} x {FASTAPI}'s p50", None),
    *_times("new leads of 80 words", "`POST /leads` of 80 words, 64 clients", {FASTAPI: None}),
    *_times("leads", "`GET /leads?limit=40` to 60", {FASTAPI: 3.5, DATASETTE: 12.0}),
    *_times("rows", "admin filter and order of 1,000,000", {FASTAPI: 1.2, DATASETTE: 2.0}),
    _most("offset", "admin `offset` of 900,000 and more, of 1,000,000", _WAITS, 50.0),
    _most("ilike", "admin `ilike` over 1,000,000", _WAITS, 50.0),
    Line(
        "overdue", "admin `ilike` over 1,000,000", "{} of them get rows or a 503 that says why", 1.0
    ),
    _most("analyses", "analyses of hostile documents", _LONGEST, 100.0),
    *_times("page", "a built page (9 kB)", {HELLO: 0.55, STATIC: 2.0}),
    _most("counting", "a built page, counted", "{} x the processor time with STATS=off", None),
    _most("flood", "a built page, invented agents", "p99 {} x that with known agents", None),
    _most("flood, cost", "a built page, invented agents", "{} x the processor time", None),
    Line("proxied post/kept", "`GET /posts/{slug}` by deploy/nginx.conf", f"{{}} x {UNKEPT}", 2.5),
    *_times("proxied post", "`GET /posts/{slug}`, keyed, both behind nginx", {FASTAPI: 1.2}),
    *_times("proxied lead", "`POST /leads`, 64 clients, both behind nginx", {FASTAPI: None}),
    _most("tools", "`mcp tools/call`", f"{{}} x the processor time of {SDK}", 0.85),
    Line("two workers", f"`POST /leads`, {TWO_WORKERS}", f"{{}} x {ONE_WORKER}", None),
    _most("two workers, p99", f"`POST /leads`, {TWO_WORKERS}", "p99 {} ms", None),
    _most("memory, 1,000 posts", "the edge with MCP loaded, 1,000 posts", "{} MiB", 200.0),
    _most("memory, 10,000 posts", "the edge with MCP loaded, 10,000 posts", "{} MiB", 400.0),
    *_times("cold build", f"cold build, {_BUILT}", {PELICAN: None, HUGO: None}),
    *_times("one edit", f"one edit among {_BUILT}", {HUGO: 2.0, PELICAN: None}),
    _most("build memory", f"memory of the build, {_BUILT}", "{} MiB", 600.0),
)
