"""Leads sent by 64 clients at once, each answered when it is durable."""

import json
import random
import re
from contextlib import ExitStack
from typing import Final

from benchmarks import peers
from benchmarks.corpus import find_corpus, read_samples
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
    "connection, so that a neighbour's commit may cover one's own row. The second race has "
    "messages of 80 words taken at random from posts."
)


def _write_leads() -> list[str]:
    """Return bodies of leads whose messages have 80 words taken at random from posts."""
    text = " ".join(sample.body for sample in read_samples(find_corpus())[:60])
    words, choice = re.findall(r"[a-z]{3,}", text.lower()), random.Random(1)  # noqa: S311  no secret
    messages = (" ".join(["Enquiry {n}:", *choice.choices(words, k=80)]) for _ in range(200))
    return [json.dumps({**json.loads(LEAD), "message": message}) for message in messages]


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
        bodies = _write_leads()
        real = race(
            "New leads of 80 words, 64 clients",
            [
                Runner(
                    EDGE,
                    edge.server,
                    Load(edge.server.origin, [f"{API}/leads {b}" for b in bodies]),
                ),
                Runner(FASTAPI, peer, Load(peer.origin, [f"/leads {b}" for b in bodies])),
            ],
            count=5,
        )
    reached = {
        f"new leads/{FASTAPI}": compare(held, FASTAPI),
        "new leads, p99": Reached(held.waits(FASTAPI)),
        f"new leads of 80 words/{FASTAPI}": compare(real, FASTAPI),
    }
    return Section("New leads", _ABOUT, (held, real), reached=reached)
