"""The crash drill for answers: an edge is killed, again and again, while its owner writes.

Some answers are taken back, at any moment. Each that was not has to arrive, under one Message-ID,
and twice only where a kill fell between the relay's yes and the commit that says so; none that was
taken back may arrive.
"""

import asyncio
import json
import os
import random
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from edge_api.auth.actor import new_id, system_clock
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Filter, Insert, Read, Store, Update, count_rows, read_all
from edge_api.db.tables import LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from tests.drills.answering import WAIT
from tests.drills.targets import LEAD, LIMITS
from tests.edge.edge_process import ROOT, free_port
from tests.edge.engines import open_store
from tests.edge.mail.outbox.scripted_relay import Relay, Taken, relaying
from tests.patience import patience

ANSWERING: Final = ("-m", "tests.drills.answering")
ANSWERS_A_LIFE: Final = 6
MOMENTS: Final = ("recipient", "message", "stored", "later")
"""Ends of a life: as a recipient is named, as a message has arrived and is not answered yet, as
an answer is stored, or at some time after that."""
END: Final = 3.0  # seconds after which a life ends all the same
LONGEST: Final = 6 * WAIT.total_seconds()
"""Seconds after which an answer is taken back, at the most, and an edge is killed."""


@dataclass
class AnswersReport:
    """The findings of a drill."""

    kills: int = 0
    written: dict[str, str] = field(default_factory=dict)
    """The text of each answer by its id, as far as the edge said that it has it."""
    undone: set[str] = field(default_factory=set)
    """The answers that the edge said it took back."""
    refused: int = 0
    """The number of answers for which that was too late."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The final state of each message in the store."""
    taken: list[Taken] = field(default_factory=list)

    @property
    def arrived(self) -> Counter[str]:
        """Return how often each message arrived."""
        return Counter(str(t.message["Message-ID"]).strip("<>").split("@")[0] for t in self.taken)

    @property
    def lost(self) -> set[str]:
        """Return what the edge had, or the store has as sent, and that never arrived."""
        sent = {each for each, kind in self.kinds.items() if kind == "sent"}
        return (sent | (self.written.keys() - self.undone - self._drafts)) - self.arrived.keys()

    @property
    def sent_all_the_same(self) -> set[str]:
        """Return what was taken back, as the edge or the store says, and arrived."""
        return (self.undone | self._drafts) & self.arrived.keys()

    @property
    def half_undone(self) -> set[str]:
        """Return what the edge said that it took back, and is no draft."""
        return self.undone - self._drafts

    @property
    def renamed(self) -> set[str]:
        """Return the recipients who got more than one Message-ID; each was answered once."""
        names: dict[str, set[str]] = {}
        for taken in self.taken:
            names.setdefault(taken.recipient, set()).add(str(taken.message["Message-ID"]))
        return {recipient for recipient, ids in names.items() if len(ids) > 1}

    @property
    def duplicates(self) -> int:
        """Return how many messages arrived once too often."""
        return self.arrived.total() - len(self.arrived)

    @property
    def _drafts(self) -> set[str]:
        return {each for each, kind in self.kinds.items() if kind == "draft"}

    def __str__(self) -> str:
        """Return the report as a line for a person."""
        return (
            f"{self.kills} kills: {len(self.written)} answers, {len(self.undone)} taken back, "
            f"{self.refused} too late for it; {len(self.lost)} lost, "
            f"{len(self.sent_all_the_same)} taken back and sent, {self.duplicates} twice"
        )


async def drill(
    url: str, folder: Path, kills: int, moments: Sequence[str] = MOMENTS, seed: int = 1
) -> AnswersReport:
    """Kill the edge so many times while answers are written; the last life is not killed."""
    chance = random.Random(seed)  # noqa: S311  the moments, to be had again
    report = AnswersReport()
    async with relaying() as relay:
        settings = _settings(url, folder, relay)
        for life in range(kills + 1):
            leads = [_lead(f"reader-{life}-{number}") for number in range(ANSWERS_A_LIFE)]
            async with _opened(url) as store:
                await store.run(Insert(LEADS, leads), *_ended_leases())
            moment = chance.choice(moments) if life < kills else ""
            await _Life(report, relay, leads, moment, chance).run(settings)
            report.kills += moment != ""
        async with _opened(url) as store:
            assert await count_rows(store, EMAIL_OUTBOX) == 0
            rows = await read_all(store, Read(LEAD_MESSAGES))
            report.kinds = {row["id"]: row["kind"] for row in rows}
    report.taken = relay.taken
    return report


