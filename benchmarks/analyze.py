"""How long others wait while hostile documents are analysed.

`python -m benchmarks.analyze`: each document is sent on two connections at once; beside them, one
client asks for pages and for the liveness of the service, again and again. What counts is the
longest wait of these; the same without documents says what the machine itself does to it.
"""

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import ClientSession

from benchmarks.ground import PING, installation
from benchmarks.server import free_port, python, served
from tests.edge.analysis.hostile import documents

PATH = "/api/public/v1/analyze"
OTHERS = (PING, "/", "/journal/what-a-fore-edge-is/")
AT_ONCE = 2
QUIET_SECONDS = 20
TARGET_MS = 100.0


@dataclass(slots=True)
class Figures:
    """What was seen; times in milliseconds."""

    statuses: Counter[int] = field(default_factory=Counter)
    analyses: list[tuple[float, str]] = field(default_factory=list)
    waits: list[tuple[float, str]] = field(default_factory=list)
    quiet: list[tuple[float, str]] = field(default_factory=list)
    """Waits while no document was analysed."""


def main() -> None:
    """Measure and print."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = free_port()
        settings = installation(folder, port)
        python("-m", "site_build", "build", "--site-url", f"http://127.0.0.1:{port}", **settings)
        edge = stack.enter_context(served(["-m", "edge_api", "serve"], port, PING, settings))
        os.sched_setaffinity(edge.pid, range(os.cpu_count() or 1))  # which workers inherit
        figures = asyncio.run(measure(edge.origin))
    report(figures)


async def measure(origin: str) -> Figures:
    """Send every document, and ask for other things meanwhile."""
    figures = Figures()
    async with ClientSession(origin) as session:
        await analyze(session, "first", {"text": "Wake up."}, Figures())
        pause = asyncio.ensure_future(asyncio.sleep(QUIET_SECONDS))
        await ask_others(session, "quiet", pause, figures.quiet)
        for name, body in documents().items():
            sent = [analyze(session, name, body, figures) for _ in range(AT_ONCE)]
            task = asyncio.gather(*sent)
            await ask_others(session, name, task, figures.waits)
            await task
    return figures


async def analyze(
    session: ClientSession, name: str, body: dict[str, Any], figures: Figures
) -> None:
    """Send one document."""
    data, headers = orjson.dumps(body), {"Content-Type": "application/json"}
    start = time.perf_counter()
    async with session.post(PATH, data=data, headers=headers) as answer:
        await answer.read()
        figures.statuses[answer.status] += 1
    figures.analyses.append((1000 * (time.perf_counter() - start), name))


async def ask_others(
    session: ClientSession,
    name: str,
    task: "asyncio.Future[Any]",
    waits: list[tuple[float, str]],
) -> None:
    """Ask for other things while a task runs."""
    while not task.done():
        for path in OTHERS:
            start = time.perf_counter()
            async with session.get(path) as answer:
                await answer.read()
                if answer.status != 200:
                    raise SystemExit(f"{path} answered {answer.status} beside {name}")
            waits.append((1000 * (time.perf_counter() - start), name))
        await asyncio.sleep(0.005)


def report(figures: Figures) -> None:
    """Print the figures."""
    counts = ", ".join(f"{count} x {status}" for status, count in sorted(figures.statuses.items()))
    print(f"documents: {len(figures.analyses)} ({counts})")
    print_longest("longest analyses", figures.analyses)
    print(f"other requests beside them: {len(figures.waits)}")
    ordered = sorted(wait for wait, _ in figures.waits)
    for share in (0.5, 0.99, 0.999):
        print(f"  {share:.1%} within {ordered[int(share * (len(ordered) - 1))]:.1f} ms")
    print_longest("longest waits of another request", figures.waits)
    print_longest("longest waits without documents", figures.quiet)
    verdict = "within" if ordered[-1] <= TARGET_MS else "BEYOND"
    print(f"{verdict} the target of {TARGET_MS:.0f} ms")


def print_longest(title: str, times: Sequence[tuple[float, str]]) -> None:
    """Print the three longest times."""
    print(f"{title}:")
    for wait, name in sorted(times, reverse=True)[:3]:
        print(f"  {wait:8.1f} ms  {name}")


if __name__ == "__main__":
    main()
