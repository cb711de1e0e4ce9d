"""Delivery of one message: from a claimed entry to its outcome, written in one transaction.

A message is sent twice only if the process ends between the relay's yes and the commit. No log line
names an address or a word of mail.
"""

import asyncio
import logging
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Final, Literal, get_args

from edge_api import outbox
from edge_api.auth.actor import Clock
from edge_api.db.outbox_tables import EMAIL_OUTBOX
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Query, Store, Update
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.mail.messages import MailSession, Refused, Stage, Transport
from edge_api.mail.preparation import MessageComposer, NotSent
from edge_api.mail.queue import Claims, log_insert, pause, retry_for, time_to_live
from edge_api.mail.suppressions import Suppression, is_suppressed

RefusalKind = Literal["retry", "greylisted", "rate_limited", "bounced", "refused", "login"]
"""Later; not before five minutes; all mail later; never, nor to this address; never this message;
later, once an operator has fixed the password."""

_EVERY_STAGE: Final[tuple[Stage, ...]] = get_args(Stage)
_ABOUT_US: Final[tuple[Stage, ...]] = ("connect", "login", "sender")
"""The relay knows only who we are."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule for refusals whose stage, code and enhanced code all fit."""

    kind: RefusalKind
    code: str = ".*"  # a pattern for the three digits; empty without an answer
    enhanced: str = ".*"
    stages: tuple[Stage, ...] = _EVERY_STAGE

    def fits(self, refused: Refused) -> bool:
        code = "" if refused.code is None else str(refused.code)
        return (
            refused.stage in self.stages
            and re.fullmatch(self.code, code) is not None
            and re.fullmatch(self.enhanced, refused.enhanced) is not None
        )


_RULES: Final = (
    _Rule("rate_limited", "421|454", r"4\.7\.\d+"),
    _Rule("rate_limited", "429"),
    # Said to a recipient or a message it may be about that one alone, which must not stop others.
    _Rule("rate_limited", "450|451|452", r"4\.7\.\d+", stages=_ABOUT_US),
    _Rule("login", "530|534|535|538", stages=_ABOUT_US),
    _Rule("login", stages=("login",)),
    # A relay that is closed refuses nobody's message (554 in a greeting, RFC 5321, section 3.1).
    _Rule("retry", stages=("connect",)),
    _Rule("greylisted", "450|451|452", r"4\.7\.\d+", stages=("recipient", "data")),
    _Rule("greylisted", "450|451", stages=("recipient",)),
    # Not 5.1.0, 5.1.7, 5.1.8 and 5.1.9: they are about the sender or the way as well, and relays
    # say what they think of a sender when a recipient is named.
    _Rule("bounced", r"5\d\d", r"5\.1\.([1-6]|10)", stages=("recipient",)),
    _Rule("bounced", "550|551|553", r"5\.1\.([1-6]|10)", stages=("data",)),
    _Rule("refused", r"5\d\d"),
    _Rule("refused", "", r"5\.\d+\.\d+"),
    _Rule("retry"),
)
"""RFC 5321, section 4.2; RFC 3463, section 3; RFC 4954, section 6; RFC 7505, section 4."""


def classify(refused: Refused) -> RefusalKind:
    """Return what a refusal means."""
    return next(rule.kind for rule in _RULES if rule.fits(refused))


_AFTER: Final = timedelta(microseconds=1)
"""Between two rows of one transaction: the log is sorted by time."""

DUE_AFTER_PAUSE: Final = timedelta(seconds=30)
"""The time after a pause at which its cause is due: after all other messages."""

_log = logging.getLogger(__name__)


