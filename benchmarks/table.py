"""The table: every promise of speed and memory once, with what it is measured against.

`benchmarks/parts/` measures, the report sets what was reached beside what is wanted here. A promise
is nine tenths of what a run on an idle machine showed, by processor time where that is measured:
other work on the machine spoils speeds sooner. What varies more from run to run is reported.
`python -m benchmarks PART` prints each line of a part with nine tenths of what it reached.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.builders import HUGO, PELICAN
from benchmarks.peers import DATASETTE, FASTAPI, HELLO, SDK, STATIC, UNKEPT
from benchmarks.section import Reached

Sense = Literal["at least", "at most"]
SHARE: Final = 0.9
"""What is promised of what was measured."""


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
    is_by_cost: bool = False
    """It speaks of processor time in place of time."""

    def rounds(self, reached: Reached) -> list[float]:
        """Return what the line speaks of, round by round."""
        return list(reached.costs if self.is_by_cost else reached.rounds)

    def value(self, reached: Reached | None) -> float | None:
        """Return the figure that is compared with what is wanted; `None` without one."""
        if reached is None:
            return None
        return reached.by_cost if self.is_by_cost else reached.value

    def holds(self, reached: Reached | None) -> bool:
        """Return whether a promise is kept; one that was not measured is not."""
        value = self.value(reached)
        if self.wanted is None or not value:  # 0: the system hides it, or the process had ended
            return self.wanted is None
        return value >= self.wanted if self.sense == "at least" else value <= self.wanted

    def spell(self, value: float) -> str:
        """Return a value in the words of the line."""
        return self.measured.format(f"{value:.3g}" if value < 100 else f"{value:.0f}")

    def promise(self, value: float) -> float:
        """Return what may be promised after this value was measured: a tenth worse."""
        return value * SHARE if self.sense == "at least" else value / SHARE


def _times(
    name: str, path: str, wanted: Mapping[str, float | None], *, is_by_cost: bool = True
) -> tuple[Line, ...]:
    by = " by CPU time" if is_by_cost else ""
    return tuple(
        Line(f"{name}/{peer}", path, f"{{}} x {peer}{by}", least, is_by_cost=is_by_cost)
        for peer, least in wanted.items()
    )


def _most(name: str, path: str, measured: str, wanted: float | None) -> Line:
    return Line(name, path, measured, wanted, "at most")


def _costs(name: str, path: str, yardstick: str, wanted: float | None) -> Line:
    """Return a line that says how much of the processor time of something else it takes."""
    measured = f"{{}} x {yardstick} by CPU time"
    return Line(name, path, measured, wanted, "at most", is_by_cost=True)


ONE_WORKER: Final = "one worker"
TWO_WORKERS: Final = "two workers on PostgreSQL, on the cores of load and server"

_WAITS: Final = "other requests' p99 {} ms"
_LONGEST: Final = "other requests' longest wait {} ms"
_BUILT: Final = "10,000 posts"
_FEWER: Final = "1,160 posts"
_LEADS: Final = "of 100,000 leads"
_READER: Final = "a saved post to the page that the edge serves, {}"
_START: Final = "the edge's first start"

TABLE: Final = (
    *_times("post", "`GET /posts/{slug}`, keyed", {HELLO: 0.65, FASTAPI: 3.0, DATASETTE: 8.0}),
    *_times("posts", "`GET /posts` (28 kB), keyed", {HELLO: 0.5, FASTAPI: 3.5, DATASETTE: 20.0}),
    *_times(
        "newest posts",
        "`GET /posts?limit=40` to 50, keyed",
        {HELLO: 0.2, FASTAPI: 1.8, DATASETTE: 14.0},
    ),
    *_times("new leads", "`POST /leads`, 64 clients", {FASTAPI: 0.77}),
    _most("new leads, p99", "`POST /leads`, 64 clients", f"p99 {{}} x {FASTAPI}'s p50", None),
    *_times("new leads of 80 words", "`POST /leads` of 80 words, 64 clients", {FASTAPI: 0.55}),
    *_times("leads", "`GET /leads?limit=40` to 60", {FASTAPI: 6.4, DATASETTE: 12.0}),
    *_times("rows", "admin filter and order of 1,000,000", {FASTAPI: 1.7, DATASETTE: 2.0}),
    _most("offset", "admin `offset` of 900,000 and more, of 1,000,000", _WAITS, 50.0),
    _most("ilike", "admin `ilike` over 1,000,000", _WAITS, 50.0),
    Line(
        "overdue", "admin `ilike` over 1,000,000", "{} of them get rows or a 503 that says why", 1.0
    ),
    _most("analyses", "analyses of hostile documents", _LONGEST, 100.0),
    *_times("page", "a built page (9 kB)", {HELLO: 0.68, STATIC: 2.0}),
    _most("counting", "a built page, counted", "{} x the processor time with STATS=off", None),
    _most("flood", "a built page, invented agents", "p99 {} x that with known agents", None),
    _most("flood, cost", "a built page, invented agents", "{} x the processor time", None),
    # Both are the edge, so that its own processor time does not tell what nginx saves.
    Line("proxied post/kept", "`GET /posts/{slug}` by deploy/nginx.conf", f"{{}} x {UNKEPT}", 2.5),
    *_times("proxied post", "`GET /posts/{slug}`, keyed, both behind nginx", {FASTAPI: 1.2}),
    *_times("proxied lead", "`POST /leads`, 64 clients, both behind nginx", {FASTAPI: None}),
    _most("tools", "`mcp tools/call`", f"{{}} x the processor time of {SDK}", 0.79),
    *_times("desk overview", f"the desk's overview {_LEADS}", {DATASETTE: 2.8}),
    *_times("desk inbox", f"the desk's inbox {_LEADS}, pages 1 to 20", {DATASETTE: 1.35}),
    *_times("desk lead", f"a lead at the desk {_LEADS}", {DATASETTE: 2.25}),
    *_times("desk address", f"the desk's search {_LEADS}, an address", {DATASETTE: 0.75}),
    *_times("desk name", f"the desk's search {_LEADS}, two words", {DATASETTE: 0.75}),
    *_times("desk frequent", f"the desk's search {_LEADS}, a word of all", {DATASETTE: 1.5}),
    *_times("desk absent", f"the desk's search {_LEADS}, a word of none", {DATASETTE: 1.4}),
    *_times("one word", f"search of the site, one word, {_BUILT}", {DATASETTE: 0.62}),
    *_times("two words", f"search of the site, two words, {_BUILT}", {DATASETTE: 0.54}),
    _costs("start, 50 posts", "start to the first page, 50 posts", f"{HELLO}'s start", 5.1),
    _costs(f"start, {_BUILT}", f"start to the first page, {_BUILT}", f"{HELLO}'s start", 11.5),
    Line("two workers", f"`POST /leads`, {TWO_WORKERS}", f"{{}} x {ONE_WORKER}", None),
    _most("two workers, p99", f"`POST /leads`, {TWO_WORKERS}", "p99 {} ms", None),
    _most("memory, idle", "the edge with 50 posts, idle", "{} MiB", 97.0),
    _most("memory, MCP", "the same after a call of an MCP tool", "{} MiB", 122.0),
    _most("memory, mixed load", "the same after mixed load with downloads", "{} MiB", None),
    _most("memory, growth", "the same, the last quarter of that", "{} MiB more a minute", None),
    _most("memory, 1,000 posts", "the edge with MCP loaded, 1,000 posts", "{} MiB", 200.0),
    _most("memory, 10,000 posts", "the edge with MCP loaded, 10,000 posts", "{} MiB", 400.0),
    *_times("cold build", f"cold build, {_BUILT}", {PELICAN: 0.41, HUGO: 0.099}),
    *_times("one edit", f"one edit among {_BUILT}", {HUGO: 3.2, PELICAN: 14.0}),
    _most("build memory", f"memory of the build, {_BUILT}", "{} MiB", 660.0),
    *_times(f"watcher edit, {_FEWER}", f"one edit, by the watcher, {_FEWER}", {HUGO: 9.5}),
    *_times(f"watcher edit, {_BUILT}", f"one edit, by the watcher, {_BUILT}", {HUGO: 22.0}),
    *_times(f"save to reader, {_FEWER}", _READER.format(_FEWER), {HUGO: None}, is_by_cost=False),
    *_times(f"save to reader, {_BUILT}", _READER.format(_BUILT), {HUGO: 5.6}, is_by_cost=False),
    _costs(f"swap, {_FEWER}", f"a new build is taken in, {_FEWER}", _START, 0.145),
    _costs(f"swap, {_BUILT}", f"a new build is taken in, {_BUILT}", _START, 0.26),
    _most(f"longest, {_FEWER}", f"an edit and a swap, {_FEWER}", _LONGEST, 30.0),
    _most(f"longest, {_BUILT}", f"an edit and a swap, {_BUILT}", _LONGEST, 30.0),
)
