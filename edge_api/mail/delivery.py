"""Delivery of a claimed outbox entry: send its message, and record the outcome.

The outcome is one transaction. A message is sent twice only if the process ends after the relay
accepted it and before that commit. No log line has an address or a word of a message.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Final, Literal

from edge_api import outbox
from edge_api.auth.actor import Clock
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Query, Store, Update, where_id
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.mail.preparation import Later, MessageComposer, NotSent
from edge_api.mail.queue import (
    MailLeases,
    log_insert,
    must_reach_owner,
    pause,
    retry_for,
    time_to_live,
)
from edge_api.mail.suppressions import (
    BAD_ADDRESS,
    end_subscription,
    is_suppressed,
    suppression,
)
from edge_api.mail.transports import CLOSING_CODE, MailRefusal, MailSession, Transport

RefusalKind = Literal["retry", "greylisted", "rate_limited", "bounced", "refused", "login"]
"""The kinds of refusals. `retry`: try later. `greylisted`: try again after five minutes or later.
`rate_limited`: pause all mail for a minute. `bounced`: suppress the address. `refused`: give up the
message. `login`: pause all mail for five minutes, since an operator has to fix the password."""

_RULES: Final[tuple[tuple[RefusalKind, str], ...]] = (
    ("rate_limited", r"\w+ (421|454) 4\.7\.\d+"),
    ("rate_limited", r"\w+ 429 .*"),
    # At other stages it may be about one recipient or message alone, which must not pause others.
    ("rate_limited", r"(connect|login|sender) 45[012] 4\.7\.\d+"),
    ("login", r"(connect|login|sender) 53[0458] .*"),
    ("login", r"login .*"),
    # A 554 in the greeting says that the relay is closed, not that it refuses a message (RFC 5321,
    # section 3.1).
    ("retry", r"connect .*"),
    ("greylisted", r"(recipient|data) 45[012] 4\.7\.\d+"),
    ("greylisted", r"recipient 45[01] .*"),
    # Without 5.1.0, 5.1.7, 5.1.8 and 5.1.9: they may be about the sender or the route, which some
    # relays refuse only when a recipient is named.
    ("bounced", r"recipient 5\d\d 5\.1\.([1-6]|10)"),
    ("bounced", r"data 55[013] 5\.1\.([1-6]|10)"),
    ("refused", r"\w+ 5\d\d .*"),
    ("refused", r"\w+ None 5\.\d+\.\d+"),
    ("retry", r".*"),
)
"""Patterns of a refusal's stage, code (or None) and enhanced code; the first that fits counts.

