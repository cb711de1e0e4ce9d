"""The crash drill: a process that stores rows is killed, again and again, while many write to it.

Whatever it acknowledged before it died has to be there afterwards, whole. Which process that is,
and how a row is written to it, is the target's business: see `Target`.

`python -m tests.drills.crash store 200`, or `edge`, runs it and prints what it found.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from tests.drills.targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
WRITERS: Final = 8
LONGEST_LIFE: Final = 0.06
"""Seconds from the first acknowledgement to the kill, at the most: a few dozen commits."""
START_SECONDS: Final = 30.0


class Client(Protocol):
    """A way into one running process of the target."""

    async def write(self) -> str:
        """Have one new row stored, and return its id when that is acknowledged.

        Raises ConnectionError when the process has died instead.
        """

    async def close(self) -> None:
        """Let go, once the process is dead and its acknowledgements have arrived."""


class Target(Protocol):
    """The process that is killed."""

    command: Sequence[str]
    """Starts the process, from the project's folder; its standard input and output are pipes."""
    environment: Mapping[str, str]
    """Variables that are added to the environment of the process."""

    async def connect(self, process: Process) -> Client:
        """Return a way in, when the process takes rows. Raises ConnectionError if it dies first."""

    def stored(self) -> Collection[str]:
        """Return the ids of the rows that are found while no process runs."""

    def halves(self) -> Collection[str]:
        """Return what is found to be there without what belongs to it."""


@dataclass(slots=True)
class Report:
    """The findings of a drill."""

    kills: int = 0
    acknowledged: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    halves: set[str] = field(default_factory=set)
    restarts: list[float] = field(default_factory=list)
    """Seconds from each start of the process to the moment at which it took rows."""

    def __str__(self) -> str:
        """Return the report as a line for a person."""
        median = sorted(self.restarts)[len(self.restarts) // 2]
        return (
            f"{self.kills} kills under {WRITERS} writers: {len(self.acknowledged)} rows "
            f"acknowledged, {len(self.lost)} lost, {len(self.halves)} half-written; "
            f"restart {median:.2f} s (median), {max(self.restarts):.2f} s (longest)"
        )


async def drill(target: Target, kills: int, seed: int = 1, *, until_lost: bool = False) -> Report:
    """Start and kill the target so many times, and compare what it said with what is there.

    `until_lost` ends the drill at the first loss.
    """
    chance = random.Random(seed)  # noqa: S311  the moments of the kills, to be had again
    report = Report()
    while report.kills < kills and not (until_lost and report.lost):
        life = Life(chance.uniform(0, LONGEST_LIFE), ends_on_answer=chance.random() < 0.5)
        report.acknowledged |= await _live_and_die(target, life, report)
        report.kills += 1
        report.lost |= report.acknowledged.difference(target.stored())
        report.halves |= set(target.halves())
    return report


@dataclass(frozen=True, slots=True)
class Life:
    """The lifetime of a process."""

    seconds: float
    """From its first acknowledgement on."""
    ends_on_answer: bool
    """True if it lives until it acknowledges another row: the moment that shows the most."""


async def _live_and_die(target: Target, life: Life, report: Report) -> set[str]:
    """Run the process for a while under many writers, kill it, return what it acknowledged."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *target.command, stdin=PIPE, stdout=PIPE, cwd=ROOT, env={**os.environ, **target.environment}
    )
    acknowledged: set[str] = set()
    answer = asyncio.Event()
    try:
        async with asyncio.timeout(START_SECONDS):
            client = await target.connect(process)
            report.restarts.append(time.monotonic() - began)
            writers = [
                asyncio.create_task(_write(client, acknowledged, answer)) for _ in range(WRITERS)
            ]
            await answer.wait()
            await asyncio.sleep(life.seconds)
            if life.ends_on_answer:
                answer.clear()
                await answer.wait()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    await asyncio.gather(*writers)
    await client.close()
    return acknowledged


async def _write(client: Client, acknowledged: set[str], answer: asyncio.Event) -> None:
    """Write one row after the other until the process is dead."""
    while True:
        try:
            acknowledged.add(await client.write())
        except ConnectionError:
            return
        answer.set()


def main() -> int:
    """Run the drill on a target and print what it found. Returns 1 when something was lost."""
    name, kills = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        target: Target = TARGETS[name](Path(folder) / "edge.db")
        report = asyncio.run(drill(target, int(kills)))
    print(report)
    return 1 if report.lost or report.halves else 0


if __name__ == "__main__":
    sys.exit(main())
