"""Several processes send from one outbox, and nothing goes twice."""

import asyncio
import signal
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from edge_api.auth.actor import new_id
from edge_api.db.query import Insert
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.mail import queue
from tests.edge.edge_process import Installation
from tests.edge.engines import ON_SQLITE
from tests.edge.mail.outbox.post_office import LEAD, OWNER, PostOffice
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.sizes import scaled

pytestmark = pytest.mark.size("ci", grows=True)

MESSAGES = scaled(ci=1000, judge=10_000)
DISPATCHERS = 2
AT_ONCE = 500
"""Leads in one transaction, to have many soon."""


async def fill(office: PostOffice, count: int) -> None:
    """Store leads with what tells of them."""
    for start in range(0, count, AT_ONCE):
        outbox_entries = []
        for number in range(start, min(start + AT_ONCE, count)):
            now = office.clock()
            given = {**LEAD, "email": f"reader-{number}@readers-club.net"}
            lead = LEADS.new_row(given, format_instant(now), partial(new_id, now))
            outbox_entries += [
                Insert(LEADS, [lead]),
                *office.mailing.outbox.outbox_entries(lead),
            ]
        await office.store.run(*outbox_entries)


@pytest.fixture
def _unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold no notice back, however many there are."""
    monkeypatch.setattr(queue, "BURST", MESSAGES)


@ON_SQLITE
@pytest.mark.usefixtures("_unheld")
async def test_two_dispatchers_send_nothing_twice(
    office: PostOffice,
    relay: Relay,
    tmp_path: Path,
    journal: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two processes share the outbox: each message arrives once, is logged once, none is left."""
    office.clock.now = datetime.now(UTC)  # as the processes have it
    await fill(office, MESSAGES)
    installation = Installation(
        tmp_path,
        {
            "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
            "BUILD_DIR": str(journal),
            "SITE_URL": "http://journal.test",
            "SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
            "OWNER_EMAIL": OWNER,
        },
    )
    processes = [installation.start("mail", "run") for _ in range(DISPATCHERS)]
    try:
        await relay.await_count(MESSAGES, seconds=MESSAGES / 10)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.communicate)

    sent = Counter(str(taken.message["Message-ID"]) for taken in relay.taken)
    connections = [taken.connection for taken in relay.taken]
    # One dispatcher has one connection at a time: what comes by an older one is of another.
    turns = sum(later < earlier for earlier, later in pairwise(connections))
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of such a run
            f"\n{DISPATCHERS} dispatchers: {len(sent)} messages arrived, "
            f"{sent.total() - len(sent)} twice, over {len(set(connections))} connections, "
            f"which took turns {turns} times"
        )
    assert turns > 0
    assert (len(sent), set(sent.values())) == (MESSAGES, {1})
    statuses = Counter(await office.statuses())
    assert statuses == {"pending": MESSAGES, "sent": MESSAGES}
    assert await office.outbox() == []