class _Life:
    """One life of the edge: an answer to each lead, some taken back, until it is killed."""

    def __init__(
        self,
        report: AnswersReport,
        relay: Relay,
        leads: Sequence[Mapping[str, Any]],
        moment: str,
        chance: random.Random,
    ) -> None:
        self._report, self._relay, self._leads, self._moment = report, relay, leads, moment
        # When each is taken back; some are not.
        self._presses = [chance.uniform(0, LONGEST) * chance.choice([0, 1]) for _ in leads]
        self._count, self._seconds = chance.randrange(3), chance.uniform(0, LONGEST)
        self._heard, self._is_killed = 0, False
        self._tasks: list[asyncio.Task[None]] = []
        self._process: Process

    async def run(self, settings: Mapping[str, str]) -> None:
        """Run the edge, and kill it; where no moment was chosen, once nothing waits."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *ANSWERING,
            cwd=ROOT,
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, **settings},
        )

        async def hear_recipient(_address: str) -> None:
            self._hear("recipient")

        self._relay.before_recipient = hear_recipient
        self._relay.before_data = lambda: self._hear("message")
        try:
            async with asyncio.timeout(patience()):
                await self._talk()
        finally:
            self._kill()
            await self._process.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _kill(self) -> None:
        if not self._is_killed:
            self._is_killed = True
            with suppress(ProcessLookupError):
                self._process.kill()

    def _hear(self, what: str) -> None:
        self._heard += what == self._moment
        if self._heard > self._count:
            self._kill()

    def _order(self, **words: str) -> None:
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(f"{json.dumps(words)}\n".encode())

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            work()

        self._tasks.append(asyncio.create_task(wait()))

    async def _talk(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        assert await stdout.readline() == b"ready\n"
        for number, lead in enumerate(self._leads):
            self._order(send=lead["id"], text=f"{number} for {lead['email']}")
        answered = 0
        while (line := await stdout.readline()).endswith(b"\n"):
            said = json.loads(line)
            if "drained" in said:
                return
            answered += "sent" in said
            self._note(said)
            if answered == len(self._leads):
                # A moment may never come, as where everything was taken back.
                self._later(self._seconds if self._moment == "later" else END, self._end)
                answered += 1

    def _end(self) -> None:
        if self._moment:
            self._kill()
        else:
            self._order(drain="")

    def _note(self, said: Mapping[str, str]) -> None:
        if "sent" in said:
            self._report.written[said["sent"]] = said["text"]
            if pause := self._presses[int(said["text"].partition(" ")[0])]:
                self._later(pause, partial(self._order, undo=said["sent"]))
            self._hear("stored")
        elif "undone" in said:
            self._report.undone.add(said["undone"])
        else:
            assert said["refused"] == "conflict", said
            self._report.refused += 1


def _lead(name: str) -> dict[str, Any]:
    now = system_clock()
    given = {**LEAD, "email": f"{name}@readers-club.net", "message": "Hello"}
    return LEADS.new_row(given, format_instant(now), partial(new_id, now))


def _ended_leases() -> list[Update]:
    """Return what lets the two minutes pass after which the leases of a dead edge are over."""
    claimed = (Filter("lease", "is", None, negated=True),)
    return [Update(EMAIL_OUTBOX, {"due_at": format_instant(system_clock())}, claimed)]


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Store]:
    store = await open_store(url, system_clock)
    try:
        yield store
    finally:
        await store.close()


def _settings(url: str, folder: Path, relay: Relay) -> dict[str, str]:
    return {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(free_port()),
        "DATABASE_URL": url,
        "SECRET_KEY": "a secret of this drill alone, 32 bytes",
        "BUILD_DIR": str(folder / "build"),
        "SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
        "OWNER_EMAIL": "Owner <owner@journal-keepers.net>",
    }
