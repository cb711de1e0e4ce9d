"""How long others wait while a million rows are searched without an index.

Eight clients ask for slow pages again and again; beside them one asks for other things, one after
the other with a pause, and what it waits for is what counts.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count, cycle
from statistics import quantiles
from typing import Final

import orjson
from aiohttp import ClientSession, ClientTimeout

from benchmarks.ground import API, LEAD, MANY_LEADS, Edge, Ground
from benchmarks.load import ROUNDS, forwarded
from benchmarks.section import Grid, Reached, Section
from benchmarks.server import LOAD_CORE, on_core

SLOW_CLIENTS: Final = 8
SECONDS: Final = 8.0
PAUSE: Final = 0.002
_OFFSET: Final = "/admin/leads?order=created_at.desc&offset={}&limit=100"
_DEEP: Final = range(900_000, MANY_LEADS - 100)
"""Offsets: all of them have a whole page behind them."""
_ILIKE: Final = "/admin/leads?message=ilike.*nowhere%20to%20be%20found%20{}*&limit=100"
"""Each asks for something else: the answer to a question that was put before is kept."""
_OTHERS: Final = ("/leads?limit=50", "/posts", "/posts?limit=20")
_HEADERS: Final = {"Content-Type": "application/json"}
_ABOUT = (
    f"{SLOW_CLIENTS} clients ask for slow pages of 1,000,000 leads without a pause; beside them "
    "one client asks for posts and for the newest leads, and sends leads. Administrators' own "
    "quick reads stand in one line with the slow ones, and are not among those."
)
_COLUMNS: Final = ("meanwhile", "p50 ms", "p99 ms", "longest ms", "requests", "slow answers")


@dataclass(slots=True)
class Waits:
    """What was seen in one round; times in milliseconds."""

    times: list[float] = field(default_factory=list)
    slow: Counter[int] = field(default_factory=Counter)
    refused: str = ""
    """What the last refusal of a slow page said."""

    @property
    def p99(self) -> float:
        """The wait that one request of a hundred exceeds."""
        return quantiles(self.times, n=100)[-1]

    @property
    def answered(self) -> float:
        """The share of slow pages that got rows or, beyond their time, 503 with a sentence."""
        good = self.slow[HTTPStatus.OK] + self.slow[HTTPStatus.SERVICE_UNAVAILABLE]
        return good / max(1, self.slow.total())


def measure(ground: Ground) -> Section:
    """Measure with nothing slow beside, with deep offsets, and with searches of all text."""
    with ground.edge("waiting", leads=MANY_LEADS) as edge, on_core(LOAD_CORE):
        seen = {
            name: [asyncio.run(_watch(edge, path)) for _ in range(ROUNDS)]
            for name, path in (("nothing", ""), ("offset", _OFFSET), ("ilike", _ILIKE))
        }
    reached = {name: Reached([waits.p99 for waits in seen[name]]) for name in ("offset", "ilike")}
    reached["overdue"] = Reached([waits.answered for waits in seen["ilike"]])
    said = max(waits.refused for waits in seen["ilike"]) or "none was"
    rows = [_row(name, waits) for name, rounds in seen.items() for waits in rounds]
    about = f"{_ABOUT} What a slow page beyond its time was told: {said!r}."
    return Section(
        "Beside slow reads", about, grids=(Grid("Waits", _COLUMNS, rows),), reached=reached
    )


def _row(name: str, waits: Waits) -> tuple[str, ...]:
    counts = ", ".join(f"{count} x {status}" for status, count in sorted(waits.slow.items()))
    half = quantiles(waits.times, n=2)[0]
    figures = (half, waits.p99, max(waits.times))
    return (name, *(f"{each:.1f}" for each in figures), str(len(waits.times)), counts)


async def _watch(edge: Edge, slow: str) -> Waits:
    waits, until = Waits(), time.perf_counter() + SECONDS
    paths = (slow.format(number) for number in cycle(_DEEP))
    timeout = ClientTimeout(total=60)
    async with ClientSession(edge.server.origin, headers=edge.keyed, timeout=timeout) as session:
        tasks = [
            _ask_slowly(session, paths, waits, until) for _ in range(SLOW_CLIENTS if slow else 0)
        ]
        await asyncio.gather(_ask_others(session, waits, until), *tasks)
    return waits


async def _ask_slowly(
    session: ClientSession, paths: Iterator[str], waits: Waits, until: float
) -> None:
    while time.perf_counter() < until:
        async with session.get(f"{API}{next(paths)}", headers=forwarded()) as answer:
            body = await answer.read()
            waits.slow[answer.status] += 1
            if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
                waits.refused = str(orjson.loads(body)["error"])


async def _ask_others(session: ClientSession, waits: Waits, until: float) -> None:
    numbers = count()
    while time.perf_counter() < until:
        for path in _OTHERS:
            await _time(session, waits, path)
        await _time(session, waits, "/leads", LEAD.replace("{n}", str(next(numbers))))


async def _time(
    session: ClientSession,
    waits: Waits,
    path: str,
    body: str | None = None,
) -> None:
    headers, started = {**_HEADERS, **forwarded()}, time.perf_counter()
    method = "POST" if body else "GET"
    async with session.request(method, f"{API}{path}", data=body, headers=headers) as answer:
        await answer.read()
        if not answer.ok:
            raise SystemExit(f"{path} answered {answer.status} beside slow reads")
    waits.times.append(1000 * (time.perf_counter() - started))
    await asyncio.sleep(PAUSE)
