"""The crash drill for mail: a dispatcher is killed, again and again, while leads come in.

The owner must be notified of each lead, under one Message-ID, twice only if the kill fell between
the relay's yes and the commit that says so. The relay's book and the log are held side by side.
"""

import asyncio
import os
import random
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aiohttp import ClientSession

from edge_api.db.types import format_instant
from tests.drills.targets import LEAD, LEADS, LIMITS
from tests.edge.edge_process import ROOT, free_port, until
from tests.edge.mail.outbox.scripted_relay import Relay, Taken, relaying
from tests.patience import patience

EDGE: Final = ("-m", "tests.drills.unheld", "serve")
MAIL: Final = ("-m", "edge_api", "mail", "run")
LEADS_A_LIFE: Final = 5
LONGEST_LIFE: Final = 0.06
"""Seconds from the first word to the relay to the kill, at the most: some messages."""
MOMENTS: Final = ("recipient", "message", "later")
"""Ends of a life: as a recipient is named, as a message has arrived and is not answered yet, or
at some time after the first."""


@dataclass(frozen=True)
class Life:
    """The moment at which a dispatcher is killed."""

    moment: str
    count: int
    """After how many such moments."""
    seconds: float
    """Seconds that it lives on, if the moment is `later`."""


def _draw(chance: random.Random, moments: Sequence[str]) -> Life:
    count, seconds = chance.randrange(LEADS_A_LIFE - 1), chance.uniform(0, LONGEST_LIFE)
    return Life(chance.choice(moments), count, seconds)


@dataclass
class MailReport:
    """The findings of a drill."""

    kills: int = 0
    leads: set[str] = field(default_factory=set)
    """The addresses of those who wrote."""
    taken: list[Taken] = field(default_factory=list)
    """The relay's book."""
    recorded: list[set[str]] = field(default_factory=list)
    """The messages that the log had as sent when each life was over, and at last."""

    @property
    def ids(self) -> Counter[str]:
        """Return how often each message arrived, by its id in the log."""
        return Counter(_id_of(taken) for taken in self.taken)

    @property
    def lost(self) -> set[str]:
        """Return the leads of which no notification was sent."""
        return self.leads - {_writer_of(taken) for taken in self.taken}

    @property
    def renamed(self) -> set[str]:
        """Return the leads that were notified under more than one Message-ID."""
        names: dict[str, set[str]] = {}
        for taken in self.taken:
            names.setdefault(_writer_of(taken), set()).add(_id_of(taken))
        return {writer for writer, ids in names.items() if len(ids) > 1}

    @property
    def unrecorded(self) -> list[tuple[int, str]]:
        """Return what the relay took in a life whose log did not say so when it was over.

        There the kill fell between the relay's yes and the commit: the message has to go again.
        """
        return [
            (taken.life, _id_of(taken))
            for taken in self.taken
            if _id_of(taken) not in self.recorded[taken.life]
        ]

    @property
    def repeated_without_need(self) -> list[tuple[int, str]]:
        """Return what was sent again though the log of an earlier life had it as sent."""
        return [
            (taken.life, _id_of(taken))
            for taken in self.taken
            if taken.life and _id_of(taken) in self.recorded[taken.life - 1]
        ]

    @property
    def duplicates(self) -> int:
        """Return how many messages arrived once too often."""
        return self.ids.total() - len(self.ids)

    def __str__(self) -> str:
        """Return the report as a line for a person."""
        return (
            f"{self.kills} kills: {len(self.leads)} leads, {len(self.lost)} not notified, "
            f"{len(self.ids)} messages, {self.duplicates} of them twice; the kill fell between "
            f"the relay's yes and the commit {len(self.unrecorded)} times"
        )


async def drill(
    path: Path, kills: int, module: Sequence[str] = MAIL, moments: Sequence[str] = MOMENTS
) -> MailReport:
    """Kill the dispatcher so many times while leads are posted to a running edge.

    The last life is not killed: it has to bring what is left.
    """
    chance = random.Random(1)  # noqa: S311  the moments of the kills, to be had again
    report = MailReport()
    async with relaying() as relay:
        settings = _settings(path, relay)
        async with _running(settings, EDGE) as edge, _client(edge, settings) as client:
            for life in range(kills):
                relay.life = life
                await _post(client, report, life)
                await _live_and_die(settings, module, relay, _draw(chance, moments))
                report.kills += 1
                report.recorded.append(_sent(path))
                _let_leases_end(path)
            relay.life = kills
            async with _running(settings, module):
                await until(lambda: _left(path) == 0, len(report.leads))
            report.recorded.append(_sent(path))
    report.taken = relay.taken
    return report


async def _post(client: ClientSession, report: MailReport, life: int) -> None:
    for number in range(LEADS_A_LIFE):
        writer = f"reader-{life}-{number}@readers-club.net"
        lead = {**LEAD, "email": writer, "message": f"{life} {number}"}
        async with client.post(LEADS, json=lead) as answer:
            assert answer.status == 201, await answer.text()
        report.leads.add(writer)


async def _live_and_die(
    settings: Mapping[str, str], module: Sequence[str], relay: Relay, life: Life
) -> None:
    """Run a dispatcher up to the moment at which it is killed."""
    async with _running(settings, module) as process:
        said = asyncio.Event()
        heard = 0

        def hear(what: str) -> None:
            nonlocal heard
            heard += what == ("recipient" if life.moment == "later" else life.moment)
            if heard > life.count or life.moment == "later":
                said.set()
            if heard > life.count and what == life.moment and process.returncode is None:
                process.kill()

        async def hear_recipient(_address: str) -> None:
            hear("recipient")

        relay.before_recipient, relay.before_data = hear_recipient, lambda: hear("message")
        async with asyncio.timeout(patience()):
            await said.wait()
        await asyncio.sleep(life.seconds)
    relay.before_recipient, relay.before_data = None, lambda: None


@asynccontextmanager
async def _running(settings: Mapping[str, str], module: Sequence[str]) -> AsyncIterator[Process]:
    """Run a process, and kill it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *module,
        cwd=ROOT,
        stdout=PIPE,
        env={**os.environ, **settings},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def _client(edge: Process, settings: Mapping[str, str]) -> AsyncIterator[ClientSession]:
    assert edge.stdout is not None
    assert (await edge.stdout.readline()).startswith(b"serving")
    async with ClientSession(f"http://127.0.0.1:{settings['PORT']}") as session:
        yield session


def _settings(path: Path, relay: Relay) -> dict[str, str]:
    return {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(free_port()),
        "DATABASE_URL": f"sqlite:///{path}",
        "BUILD_DIR": str(path.with_name("build")),
        "SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "MAIL_DISPATCHER": "off",
    }


def _sent(path: Path) -> set[str]:
    question = "SELECT message_id FROM email_send_log WHERE status = 'sent'"
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute(question)}


def _left(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM email_outbox").fetchone()[0])


def _let_leases_end(path: Path) -> None:
    """Let the two minutes pass after which the leases of a dead dispatcher are over."""
    with closing(sqlite3.connect(path, timeout=patience())) as connection:
        connection.execute(
            "UPDATE email_outbox SET due_at = ? WHERE lease IS NOT NULL",
            (format_instant(datetime.now(UTC)),),
        )
        connection.commit()


def _id_of(taken: Taken) -> str:
    return str(taken.message["Message-ID"]).strip("<>").partition("@")[0]


def _writer_of(taken: Taken) -> str:
    return str(taken.message["Reply-To"]).rpartition("<")[2].rstrip(">")
