"""Leads sent by 64 clients at once, each answered when it is durable."""

from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import peers
from benchmarks.ground import Ground
from benchmarks.load import Load
from benchmarks.peers import FASTAPI
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Reached, Section, compare

SCRIPT: Final = Path(__file__).resolve().parent.parent / "leads.lua"
ALONE: Final = "Fore-edge, one commit each"
_ABOUT = (
    "64 connections, SQLite with `synchronous=FULL` everywhere, 10,000 leads to begin with. The "
    "edge checks each lead, judges it and looks for a repeat. FastAPI's requests share one "
    "connection, so that a neighbour's commit may cover one's own row."
)


def measure(ground: Ground) -> Section:
    """Measure new leads."""
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("writing"))
        alone = stack.enter_context(ground.edge("writing-alone", module=peers.ONE_COMMIT_EACH))
        index = ground.site() / "current" / "posts.json"
        database = ground.database("writing-peer", 10_000)
        peer = stack.enter_context(peers.fastapi(index, database, edge.keys))
        held = race(
            "New leads, 64 clients",
            [
                Runner(EDGE, edge.server, Load(edge.url("/leads"), script=SCRIPT)),
                Runner(FASTAPI, peer, Load(f"{peer.origin}/leads", script=SCRIPT)),
                Runner(ALONE, alone.server, Load(alone.url("/leads"), script=SCRIPT)),
            ],
        )
    reached = {
        f"new leads/{FASTAPI}": compare(held, FASTAPI),
        "new leads, p99": Reached(held.waits(FASTAPI)),
    }
    return Section("New leads", _ABOUT, (held,), reached=reached)
