"""The processor time that one request of each kind costs: for the page on growth in docs/."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks import peers
from benchmarks.ground import API, Ground
from benchmarks.load import ROUNDS, Load, middle, run
from benchmarks.section import Grid, Section
from benchmarks.server import Served
from tests.edge.postgresql import PostgreSQL

WORDS: Final = 80
_LEAD: Final = (
    '{"name": "Reader {n}", "email": "reader{n}@example.com", "budget_tier": "starter", '
    '"message": "' + " ".join(f"word{number}" for number in range(WORDS - 2)) + ' number {n}."}'
)
_BROWSER: Final = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/{}.0.0.0 Safari/537.36"
)
_SECONDS: Final = 11  # with the thread that names and stores views every ten seconds
_ABOUT: Final = (
    "64 connections, for searches 8; an edge with one worker on PostgreSQL, for pages without "
    "counting on SQLite, since they read no rows. Processor time of the edge, of the database and "
    f"of nginx; no two requests are equal. It is user's and system's, the median of {ROUNDS} "
    f"rounds of {_SECONDS} seconds. What other processes do meanwhile spoils it by less than it "
    "spoils speeds."
)


@dataclass(frozen=True, slots=True)
class _Kind:
    title: str
    server: Served
    origin: str
    requests: Sequence[str]
    headers: Mapping[str, str]
    connections: int = 64


def measure(ground: Ground) -> Section:
    """Measure pages with views counted and without, search, the API, and new leads."""
    database = PostgreSQL(fsync="on", full_page_writes="on", autovacuum="on")
    try:
        with ExitStack() as stack:
            rows = list(_measure_kinds(ground, database, stack))
    finally:
        database.remove()
    columns = ("request", "edge, µs", "PostgreSQL, µs", "nginx, µs", "a second on one core")
    return Section("Capacity", _ABOUT, grids=(Grid("Processor time of a request", columns, rows),))


def _measure_kinds(
    ground: Ground, database: PostgreSQL, stack: ExitStack
) -> Iterator[tuple[str, ...]]:
    edge = stack.enter_context(ground.shared_edge(database.make_store(), 1))
    uncounted = stack.enter_context(Ground(ground.folder, STATS="off").edge("uncounted"))
    proxy = stack.enter_context(peers.proxy(ground.folder / "capacity-proxy", edge.server.origin))
    slugs = edge.slugs()
    pages = [f"/journal/{slug}/" for slug in slugs]
    words = sorted({word for slug in slugs for word in slug.split("-")})
    here, keyed = edge.server, edge.keyed
    posts = [f"{API}/posts/{slug}" for slug in slugs]
    finds = [f"/search?q={one}+{other}" for one in words for other in words]
    for kind in (
        _Kind("a page", uncounted.server, uncounted.server.origin, pages, {}),
        _Kind("a page, counted", here, here.origin, pages, {}),
        _Kind("a page, counted, by nginx", here, proxy.origin, pages, {}),
        _Kind("a search", here, here.origin, finds, {}, connections=8),
        _Kind("a post by the API and nginx, with a key", here, proxy.origin, posts, keyed),
        _Kind(f"a lead of {WORDS} words", here, here.origin, [f"{API}/leads {_LEAD}"], {}),
    ):
        agents = [_BROWSER.format("{n}")]
        load = Load(kind.origin, kind.requests, kind.headers, kind.connections, agents)
        run(load, kind.server, 1)
        others = (Served("", database.pid), proxy)
        before = [each.processor_seconds() for each in others]
        figure = middle([run(load, kind.server, _SECONDS) for _ in range(ROUNDS)])
        costs = [
            figure.cpu_us,
            *(
                (each.processor_seconds() - seconds) / figure.requests * 1e6
                for each, seconds in zip(others, before, strict=True)
            ),
        ]
        shown = [f"{each:.0f}" for each in costs]
        print(kind.title, *shown, flush=True)
        yield kind.title, *shown, f"{1e6 / sum(costs):,.0f}"
