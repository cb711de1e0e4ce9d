"""What a second worker on PostgreSQL buys, where load and database want the same two cores."""

from contextlib import ExitStack
from typing import Final

from benchmarks.ground import API, LEAD, Edge, Ground
from benchmarks.load import Load
from benchmarks.parts.rows import NEWEST
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Reached, Section, compare
from benchmarks.table import ONE_WORKER
from tests.edge.postgresql import PostgreSQL

FILE: Final = "one edge on a file"
_ABOUT = (
    "64 connections; PostgreSQL 18 with `fsync` and `synchronous_commit`, on this machine too. "
    f"{EDGE} is two workers on it. They and the database may use both cores, of which one is the "
    "load's as well; the edge on a file has the other one to itself. Processor time is the edges', "
    "without the database's."
)


def measure(ground: Ground) -> Section:
    """Measure new leads, a post and the list of leads."""
    server = PostgreSQL(fsync="on", full_page_writes="on", autovacuum="on", shared_buffers="128MB")
    try:
        with ExitStack() as stack:
            edges = {
                EDGE: stack.enter_context(ground.shared_edge(server.make_store(), 2)),
                ONE_WORKER: stack.enter_context(ground.shared_edge(server.make_store(), 1)),
                FILE: stack.enter_context(ground.edge("workers-file")),
            }
            leads = race(
                "New leads, 64 clients", _runners(edges, [f"/leads {LEAD}"], is_keyed=False)
            )
            keyed = [f"/posts/{slug}" for slug in edges[EDGE].slugs()]
            post = race("One post of 50, keyed", _runners(edges, keyed))
            listed = race("The newest 50 leads", _runners(edges, NEWEST))
    finally:
        server.remove()
    return Section("Workers on PostgreSQL", _ABOUT, (leads, post, listed), reached=_reached(leads))


def _runners(edges: dict[str, Edge], asked: list[str], *, is_keyed: bool = True) -> list[Runner]:
    requests = [f"{API}{each}" for each in asked]
    return [
        Runner(
            name,
            edge.server,
            Load(edge.server.origin, requests, edge.keyed if is_keyed else {}),
        )
        for name, edge in edges.items()
    ]


def _reached(leads: Race) -> dict[str, Reached]:
    return {
        "two workers": compare(leads, ONE_WORKER),
        "two workers, p99": Reached([figure.p99_ms for figure in leads.figures[EDGE]]),
    }
