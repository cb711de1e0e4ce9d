"""How long others wait while hostile documents are analysed.

Each document is sent on two connections at once; beside them one client asks for pages and for the
liveness of the service, again and again. What counts is the longest wait of these; the same
without documents says what the machine itself does to it.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from statistics import quantiles
from typing import Any, Final

import orjson
from aiohttp import ClientSession

from benchmarks.ground import API, PING, Edge, Ground
from benchmarks.load import forwarded
from benchmarks.section import Grid, Reached, Section
from tests.edge.analysis.hostile import documents

QUIET: Final = "nothing"
AT_ONCE: Final = 2
QUIET_SECONDS: Final = 20.0
PAUSE: Final = 0.005
_WAKING: Final = {"text": "Wake up."}
"""Starts the workers, which is not what is measured."""
_HEADERS: Final = {"Content-Type": "application/json"}
_ABOUT = (
    f"Documents of the largest size that are made to keep a parser busy, each on {AT_ONCE} "
    "connections at once; beside them one client asks for two pages and for the liveness of the "
    "service, one after the other with a pause. The edge and its workers have all cores."
)
_COLUMNS: Final = ("meanwhile", "requests", "p50 ms", "p99 ms", "longest ms", "longest beside")
_DOCUMENT_COLUMNS: Final = ("documents", "answers", "longest ms", "longest of")

Timed = tuple[float, str]
"""Milliseconds, and the document."""


@dataclass(slots=True)
class Waits:
    """What was seen of documents, and of other requests beside them."""

    statuses: Counter[int] = field(default_factory=Counter)
    analyses: list[Timed] = field(default_factory=list)
    others: list[Timed] = field(default_factory=list)

    def of_others(self, *, quiet: bool) -> list[Timed]:
        """Return how long others waited without documents, or beside them."""
        return [each for each in self.others if (each[1] == QUIET) == quiet]


def measure(ground: Ground) -> Section:
    """Measure every document."""
    with ground.edge("analyses") as edge:
        os.sched_setaffinity(edge.server.pid, range(os.cpu_count() or 1))  # workers inherit it
        waits = asyncio.run(watch(edge.server.origin, _pages(edge), documents()))
    return describe(waits)


def describe(waits: Waits) -> Section:
    """Return the section of what was seen."""
    counts = ", ".join(f"{count} x {status}" for status, count in sorted(waits.statuses.items()))
    took, slowest = max(waits.analyses)
    documents_row = (str(len(waits.analyses)), counts, f"{took:.0f}", _quote(slowest))
    longest, _ = max(waits.of_others(quiet=False))
    grids = (
        Grid("Waits of others", _COLUMNS, list(_rows(waits))),
        Grid("Hostile documents", _DOCUMENT_COLUMNS, [documents_row]),
    )
    reached = {"analyses": Reached([longest])}
    return Section("Beside hostile documents", _ABOUT, grids=grids, reached=reached)


async def watch(
    origin: str,
    others: Sequence[str],
    hostile: Mapping[str, Mapping[str, Any]],
    quiet_seconds: float = QUIET_SECONDS,
) -> Waits:
    """Ask for other paths, first for these alone, then while each document is analysed."""
    waits = Waits()
    async with ClientSession(origin) as session:
        await _analyze(session, "first", _WAKING, Waits())
        client = _Client(session, others, waits)
        await client.ask_beside(QUIET, asyncio.sleep(quiet_seconds))
        for name, body in hostile.items():
            sent = [_analyze(session, name, body, waits) for _ in range(AT_ONCE)]
            await client.ask_beside(name, asyncio.gather(*sent))
    return waits


async def _analyze(
    session: ClientSession, name: str, body: Mapping[str, Any], waits: Waits
) -> None:
    data, started = orjson.dumps(body), time.perf_counter()
    headers = {**_HEADERS, **forwarded()}
    async with session.post(f"{API}/analyze", data=data, headers=headers) as answer:
        await answer.read()
        waits.statuses[answer.status] += 1
    waits.analyses.append((1000 * (time.perf_counter() - started), name))


@dataclass(frozen=True, slots=True)
class _Client:
    """Who asks for other things."""

    session: ClientSession
    paths: Sequence[str]
    waits: Waits

    async def ask_beside(self, name: str, work: Awaitable[Any]) -> None:
        """Ask again and again until what is done beside has ended."""
        task = asyncio.ensure_future(work)
        while not task.done():
            for path in self.paths:
                self.waits.others.append((await self._time(path, name), name))
            await asyncio.sleep(PAUSE)
        await task

    async def _time(self, path: str, beside: str) -> float:
        """Return the milliseconds of one request."""
        started = time.perf_counter()
        async with self.session.get(path, headers=forwarded()) as answer:
            await answer.read()
            if answer.status != HTTPStatus.OK:
                raise SystemExit(f"{path} answered {answer.status} beside {beside}")
        return 1000 * (time.perf_counter() - started)


def _pages(edge: Edge) -> tuple[str, ...]:
    return (PING, "/", f"/journal/{edge.slugs()[0]}/")


def _rows(waits: Waits) -> Iterator[tuple[str, ...]]:
    for name, quiet in ((QUIET, True), ("documents", False)):
        timed = sorted(waits.of_others(quiet=quiet))
        times = [wait for wait, _ in timed]
        longest, beside = timed[-1]
        figures = (quantiles(times, n=2)[0], quantiles(times, n=100)[-1], longest)
        spelt = (f"{each:.1f}" for each in figures)
        yield (name, str(len(times)), *spelt, "" if quiet else _quote(beside))


def _quote(name: str) -> str:
    """Return the name of a document, which has marks of its own, for a cell of Markdown."""
    return f"```` {name} ````".replace("|", "\\|")