RFC 5321, section 4.2; RFC 3463, section 3; RFC 4954, section 6; RFC 7505, section 4."""


def classify(refused: MailRefusal) -> RefusalKind:
    """Return the kind of a refusal."""
    text = f"{refused.stage} {refused.code} {refused.enhanced}"
    return next(kind for kind, pattern in _RULES if re.fullmatch(pattern, text))


_TIME_STEP: Final = timedelta(microseconds=1)
"""The time between two log rows of one transaction, so that sorting by time keeps their order."""

_log = logging.getLogger(__name__)

BACKOFF: Final = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 480, 1500))
"""The pauses after the first four attempts."""
MAX_CLAIMS: Final = 20  # a message claimed so often without an outcome may crash the process


AttemptCounter = Callable[[Literal["sent", "failed"]], None]
"""Counts an attempt by its outcome."""


def count_nothing(_outcome: str) -> None:
    """Do nothing: without METRICS=on attempts are not counted."""


class Connection(AsyncExitStack):
    """The connection of one batch, opened for its first message."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport
        self._session: MailSession | None = None

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Send a message; return once the relay has accepted it. Raises MailRefusal."""
        if self._session is None:
            self._session = await self.enter_async_context(self._transport())
        await self._session.send(sender, recipient, message)


class Delivery(MailLeases):
    """Delivers entries that it has claimed, and logs how each claim ends.

    `sender` is the address on the envelope, but for the newsletter. Every method raises Problem
    `unavailable`.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        composer: MessageComposer,
        sender: str,
        count: AttemptCounter = count_nothing,
    ) -> None:
        super().__init__(store, clock)
        self._count = count
        self._composer = composer
        self._sender = sender

    async def deliver(self, entry: Row, state: Row, connection: Connection) -> bool:
        """Deliver an entry, as far as possible now; return whether the batch may go on.

        If it raises, the entry stays leased, and is due again when its lease ends.
        """
        leased = await self.ensure_lease(entry, timedelta(seconds=90))
        if leased is None:
            return True
        if reason := reason_to_give_up(leased, state, self._clock()):
            await self.dead(leased, reason)
            return True
        message = await self._prepare(leased)
        return True if message is None else await self._send(leased, message, connection)

    async def _prepare(self, entry: Row) -> EmailMessage | None:
        try:
            message = await self._composer.prepare(entry)
        except Problem:
            raise
        except Exception as error:  # noqa: BLE001  one message must not hold up all others
            # The error's text may quote the message, so only its type is logged.
            reason = f"cannot be composed: {type(error).__name__}"
            _log.error("mail %s %s", entry["id"], reason)
            # It is retried, since a newer version of the service may be able to compose it.
            await self.failed(entry, reason, next_attempt(entry, self._clock()))
            return None
        if isinstance(message, NotSent):
            end = self.suppressed if message.is_permanent else self.dead
            await end(entry, message.reason)
            return None
        if isinstance(message, Later):
            values = {
                **outbox.released_values(EMAIL_OUTBOX),
                "due_at": message.due_at,
                "queued_at": max(message.due_at, entry["queued_at"]),
            }
            await self._write(entry, values, *message.conditions)
            return None
        return message

    async def _send(self, entry: Row, message: EmailMessage, connection: Connection) -> bool:
        try:
            # The domain of From, so that SPF can speak for it (RFC 7489, section 3.1.2).
            is_letter = entry["template_name"].startswith("newsletter_")
            sender = message["From"].addresses[0].addr_spec if is_letter else self._sender
            async with self.renewing(entry):
                await connection.send(sender, entry["recipient_email"], message)
        except Exception as error:  # noqa: BLE001  whatever it is, the next turn may succeed
            self._count("failed")
            if isinstance(error, MailRefusal):
                return await self._record_refusal(entry, error)
            reason = f"{type(error).__name__} while it was handed over"
            _log.error("mail %s: %s", entry["id"], reason)
            return await self._record_refusal(entry, MailRefusal("connect", None, "", reason))
        self._count("sent")
        await self._record_sent(entry)
        return True

    async def _record_sent(self, entry: Row) -> None:
        """Log that the relay accepted a message; delete its entry, even if another claimed it.

        This is tried for a minute; without success the message is sent twice. If the entry is gone,
        nothing is logged: another dispatcher logged it, or it was erased with its recipient's data.
        """
        unchanged, where = {"lease": entry["lease"]}, where_id(entry["id"])
        exists, delete = Update(EMAIL_OUTBOX, unchanged, where, at_least=1), _delete(entry)
        for _ in range(60):
            try:
                log_entry = log_insert(entry, "sent", self._clock())
                if not await outbox.run_unless_conflict(self._store, exists, log_entry, delete):
                    await self._store.run(delete)
            except Problem:
                await asyncio.sleep(1)
            else:
                return
        _log.error("mail %s was sent, but that could not be recorded", entry["id"])

    async def _record_refusal(self, entry: Row, refused: MailRefusal) -> bool:
        """Record a refusal by its kind; return whether the batch may go on."""
        now, reason = self._clock(), refused.message
        match classify(refused):
            case "bounced":
                await self.bounced(entry, reason, ends=refused.enhanced in BAD_ADDRESS)
            case "refused":
                await self.failed(entry, reason, None)
            case "greylisted":
                # The usual pause of relays that greylist (RFC 6647, section 2.1).
                due = next_attempt(entry, now, timedelta(minutes=5))
                await self.failed(entry, reason, due, "soft_bounced")
            case "rate_limited":
                until = now + timedelta(minutes=1)
                return await self._pause(entry, "rate_limited", reason, until)
            case "login":
                return await self._pause(entry, "failed", reason, now + timedelta(minutes=5))
            case "retry":
                await self.failed(entry, reason, next_attempt(entry, now))
                return refused.stage != "connect" and refused.code != CLOSING_CODE
        return True

    async def suppressed(self, entry: Row, reason: str) -> None:
        """Log why an entry must not be sent; delete it."""
        log_entry = log_insert(entry, "suppressed", self._clock(), reason)
        await self._write_and_delete(entry, log_entry)

    async def failed(
        self, entry: Row, reason: str, retry_at: datetime | None, status: str = "failed"
    ) -> None:
        """Log a failed attempt; the entry is due again at `retry_at`, or dead if that is `None`."""
        now = self._clock()
        values = outbox.failed_values(EMAIL_OUTBOX, entry, retry_at, now)
        log_entries = [log_insert(entry, status, now, reason)]
        if retry_at is None:
            message = f"given up at attempt {values['attempts']}: {reason}"
            log_entries.append(log_insert(entry, "dlq", now + _TIME_STEP, message))
        await self._write(entry, values, *log_entries)

    async def dead(self, entry: Row, reason: str) -> None:
        """Give an entry up without an attempt, until an operator queues it again."""
        now = self._clock()
        log_entry = log_insert(entry, "dlq", now, reason)
        await self._write(entry, outbox.dead_values(EMAIL_OUTBOX, now), log_entry)

    async def bounced(self, entry: Row, reason: str, *, ends: bool) -> None:
        """Suppress the address; delete the entry, or keep it as dead if it must reach the owner.

        The subscription of the address `ends` where the address itself is wrong.
        """
        now, address = self._clock(), entry["recipient_email"]
        queries: list[Query] = [log_insert(entry, "bounced", now, reason)]
        if not await is_suppressed(self._store, address):
            queries.append(suppression(address, "bounce", now, {"message_id": entry["id"]}))
        if ends:
            queries.append(end_subscription(address, "bounce", now))
        if must_reach_owner(entry):
            queries.append(log_insert(entry, "dlq", now + _TIME_STEP, f"given up: {reason}"))
            await self._write(entry, outbox.dead_values(EMAIL_OUTBOX, now), *queries)
        else:
            await self._write_and_delete(entry, *queries)

    async def _pause(self, entry: Row, status: str, reason: str, until: datetime) -> bool:
        """Pause all sending; return `False`, which ends the batch. The attempt does not count.

        After the pause other entries are sent first, as the relay may refuse only this message.
        """
        _log.warning("mail is paused until %s: %s", until.isoformat(), reason)
        now = self._clock()
        values = {
            **outbox.released_values(EMAIL_OUTBOX),
            "due_at": format_instant(until + timedelta(seconds=30)),
        }
        pausing = await pause(self._store, until, now)
        await self._write(entry, values, log_insert(entry, status, now, reason), pausing)
        return False

    async def _write_and_delete(self, entry: Row, *queries: Query) -> None:
        await self._write(entry, {"lease": entry["lease"]}, *queries, _delete(entry))

    async def _write(self, entry: Row, values: Row, *queries: Query) -> None:
        change = self.update(entry, values)
        if not await outbox.run_unless_conflict(self._store, change, *queries):
            _log.warning(
                "mail %s: another dispatcher has claimed it; nothing is recorded here", entry["id"]
            )


