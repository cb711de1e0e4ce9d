"""The mail dispatcher, which sends due entries in batches, and `MailService`, the parts of mail.

Leads are accepted even if mail fails. Readiness is public, so the check of mail names no addresses.
"""

import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from edge_api import outbox
from edge_api.auth.actor import Clock
from edge_api.auth.desk_links import DeskLinks
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.mail_addresses import parse_mailbox
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store, read_all
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.health import Check
from edge_api.mail.delivery import AttemptCounter, Connection, Delivery, count_nothing
from edge_api.mail.messages import MESSAGE_TYPES, QUEUES, Queue
from edge_api.mail.preparation import (
    PLACEHOLDER_SENDER,
    LetterComposer,
    MessageComposer,
)
from edge_api.mail.queue import (
    LEASE,
    READ_STATE,
    Outbox,
    dispatcher_state,
    paused_until,
    time_to_live,
)
from edge_api.mail.sample_message import open_templates
from edge_api.mail.suppressions import UnsubscribeLinks, read_suppression
from edge_api.mail.transports import Transport, null_session, open_transport
from edge_api.schema.environment import EDGE
from edge_api.settings import Settings

OWN_GIVEN_UP: Final = (
    outbox.GIVEN_UP,
    Filter(
        "template_name",
        "in",
        tuple(name for name, each in MESSAGE_TYPES.items() if each.must_reach_owner),
    ),
)
"""The given up messages that are reported; the failure of others any visitor could cause."""
_log: Final = logging.getLogger(__name__)


class MailDispatcher(outbox.OutboxDispatcher):
    """Sends the mail of one store through one relay."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        transport: Transport,
        delivery: Delivery,
        letter_pause: float = 0.0,
    ) -> None:
        super().__init__(store, clock)
        self._transport = transport
        self._delivery = delivery
        self._letter_pause = letter_pause  # seconds from one letter to the next

    async def send_batch(self) -> bool:
        """Send one batch of due entries; return whether there may be more. Raises Problem."""
        now = self._clock()
        state = dispatcher_state(await read_all(self._store, READ_STATE), now)
        if paused_until(state, now):
            return False
        entries, is_complete = await self._delivery.claim_due(state["batch_size"])
        return await self._send(entries, state) and not is_complete

    async def _dispatch_due(self) -> bool:
        with outbox.log_errors(_log, "mail waits"):
            return await self.send_batch()
        return False

    async def _send(self, entries: list[Row], state: Row) -> bool:
        """Deliver the entries one after another; return whether sending may go on."""
        waiting = deque(entries)
        try:
            async with Connection(self._transport) as connection:
                while waiting and not self._stopping.is_set():
                    began, entry = time.monotonic(), waiting.popleft()
                    if not await self._delivery.deliver(entry, state, connection):
                        return False
                    self.active_at = self._clock()
                    pause = state["send_delay_ms"] / 1000
                    is_letter = bool(waiting) and waiting[0]["queue"] == "newsletter"
                    if is_letter:
                        pause = min(pause, self._letter_pause - (time.monotonic() - began))
                    if waiting and pause > 0:
                        await outbox.wait_for(self._stopping, pause)
                    if is_letter and await self._delivery.is_other_mail_due():
                        self.wake()  # the next batch begins with it
                        break
        finally:
            with suppress(Problem):  # else they are due again when their leases end
                await self._delivery.release(waiting)
        return not self._stopping.is_set()


@dataclass(frozen=True, slots=True)
class MailService:
    """The parts that queue and send mail, and their state for readiness."""

    store: Store
    clock: Clock
    outbox: Outbox
    dispatcher: MailDispatcher
    links: UnsubscribeLinks
    desk_links: DeskLinks

    async def check(self) -> Check:
        """Return the state of mail, for readiness."""
        now, owner = self.clock(), self.outbox.owner
        try:
            found, dead, suppressed = await self.store.run(
                READ_STATE,
                Read(EMAIL_OUTBOX, ("id",), OWN_GIVEN_UP, limit=1),
                read_suppression(owner or ""),
            )
            state = dispatcher_state(found.rows, now)
            late = await self.store.run(*(_late_query(state, queue, now) for queue in QUEUES))
        except Problem:
            return Check("warn", "the state of mail cannot be read")
        until, active_at = paused_until(state, now), self.dispatcher.active_at
        faults = {
            "mail has a relay, but no recipient for leads: set OWNER_EMAIL": (
                self.outbox.is_configured and owner is None
            ),
            f"mail is paused until {until}: fix the relay as email_send_log says, or wait": until,
            f"mail was given up: {EDGE} mail list says why, mail retry sends it again": dead.rows,
            "mail waits for longer than half of its time to live: look at the relay": (
                any(result.rows for result in late)
            ),
            "the owner's address is suppressed: delete its row in suppressed_emails": (
                suppressed.rows
            ),
            "the mail dispatcher is stuck: restart the service": (
                active_at and self.clock() - active_at > LEASE
            ),
        }
        found_faults = "; ".join(sentence for sentence, is_found in faults.items() if is_found)
        return Check("warn", found_faults) if found_faults else Check("pass")


def _late_query(state: Row, queue: Queue, now: datetime) -> Read:
    """Return the query for an entry that has waited for longer than half of its time to live."""
    since = format_instant(now - time_to_live(state, queue) / 2)
    where = outbox.WAITING, Filter("queue", "eq", queue), Filter("queued_at", "lte", since)
    return Read(EMAIL_OUTBOX, ("id",), where, limit=1)


def make_mail_service(  # noqa: PLR0913  the parts that differ between processes
    settings: Settings,
    store: Store,
    clock: Clock,
    secret: bytes,
    transport: Transport | None = None,
    *,
    letters: LetterComposer | None = None,
    count: AttemptCounter = count_nothing,
) -> MailService:
    """Make the parts of mail, not running yet; `transport` replaces the one of SMTP_URL.

    `letters` composes those of the newsletter, and `count` is told of each attempt to send.
    """
    if transport is None:
        transport = open_transport(settings.smtp_url) if settings.smtp_url else null_session
    links = UnsubscribeLinks(store, clock, settings.site_url)
    desk_links = DeskLinks(store, clock, secret, settings.site_url)
    composer = MessageComposer(
        settings, store, clock, secret, links, desk_links, open_templates(settings), letters
    )
    sender = parse_mailbox(settings.mail_from or PLACEHOLDER_SENDER).address
    delivery = Delivery(store, clock, composer, sender, count)
    dispatcher = MailDispatcher(store, clock, transport, delivery, 1 / settings.newsletter_rate)
    outbox = Outbox(settings, clock, dispatcher.wake)
    return MailService(store, clock, outbox, dispatcher, links, desk_links)
