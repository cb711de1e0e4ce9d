"""The time of pages while a mailing goes out at the default rate, and while it is held, in one run.

`python -m benchmarks.letters` prints the median and the 99th percentile of both, in milliseconds.
"""

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from aiohttp import ClientSession

from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.mail.queue import Outbox
from edge_api.newsletter.mailings import Mailings
from edge_api.settings import read_settings
from tests.drills.letters import make_environment, prepare
from tests.edge.edge_process import ROOT, free_port
from tests.edge.engines import open_store

PEOPLE, ROUNDS, SECONDS = 5000, 5, 6.0


async def measure(folder: Path) -> None:
    """Measure, and print the figures."""
    url, sink = f"sqlite:///{folder}/edge.db", free_port()
    store = await open_store(url, system_clock)
    await prepare(store, folder, [f"reader-{each}@readers-club.net" for each in range(PEOPLE)])
    given = {**make_environment(url, folder, sink), "PORT": str(free_port())}
    del given["NEWSLETTER_RATE"]
    settings = read_settings(given, dotenv=None)
    mailings = Mailings(settings, store, system_clock, Outbox(settings, system_clock))
    (mailing,) = await mailings.recent()
    await mailings.hold(mailing["id"], OPERATOR)
    times: dict[str, list[float]] = {"held": [], "going out": []}
    relay = ("-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{sink}", "-c", "aiosmtpd.handlers.Sink")
    async with (
        _running({}, *relay),
        _running(given, "-m", "edge_api", "serve") as edge,
        ClientSession(f"http://127.0.0.1:{given['PORT']}") as client,
    ):
        if edge.stdout:
            await edge.stdout.readline()
        for _ in range(ROUNDS):
            for name, change in (("held", None), ("going out", mailings.resume)):
                if change:
                    await change(mailing["id"], OPERATOR)
                    await asyncio.sleep(7)  # the dispatcher looks every five seconds
                times[name] += await _ask(client)
                if change:
                    await mailings.hold(mailing["id"], OPERATOR)
    sent = (await mailings.count(mailing["id"]))["sent"]
    await store.close()
    for name, found in times.items():
        late = quantiles(found, n=100)[98]
        print(f"{name}: median {median(found):.2f} ms, p99 {late:.2f} ms, {len(found)} pages")
    print(f"{sent} letters were sent")


async def _ask(client: ClientSession) -> list[float]:
    """Ask for a page a hundred times a second; return the times of the answers."""
    found, end = [], time.perf_counter() + SECONDS
    while (began := time.perf_counter()) < end:
        async with client.get("/journal/one/") as answer:
            await answer.read()
            answer.raise_for_status()
        found.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(0.01)
    return found


@asynccontextmanager
async def _running(
    environment: dict[str, str], *words: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    start = partial(asyncio.create_subprocess_exec, sys.executable, *words, cwd=ROOT)
    process = await start(stdout=PIPE, stderr=DEVNULL, env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.kill()
        await process.communicate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(Path(name)))