def _delete(entry: Row) -> Delete:
    return Delete(EMAIL_OUTBOX, where_id(entry["id"]))


def next_attempt(entry: Row, now: datetime, minimum: timedelta = timedelta()) -> datetime | None:
    """Return the time of the next attempt, `minimum` from now or later; `None` to give up."""
    if entry["attempts"] < len(BACKOFF):
        pause = BACKOFF[entry["attempts"]]
    elif retry_for(entry):
        pause = timedelta(hours=1)
    else:
        return None
    return now + max(outbox.with_jitter(pause, 1 - outbox.JITTER), minimum)


def reason_to_give_up(entry: Row, state: Row, now: datetime) -> str | None:
    """Return the reason to give up an entry before an attempt, or `None`."""
    if entry["claims"] > MAX_CLAIMS:
        return f"the process ended {MAX_CLAIMS} times while this message was being sent"
    life = max(time_to_live(state, entry["queue"]), retry_for(entry) or timedelta())
    # A letter that is put off for ever has a date near the last of the calendar: nothing is added.
    if now - life >= datetime.fromisoformat(entry["queued_at"]):
        minutes = round(life.total_seconds() / 60)
        hours, rest = divmod(minutes, 60)
        span = f"{hours} hours" if hours > 1 and not rest else f"{minutes} minutes"
        return f"not sent within {span}"
    return None