class DeliveryLog(Claims):
    """Logs how each claim of one dispatcher ends. Every method raises Problem `unavailable`."""

    async def sent(self, entry: Row) -> None:
        """Log that the relay has it, even if another has claimed the entry; delete it.

        If the entry is gone, nothing is logged: another dispatcher did, or it was erased with all
        that names its recipient.
        """
        unchanged, where = {"lease": entry["lease"]}, outbox.where_id(entry["id"])
        here = Update(EMAIL_OUTBOX, unchanged, where, at_least=1)
        logged = log_insert(entry, "sent", self._clock())
        if not await outbox.run_unless_conflict(self._store, here, logged, _drop(entry)):
            await self._store.run(_drop(entry))

    async def suppressed(self, entry: Row, reason: str) -> None:
        """Log why it must not be sent; delete the entry."""
        now = self._clock()
        await self._end(entry, log_insert(entry, "suppressed", now, reason))

    async def failed(
        self, entry: Row, reason: str, again: datetime | None, status: str = "failed"
    ) -> None:
        """Log that the relay refused it; it is due `again`, or dead if that is `None`."""
        now = self._clock()
        values = outbox.failed_values(EMAIL_OUTBOX, entry, again, now)
        logged = [log_insert(entry, status, now, reason)]
        if again is None:
            said = f"given up at attempt {values['attempts']}: {reason}"
            logged.append(log_insert(entry, "dlq", now + _AFTER, said))
        await self._write(entry, values, *logged)

    async def dead(self, entry: Row, reason: str) -> None:
        """Give it up untried, until an operator queues it again."""
        now = self._clock()
        logged = log_insert(entry, "dlq", now, reason)
        await self._write(entry, outbox.dead_values(EMAIL_OUTBOX, now), logged)

    async def bounced(self, entry: Row, reason: str) -> None:
        """Suppress the address; delete the entry, or keep it dead if it must not get lost."""
        now, address = self._clock(), entry["recipient_email"]
        queries: list[Query] = [log_insert(entry, "bounced", now, reason)]
        if not await is_suppressed(self._store, address):
            queries.append(Suppression(address, "bounce", {"message_id": entry["id"]}).insert(now))
        if retry_for(entry):
            queries.append(log_insert(entry, "dlq", now + _AFTER, f"given up: {reason}"))
            await self._write(entry, outbox.dead_values(EMAIL_OUTBOX, now), *queries)
        else:
            await self._end(entry, *queries)

    async def paused(self, entry: Row, status: str, reason: str, until: datetime) -> None:
        """Pause all sending; the attempt does not count.

        After the pause the others go first: the relay may refuse only this message.
        """
        now = self._clock()
        values = {
            **outbox.released_values(EMAIL_OUTBOX),
            "due_at": format_instant(until + DUE_AFTER_PAUSE),
        }
        pausing = await pause(self._store, until, now)
        await self._write(entry, values, log_insert(entry, status, now, reason), pausing)

    async def _end(self, entry: Row, *queries: Query) -> None:
        await self._write(entry, {"lease": entry["lease"]}, *queries, _drop(entry))

    async def _write(self, entry: Row, values: Row, *queries: Query) -> None:
        change = self.update(entry, values)
        if not await outbox.run_unless_conflict(self._store, change, *queries):
            _log.warning(
                "mail %s: another dispatcher has claimed it; nothing is recorded here", entry["id"]
            )


def _drop(entry: Row) -> Delete:
    return Delete(EMAIL_OUTBOX, outbox.where_id(entry["id"]))


RATE_LIMIT_PAUSE: Final = timedelta(seconds=60)
LOGIN_PAUSE: Final = timedelta(minutes=5)
RECORD_TRIES: Final = 60
RECORD_SECONDS: Final = 1.0
"""The number of attempts to log a sent message, and the seconds between them."""
CLOSING: Final = 421  # the relay ends the connection (RFC 5321, section 3.8)

LEASE_LEAST: Final = timedelta(seconds=90)
"""The rest of a lease that is needed to begin a message."""
BACKOFF: Final = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 480, 1500))
"""The pauses after the first four attempts."""
PERSISTENT_PAUSE: Final = timedelta(hours=1)
GREYLISTED_PAUSE: Final = timedelta(minutes=5)
"""In use at greylisting relays (RFC 6647, section 2.1)."""
CLAIMS_MOST: Final = 20
"""A message whose claims ended so often without an outcome may end the process."""


class Connection(AsyncExitStack):
    """The connection of one batch, opened for its first message."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport
        self._session: MailSession | None = None

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Return when the relay has the message. Raises Refused."""
        if self._session is None:
            self._session = await self.enter_async_context(self._transport.session())
        await self._session.send(sender, recipient, message)


