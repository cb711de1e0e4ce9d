"""Leads sent by 64 clients at once, each answered when it is durable."""

from contextlib import ExitStack
from typing import Final

from benchmarks import peers
from benchmarks.ground import API, LEAD, Ground
from benchmarks.load import Load
from benchmarks.peers import FASTAPI
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Reached, Section, compare

ALONE: Final = "Fore-edge, one commit each"
_ABOUT = (
    "64 connections, SQLite with `synchronous=FULL` everywhere, 10,000 leads to begin with. The "
    "edge counts each lead for the address of its sender, of which each has one, checks it, scores "
    "it as spam or not and looks for a repeat. FastAPI's requests share one "
    "connection, so that a neighbour's commit may cover one's own row."
)


def measure(ground: Ground) -> Section:
    """Measure new leads."""
    ours = [f"{API}/leads {LEAD}"]
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("writing"))
        alone = stack.enter_context(ground.edge("writing-alone", module=peers.ONE_COMMIT_EACH))
        index = ground.site() / "current" / "posts.json"
        database = ground.database("writing-peer", 10_000)
        peer = stack.enter_context(peers.fastapi(index, database, edge.keys))
        held = race(
            "New leads, 64 clients",
            [
                Runner(EDGE, edge.server, Load(edge.server.origin, ours)),
                Runner(FASTAPI, peer, Load(peer.origin, [f"/leads {LEAD}"])),
                Runner(ALONE, alone.server, Load(alone.server.origin, ours)),
            ],
        )
    reached = {
        f"new leads/{FASTAPI}": compare(held, FASTAPI),
        "new leads, p99": Reached(held.waits(FASTAPI)),
    }
    return Section("New leads", _ABOUT, (held,), reached=reached)
