"""The dispatcher of mail: claims what is due in batches and has it delivered; and how mail stands.

Leads are taken whatever happens to mail. Readiness says states and no addresses: anybody may read
it.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from edge_api import outbox
from edge_api.auth.actor import Clock
from edge_api.db.outbox_tables import EMAIL_OUTBOX
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store
from edge_api.db.table import Row
from edge_api.db.types import spell_instant
from edge_api.health import Check
from edge_api.mail.delivery import Delivery, Line
from edge_api.mail.messages import LETTERS, QUEUES, Queue, Transport
from edge_api.mail.queue import (
    LEASE,
    READ_STATE,
    Claims,
    MailRules,
    paused_until,
    state_of,
    time_to_live,
)
from edge_api.mail.suppressions import read_suppression

_log: Final = logging.getLogger(__name__)


class Dispatcher(outbox.Dispatcher):
    """Sends from one store through one relay."""

    def __init__(
        self, store: Store, clock: Clock, transport: Transport, delivery: Delivery
    ) -> None:
        super().__init__(store, clock)
        self._transport = transport
        self._delivery = delivery
        self._claims = Claims(store, clock)

    async def tick(self) -> bool:
        """Send one batch of what is due; tell whether there may be more of it.

        Raises Problem `unavailable`.
        """
        now = self._clock()
        (found,) = await self._store.run(READ_STATE)
        state = state_of(found.rows, now)
        if paused_until(state, now):
            return False
        batch = await self._claims.take(state["batch_size"])
        return await self._send(batch.entries, state) and not batch.is_all

    async def _take_turn(self) -> bool:
        with outbox.outages_logged(_log, "mail waits"):
            return await self.tick()
        return False

    async def _send(self, entries: list[Row], state: Row) -> bool:
        """Deliver one after the other; tell whether all of them had their turn."""
        waiting = deque(entries)
        try:
            async with Line(self._transport) as line:
                while waiting and not self._ending.is_set():
                    if not await self._delivery.deliver(waiting.popleft(), state, line):
                        return False
                    self.beat = self._clock()
                    if waiting:
                        await outbox.wait_for(self._ending, state["send_delay_ms"] / 1000)
        finally:
            with suppress(Problem):  # the end of the lease does the same
                await self._claims.give_back(waiting)
        return not self._ending.is_set()


_LOST = Filter(
    "template_name", "in", tuple(name for name, letter in LETTERS.items() if letter.persists_for)
)
"""What somebody has to look after: anybody can have us write in vain to an address they made up."""


@dataclass(frozen=True, slots=True)
class MailStatus:
    """Looks at the outbox when asked."""

    store: Store
    clock: Clock
    rules: MailRules
    dispatcher: Dispatcher | None = None
    """The one of this process, where there is one."""

    async def check(self) -> Check:
        """Return what readiness says of mail."""
        try:
            sentences = [sentence async for sentence in self._sentences()]
        except Problem:
            return Check("warn", "the state of mail cannot be read")
        return Check("warn", "; ".join(sentences)) if sentences else Check("pass")

    async def _sentences(self) -> AsyncIterator[str]:
        """Give what is wrong. Raises Problem."""
        now, owner = self.clock(), self.rules.owner
        found, dead, suppressed = await self.store.run(
            READ_STATE, _any(outbox.GIVEN_UP, _LOST), read_suppression(owner or "")
        )
        state = state_of(found.rows, now)
        late = await self.store.run(*(_late(queue, state, now) for queue in QUEUES))
        if self.rules.configured and owner is None:
            yield "mail has a relay, but nobody to tell of leads: set OWNER_EMAIL"
        if until := paused_until(state, now):
            yield f"mail is paused until {until}: email_send_log says why"
        if dead.rows:
            said = "python -m edge_api mail list says why, mail retry sends it again"
            yield f"mail was given up: {said}"
        if any(outcome.rows for outcome in late):
            yield "mail waits for longer than half of its time to live: look at the relay"
        if suppressed.rows:
            yield "the owner's address is suppressed: delete its row in suppressed_emails"
        beat = self.dispatcher and self.dispatcher.beat
        if beat and self.clock() - beat > LEASE:
            yield "the dispatcher of mail does not move: restart the service"


def _late(queue: Queue, state: Row, now: datetime) -> Read:
    since = spell_instant(now - time_to_live(state, queue) / 2)
    return _any(outbox.WAITING, Filter("queue", "eq", queue), Filter("queued_at", "lte", since))


def _any(*where: Filter) -> Read:
    return Read(EMAIL_OUTBOX, ("id",), where, limit=1)