class Delivery:
    """Delivers entries; `sender` is the address on the envelope."""

    def __init__(
        self, store: Store, clock: Clock, preparation: MessageComposer, sender: str
    ) -> None:
        self._clock = clock
        self._preparation = preparation
        self._sender = sender
        self._outcomes = DeliveryLog(store, clock)

    async def deliver(self, entry: Row, state: Row, connection: Connection) -> bool:
        """Deliver an entry, as far as possible now; return whether the batch may go on.

        Raises Problem `unavailable`; then the entry is left to the end of its lease.
        """
        mine = await self._outcomes.ensure_lease(entry, LEASE_LEAST)
        if mine is None:
            return True
        if expiry := find_expiry(mine, state, self._clock()):
            await self._outcomes.dead(mine, expiry)
            return True
        message = await self._prepare(mine)
        return True if message is None else await self._send(mine, message, connection)

    async def _prepare(self, entry: Row) -> EmailMessage | None:
        try:
            message = await self._preparation.prepare(entry)
        except Problem:
            raise
        except Exception as error:  # noqa: BLE001  one message must not hold up all others
            # The words of the error may be those of the message: only its name is kept.
            reason = f"cannot be composed: {type(error).__name__}"
            _log.error("mail %s %s", entry["id"], reason)
            await self._outcomes.dead(entry, reason)
            return None
        if isinstance(message, NotSent):
            end = self._outcomes.suppressed if message.is_permanent else self._outcomes.dead
            await end(entry, message.reason)
            return None
        return message

    async def _send(self, entry: Row, message: EmailMessage, connection: Connection) -> bool:
        try:
            async with self._outcomes.renewing(entry):
                await connection.send(self._sender, entry["recipient_email"], message)
        except Refused as refused:
            return await self._record_refusal(entry, refused)
        except Exception as error:  # noqa: BLE001  whatever it is, the next turn may succeed
            fault = f"{type(error).__name__} while it was handed over"
            _log.error("mail %s: %s", entry["id"], fault)
            return await self._record_refusal(entry, Refused("connect", None, "", fault))
        await self._record_sent(entry)
        return True

    async def _record_sent(self, entry: Row) -> None:
        """Log that a message was sent, however long the store takes: else it is sent twice."""
        for _ in range(RECORD_TRIES):
            try:
                await self._outcomes.sent(entry)
            except Problem:
                await asyncio.sleep(RECORD_SECONDS)
            else:
                return
        _log.error("mail %s was sent, but that could not be recorded", entry["id"])

    async def _record_refusal(self, entry: Row, refused: Refused) -> bool:
        """Record what a refusal means; return whether the batch may go on."""
        now, said = self._clock(), refused.message
        match classify(refused):
            case "bounced":
                await self._outcomes.bounced(entry, said)
            case "refused":
                await self._outcomes.failed(entry, said, None)
            case "greylisted":
                due = next_attempt(entry, now, GREYLISTED_PAUSE)
                await self._outcomes.failed(entry, said, due, "soft_bounced")
            case "rate_limited":
                return await self._stop(entry, "rate_limited", said, now + RATE_LIMIT_PAUSE)
            case "login":
                return await self._stop(entry, "failed", said, now + LOGIN_PAUSE)
            case "retry":
                await self._outcomes.failed(entry, said, next_attempt(entry, now))
                return refused.stage != "connect" and refused.code != CLOSING
        return True

    async def _stop(self, entry: Row, status: str, said: str, until: datetime) -> bool:
        _log.warning("mail is paused until %s: %s", until.isoformat(), said)
        await self._outcomes.paused(entry, status, said, until)
        return False


def next_attempt(entry: Row, now: datetime, least: timedelta = timedelta()) -> datetime | None:
    """Return when to try again, `least` from now or later; `None` to give up."""
    if entry["attempts"] < len(BACKOFF):
        pause = BACKOFF[entry["attempts"]]
    elif retry_for(entry):
        pause = PERSISTENT_PAUSE
    else:
        return None
    return now + max(outbox.with_jitter(pause, 1 - outbox.JITTER), least)


def find_expiry(entry: Row, state: Row, now: datetime) -> str | None:
    """Return why an entry is given up before it is tried, or `None`."""
    if entry["claims"] > CLAIMS_MOST:
        return f"the process ended {CLAIMS_MOST} times while this message was being sent"
    life = max(time_to_live(state, entry["queue"]), retry_for(entry) or timedelta())
    if now >= datetime.fromisoformat(entry["queued_at"]) + life:
        minutes = round(life.total_seconds() / 60)
        hours, rest = divmod(minutes, 60)
        span = f"{hours} hours" if hours > 1 and not rest else f"{minutes} minutes"
        return f"not sent within {span}"
    return None
