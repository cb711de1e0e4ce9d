"""The crash drill for the newsletter: processes that queue and send letters are killed, and again.

Each subscriber must get the letter, twice only if a kill fell between the yes of the relay and the
commit that says so, and then under the same Message-ID. The relay counts.
"""

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Final

from edge_api.auth.actor import new_id, system_clock
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.query import Filter, Insert, Read, Store, Update, count_query, count_rows, read_all
from edge_api.db.tables import EMAIL_SEND_LOG
from edge_api.db.types import format_instant
from tests.edge.edge_process import ROOT, until
from tests.edge.engines import open_store
from tests.edge.mail.outbox.scripted_relay import Taken, relaying
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience

PROCESS: Final = ("-m", "tests.drills.letter_process")
SITE_URL: Final = "https://journal.example"
RATE: Final = 100
LONGEST_LIFE: Final = 1.0
"""Seconds from the start of its work to a kill, at the most."""


@dataclass
class LetterReport:
    """The findings of a drill."""

    kills: int
    people: Sequence[str]
    taken: Sequence[Taken] = ()
    logged: int = 0
    queued: int = 0
    ids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The Message-IDs that each subscriber got."""

    @property
    def skipped(self) -> int:
        """Return how many got nothing."""
        return len(set(self.people) - self.ids.keys())

    @property
    def doubled(self) -> int:
        """Return how many letters came once too often."""
        return sum(Counter(each.recipient for each in self.taken).values()) - len(self.ids)

    @property
    def renamed(self) -> int:
        """Return how many got two letters that are not the same message."""
        return sum(len(ids) > 1 for ids in self.ids.values())

    def __str__(self) -> str:
        """Return the report as a line for a person."""
        return (
            f"{self.kills} kills, {len(self.people)} subscribers: {self.skipped} skipped, "
            f"{self.doubled} doubled, {self.renamed} of them under another Message-ID"
        )


async def drill(url: str, folder: Path, people: int, kills: int, processes: int) -> LetterReport:
    """Mail a post to so many people, with so many processes, of which one is killed at a time."""
    chance = random.Random(1)  # noqa: S311  the moments of the kills, to be had again
    report = LetterReport(kills, [f"reader-{each:05}@readers-club.net" for each in range(people)])
    store = await open_store(url, system_clock)
    async with relaying() as relay:
        await prepare(store, folder, report.people)
        forker = await asyncio.create_subprocess_exec(
            sys.executable,
            *PROCESS,
            cwd=ROOT,
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, **make_environment(url, folder, relay.port)},
        )
        lives: dict[int, int] = {}
        for life in range(kills + processes):
            if len(lives) == processes:
                await _kill(store, lives, chance)
            lives[life] = await _start(forker, life)
            await asyncio.sleep(chance.uniform(0, LONGEST_LIFE))
        wanted = set(report.people)
        await until(lambda: wanted <= set(relay.recipients), 600 + people)
        await _await_end(store)
        while lives:
            await _kill(store, lives, chance)
        forker.kill()
        await forker.communicate()
        report.taken = relay.taken
    for each in report.taken:
        report.ids[each.recipient].add(str(each.message["Message-ID"]))
    (mailing,) = await read_all(store, Read(MAILINGS))
    report.queued = mailing["recipients"]
    report.logged = await count_rows(store, EMAIL_SEND_LOG, Filter("status", "eq", "sent"))
    report.logged += await count_rows(store, EMAIL_OUTBOX, Filter("id", "is", None, negated=True))
    await store.close()
    return report


async def _await_end(store: Store) -> None:
    """Wait until the mailing is queued completely, and the outbox is empty."""
    some, unfinished = Filter("id", "is", None, negated=True), Filter("queued_at", "is", None)
    reads = count_query(EMAIL_OUTBOX, some), count_query(MAILINGS, unfinished)
    async with asyncio.timeout(patience()):
        while any(found.total for found in await store.run(*reads)):  # noqa: ASYNC110  a store
            await asyncio.sleep(0.1)


async def _start(forker: Process, life: int) -> int:
    """Start a process; return its id once it works."""
    assert forker.stdin is not None
    assert forker.stdout is not None
    forker.stdin.write(f"{life}\n".encode())
    async with asyncio.timeout(patience()):
        word, pid = (await forker.stdout.readline()).split()
    assert word == b"ready"
    return int(pid)


async def _kill(store: Store, lives: dict[int, int], chance: random.Random) -> None:
    """Kill a process, and let the two minutes pass after which its leases are over."""
    life = chance.choice(list(lives))
    os.kill(lives.pop(life), signal.SIGKILL)
    await asyncio.sleep(0.05)
    over = {"due_at": format_instant(system_clock())}
    await store.run(Update(EMAIL_OUTBOX, over, (Filter("lease", "like", f"{life}:*"),)))


async def prepare(store: Store, folder: Path, people: Sequence[str]) -> None:
    """Store subscribers, a build and a mailing of it that is due."""
    now = system_clock()
    at, make_id = format_instant(now), partial(new_id, now)
    active = {"status": "active", "confirmed_at": at}
    rows = [
        SUBSCRIBERS.new_row({"email": email, "token": token_hex(32), **active}, at, make_id)
        for email in people
    ]
    for start in range(0, len(rows), 500):
        await store.run(Insert(SUBSCRIBERS, rows[start : start + 500]))
    post = make_post("one", url=f"{SITE_URL}/journal/one/")
    point_at(folder, write_build(folder, posts=[post], site_url=SITE_URL))
    due = format_instant(now - timedelta(seconds=1))
    given = {"slug": "one", "subject": "One", "url": post["url"], "text_digest": "0" * 64}
    mailing = MAILINGS.new_row({**given, "host": "journal.example", "due_at": due}, at, make_id)
    await store.run(Insert(MAILINGS, [mailing]))


def make_environment(url: str, folder: Path, port: int) -> dict[str, str]:
    """Return the settings of a process."""
    return {
        "DATABASE_URL": url,
        "SECRET_KEY": "a secret of thirty-two characters",
        "SITE_URL": SITE_URL,
        "BUILD_DIR": str(folder),
        "SMTP_URL": f"smtp://127.0.0.1:{port}",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "MAIL_FROM": "journal@journal-keepers.net",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "post@journal-keepers.net",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Street, Town",
        "NEWSLETTER_RATE": str(RATE),
    }
