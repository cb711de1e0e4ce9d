"""What the edge holds in memory: idle, after a call of an MCP tool, and under a long mixed load.

The load has what visitors, programs and the owner do, downloads of all leads included.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from statistics import mean
from typing import Any, Final

from aiohttp import ClientSession, ClientTimeout

from benchmarks.chart import Chart
from benchmarks.cost import weigh
from benchmarks.ground import API, LEAD, LEADS, MCP, Edge, Ground
from benchmarks.load import forwarded
from benchmarks.parts.desk import sign_in
from benchmarks.parts.growth import load_mcp
from benchmarks.parts.tools import OLDER, call_of, headers_of
from benchmarks.race import EDGE
from benchmarks.section import Grid, Reached, Section
from benchmarks.server import LOAD_CORE, on_core
from edge_api.schema.paths import SEARCH_DATA

CLIENTS: Final = 6
_SAMPLES: Final = 80
"""Looks at the memory during the load."""
_SETTLED: Final = 3.0
_PAUSE: Final = 0.03
"""Seconds that a client pauses on average, so that no queue grows."""
_BETWEEN: Final = 5.0
"""Seconds between two downloads."""
SHARES: Final = {
    "page": 30,
    "post": 15,
    "posts": 10,
    "rows": 10,
    "lead": 10,
    "search": 10,
    "screen": 9,
    "text": 3,
    "tool": 3,
}
"""Kinds of requests, beside downloads: how many of a hundred."""
_ABOUT: Final = (
    f"An edge with one worker, 50 posts and {LEADS:,} leads; memory of all its processes (PSS): "
    "idle after its first page, after a call of an MCP tool, and after minutes in which "
    f"{CLIENTS} clients read pages, posts and rows, search the site and the desk, send leads of 1 "
    "to 150 words, call a tool and have texts analysed, while one more downloads all leads as CSV, "
    "from the desk and from the API in turn."
)


@dataclass(slots=True)
class Seen:
    """What was seen during the load."""

    weights: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since its start, and MiB."""
    answers: Counter[str] = field(default_factory=Counter)
    """How many there were of each kind of request."""

    def growth(self) -> float:
        """Return by how many MiB a minute memory grew in the last quarter: a least-squares line."""
        last = self.weights[-max(3, len(self.weights) // 4) :]
        middle, level = mean(at for at, _ in last), mean(weight for _, weight in last)
        spread = sum((at - middle) ** 2 for at, _ in last)
        return 60 * sum((at - middle) * (weight - level) for at, weight in last) / spread


def measure(ground: Ground) -> Section:
    """Measure one edge through all of it."""
    with ground.edge("memory") as edge, on_core(LOAD_CORE):
        time.sleep(_SETTLED)
        weights = {"idle": weigh(edge.server.pid)}
        asyncio.run(load_mcp(edge))
        time.sleep(_SETTLED)
        weights["MCP"] = weigh(edge.server.pid)
        seen = asyncio.run(load(edge, 60 * ground.minutes))
        time.sleep(_SETTLED)
        weights["mixed load"] = weigh(edge.server.pid)
    return describe(weights, seen, ground.minutes)


def describe(weights: Mapping[str, float], seen: Seen, minutes: float) -> Section:
    """Return the section of what was seen."""
    total = seen.answers.total()
    kinds = ", ".join(f"{count:,} x {kind}" for kind, count in seen.answers.most_common())
    rows = [(name, f"{weight:.0f}") for name, weight in weights.items()]
    rows.append((f"growth in the last quarter of {minutes:g} min", f"{seen.growth():+.2f} a min"))
    for row in rows:
        print(*row, flush=True)
    print(f"{total:,} requests, {total / minutes / 60:.0f} a second: {kinds}", flush=True)
    reached = {f"memory, {name}": Reached([weight]) for name, weight in weights.items()}
    reached["memory, growth"] = Reached([seen.growth()])
    points = [(at / 60, weight) for at, weight in seen.weights if at > 0]
    return Section(
        "Memory",
        f"{_ABOUT} {total:,} requests, {total / minutes / 60:.0f} a second: {kinds}.",
        charts=(Chart("Memory under a mixed load", "minutes", "MiB", EDGE, {EDGE: points}),),
        grids=(Grid("Memory", ("when", "MiB"), rows),),
        reached=reached,
    )


async def load(edge: Edge, seconds: float) -> Seen:
    """Put the mixed load on an edge, and weigh it; raises SystemExit at an answer of an error."""
    seen, began, user = Seen(), time.monotonic(), _User(edge, sign_in(edge), edge.slugs())
    end = began + seconds
    async with ClientSession(edge.server.origin, timeout=ClientTimeout(total=120)) as session:

        async def visit(number: int) -> None:
            choice = random.Random(number)  # noqa: S311  no secret
            while time.monotonic() < end:
                await _send(session, seen, user.choose(choice))
                await asyncio.sleep(choice.expovariate(1 / _PAUSE))

        async def download() -> None:
            for asked in cycle(user.downloads()):
                await _send(session, seen, asked)
                await asyncio.sleep(min(_BETWEEN, seconds / 4))
                if time.monotonic() > end:
                    return

        async def look() -> None:
            while (now := time.monotonic()) < end:
                seen.weights.append((now - began, weigh(edge.server.pid)))
                await asyncio.sleep(seconds / _SAMPLES)

        await asyncio.gather(look(), download(), *map(visit, range(CLIENTS)))
    return seen


@dataclass(frozen=True, slots=True)
class _Request:
    kind: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """Of a POST: what is sent as JSON."""


@dataclass(frozen=True, slots=True)
class _User:
    """Everybody who asks an edge for something."""

    edge: Edge
    cookie: str
    slugs: Sequence[str]

    def choose(self, choice: random.Random) -> _Request:
        """Return a request of one of the kinds, unlike all others."""
        kind = choice.choices(list(SHARES), list(SHARES.values()))[0]
        number, slug = choice.randrange(10**9), choice.choice(self.slugs)
        words = choice.choices(slug.split("-"), k=choice.randint(1, 150))
        text = f"{number} {' '.join(words)}"
        token = {"Authorization": f"Bearer {self.edge.token}"}
        rows = f"name=gt.Reader%20{number}&order=created_at.desc&limit={number % 50 + 1}"
        screens = ("/desk/", "/desk/leads/", f"/desk/leads/?q=Reader+{number % LEADS}")
        lead = {**json.loads(LEAD.replace("{n}", str(number))), "message": text}
        path, headers, body = {
            "page": (choice.choice(("/", f"/journal/{slug}/")), {}, None),
            "post": (f"{API}/posts/{slug}", self.edge.keyed, None),
            "posts": (f"{API}/posts?limit={number % 50 + 1}", self.edge.keyed, None),
            "rows": (f"{API}/admin/leads?{rows}", self.edge.keyed, None),
            "lead": (f"{API}/leads", {}, lead),
            "search": (f"{SEARCH_DATA}?q={words[0]}+{number}", {}, None),
            "screen": (choice.choice(screens), {"Cookie": self.cookie}, None),
            "text": (f"{API}/analyze", {}, {"text": f"# {text}\n\n{text}\n"}),
            "tool": (MCP, {**headers_of(OLDER), **token}, call_of(OLDER)),
        }[kind]
        return _Request(kind, path, headers, body)

    def downloads(self) -> tuple[_Request, ...]:
        """Return the downloads of all leads: from the desk, and from the API."""
        return (
            _Request("download", "/desk/leads.csv?status=all", {"Cookie": self.cookie}),
            _Request("download", f"{API}/admin/leads", {**self.edge.keyed, "Accept": "text/csv"}),
        )


async def _send(session: ClientSession, seen: Seen, asked: _Request) -> None:
    method, headers = "POST" if asked.body else "GET", {**asked.headers, **forwarded()}
    async with session.request(method, asked.path, json=asked.body, headers=headers) as answer:
        async for _ in answer.content.iter_chunked(65536):
            pass  # a download is not held
        if not answer.ok:
            raise SystemExit(f"{asked.path} answered {answer.status} under the mixed load")
    seen.answers[asked.kind] += 1
