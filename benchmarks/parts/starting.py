"""The start of the edge, to the first page, against that of a hello-world."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from benchmarks import peers
from benchmarks.ground import POSTS, Ground
from benchmarks.peers import HELLO
from benchmarks.section import Grid, Reached, Section
from benchmarks.server import LOAD_CORE, Took, look, on_core

ROUNDS: Final = 5
_ABOUT: Final = (
    "From the start of the process to its first answer, for the edge the home page; on one core, "
    f"with the database and the search index of an earlier start. Medians of {ROUNDS} rounds in "
    "turn with the least that an aiohttp application can do."
)
_COLUMNS: Final = ("server", "seconds", "by round", "seconds of processor", "by round")


def measure(ground: Ground) -> Section:
    """Measure a small journal and the largest of the ground."""
    sizes = (POSTS, max(ground.sizes))
    for posts in sizes:
        with ground.edge(f"starting-{posts}", posts=posts, leads=0):
            pass  # this start makes what the others find
    takes: dict[str, list[Took]] = {HELLO: [], **{_name(posts): [] for posts in sizes}}
    with on_core(LOAD_CORE):
        for _ in range(ROUNDS):
            began = time.perf_counter()
            with peers.hello() as server:
                takes[HELLO].append(look(server, began))
            for posts in sizes:
                with ground.edge(f"starting-{posts}", posts=posts, again=True) as edge:
                    takes[_name(posts)].append(edge.took)
    rows = [_row(name, taken) for name, taken in takes.items()]
    reached = {
        f"start, {name}": compare(taken, takes[HELLO])
        for name, taken in takes.items()
        if name != HELLO
    }
    for row in rows:
        print(*row, flush=True)
    return Section("The start", _ABOUT, grids=(Grid("Starts", _COLUMNS, rows),), reached=reached)


def compare(ours: Sequence[Took], theirs: Sequence[Took]) -> Reached:
    """Return how much of something else's time ours took, round by round."""
    pairs = list(zip(ours, theirs, strict=True))
    return Reached(
        [one.seconds / other.seconds for one, other in pairs],
        [one.processor / other.processor for one, other in pairs],
    )


def _name(posts: int) -> str:
    return f"{posts:,} posts"


def _row(name: str, taken: Sequence[Took]) -> tuple[str, ...]:
    cells = []
    for each in ([took.seconds for took in taken], [took.processor for took in taken]):
        cells += [f"{median(each):.2f}", ", ".join(f"{one:.2f}" for one in each)]
    return (name, *cells)
