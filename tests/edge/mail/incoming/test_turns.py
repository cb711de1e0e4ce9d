"""Turns at the mailbox: one edge reads at a time, and writes nothing down once its turn is over."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from edge_api.auth.actor import system_clock
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.mail.incoming import MAX_TURN, IncomingMail, MailboxReader
from edge_api.mail.suppressions import Feedback
from edge_api.settings import read_settings
from tests.edge.conftest import SITE_URL
from tests.edge.domain.conftest import MovableClock
from tests.edge.mail.incoming.conftest import Folder
from tests.edge.mail.incoming.correspondence import answer_lead, mailbox_state, received, write

pytestmark = [pytest.mark.size("test"), pytest.mark.each_engine]
SECRET = b"a secret of this test alone, 32 bytes"


@dataclass(frozen=True)
class HeldUp(IncomingMail):
    """What an edge does with incoming mail that is held up before each message."""

    hold: Callable[[], Awaitable[object]]

    async def receive(self, raw: bytes) -> bool:
        """Store a message, after a while."""
        await self.hold()
        return await IncomingMail.receive(self, raw)


def mailbox_of(
    store: Store,
    folder: Folder,
    clock: MovableClock,
    hold: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0),
) -> MailboxReader:
    """Return the mailbox as one edge reads it."""
    given = {"SITE_URL": SITE_URL, "MAILBOX_URL": folder.url("imap")}
    settings = read_settings(given, dotenv=None)
    assert settings.mailbox_url is not None
    incoming = HeldUp(settings, store, clock, Feedback(store, clock, SECRET), hold)
    return MailboxReader(settings.mailbox_url, incoming, SECRET)


async def test_an_edge_whose_turn_is_over_saves_no_mailbox_state(
    store: Store, folder: Folder
) -> None:
    """Another has read the folder since, which was made anew: how far stays as that one says."""
    clock = MovableClock(system_clock())
    _, answer = await answer_lead(store)
    old, new = write(answer, "old"), write(answer, "new")
    folder.put(old)
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        asleep.set()
        await awake.wait()

    sleeping = asyncio.create_task(mailbox_of(store, folder, clock, sleep).read())
    await asleep.wait()
    other = mailbox_of(store, folder, clock)
    await other.read()
    too_early = await received(store)

    with folder.server.opened() as client:
        client.delete(f'"{folder.name}"')
        client.create(f'"{folder.name}"')
    folder.put(old, new)
    clock.move(seconds=MAX_TURN.total_seconds())
    await other.read()
    state = await mailbox_state(store)
    awake.set()
    with pytest.raises(Problem):
        await sleeping

    assert (too_early, state["last_uid"], state["fault"]) == ([], 2, None)
    assert await mailbox_state(store) == state
    assert {row["body"] for row in await received(store)} == {"old", "new"}
    assert len(await received(store)) == 2
