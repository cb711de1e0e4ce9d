"""Built pages with views counted and without, and under a flood of agents that nobody knows."""

from contextlib import ExitStack
from itertools import chain
from typing import Final

from crawleruseragents import CRAWLER_USER_AGENTS_DATA

from benchmarks.ground import Ground
from benchmarks.load import Load
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Reached, Section

_UNCOUNTED: Final = "STATS=off"
_FLOOD: Final = "Invented agents"
_SECONDS: Final = 11  # with the thread that names and stores every ten seconds
_BROWSER: Final = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/{}.0.0.0 Safari/537.36"
)
_ABOUT: Final = (
    "64 connections, the pages of 50 posts in random order, each request with another client's "
    "address, as from a proxy, and a User-Agent: of about 40 browsers and 40 programs "
    "of the list. Counted, uncounted, and with a new User-Agent in each request. Rounds of "
    f"{_SECONDS} seconds, so that the naming is among them."
)


def measure(ground: Ground) -> Section:
    """Measure all pages of posts."""
    named = (each["instances"][:1] for each in CRAWLER_USER_AGENTS_DATA[::40])
    known = [*chain.from_iterable(named), *(_BROWSER.format(100 + n) for n in range(40))]
    invented = ["Mozilla/5.0 (compatible; Invented{n}; +https://{n}.example)"]
    with ExitStack() as stack:
        counted = stack.enter_context(ground.edge("counting"))
        off = stack.enter_context(Ground(ground.folder, STATS="off").edge("uncounted"))
        pages = [f"/journal/{slug}/" for slug in counted.slugs()]
        loads = {
            EDGE: (counted.server, known),
            _UNCOUNTED: (off.server, known),
            _FLOOD: (counted.server, invented),
        }
        held = race(
            "Built pages, with views counted",
            [
                Runner(name, server, Load(server.origin, pages, agents=agents))
                for name, (server, agents) in loads.items()
            ],
            _SECONDS,
        )
    figures = held.figures
    pairs = list(zip(figures[_FLOOD], figures[EDGE], strict=True))
    reached = {
        "counting": Reached(held.costs(_UNCOUNTED)),
        "flood": Reached([new.p99_ms / old.p99_ms for new, old in pairs]),
        "flood, cost": Reached([new.cpu_us / old.cpu_us for new, old in pairs]),
    }
    return Section("Counting views", _ABOUT, (held,), reached=reached)
