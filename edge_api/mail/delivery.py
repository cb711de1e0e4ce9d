"""One message on its way: from a claimed entry to what became of it, written in one transaction.

At least once, and as good as once: a message is sent again only where the process ends between
the relay's yes and the commit that says so. No line of the log names an address or a word of mail.
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
from edge_api.db.types import spell_instant
from edge_api.mail.messages import Refused, Session, Stage, Transport
from edge_api.mail.preparation import Preparation, Withheld
from edge_api.mail.queue import Claims, pause, persists_for, time_to_live, transition
from edge_api.mail.suppressions import Suppression, is_suppressed

Verdict = Literal["retry", "greylisted", "rate_limited", "bounced", "refused", "login"]
"""Later; not before five minutes; all mail later; never, nor to this address; never this message;
later, once an operator has mended the password."""

_EVERY_STAGE: Final[tuple[Stage, ...]] = get_args(Stage)
_ABOUT_US: Final[tuple[Stage, ...]] = ("connect", "login", "sender")
"""Where a relay has seen nothing yet but who we are."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Fits a refusal whose stage, code and enhanced code all fit."""

    verdict: Verdict
    code: str = ".*"
    """A pattern for the three digits; without an answer they are empty."""
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


def judge(refused: Refused) -> Verdict:
    """Return what a refusal means."""
    return next(rule.verdict for rule in _RULES if rule.fits(refused))


_AFTER: Final = timedelta(microseconds=1)
"""Between two rows of one transaction: the log is sorted by time."""

BEHIND: Final = timedelta(seconds=30)
"""How long after a pause the message that brought it is due: the others have been by then."""

_log = logging.getLogger(__name__)


class Ledger(Claims):
    """The claims of one dispatcher, and how each ends: the log, and what goes with it.

    Every method raises Problem `unavailable`.
    """

    async def sent(self, entry: Row) -> None:
        """Log that the relay has it, whoever holds the entry by then; the entry goes.

        Of an entry that is gone nothing is logged: another has done so, or it was erased together
        with all that tells of its recipient.
        """
        unchanged, where = {"lease": entry["lease"]}, outbox.named(entry["id"])
        here = Update(EMAIL_OUTBOX, unchanged, where, at_least=1)
        logged = transition(entry, "sent", self._clock())
        if not await outbox.run_unless_conflict(self._store, here, logged, _drop(entry)):
            await self._store.run(_drop(entry))

    async def suppressed(self, entry: Row, reason: str) -> None:
        """Log why it must not be sent; the entry goes."""
        now = self._clock()
        await self._end(entry, transition(entry, "suppressed", now, reason))

    async def failed(
        self, entry: Row, reason: str, again: datetime | None, status: str = "failed"
    ) -> None:
        """Log that the relay would not have it; it is due again, or given up without `again`."""
        now = self._clock()
        values = outbox.failed(EMAIL_OUTBOX, entry, again, now)
        logged = [transition(entry, status, now, reason)]
        if again is None:
            said = f"given up at attempt {values['attempts']}: {reason}"
            logged.append(transition(entry, "dlq", now + _AFTER, said))
        await self._write(entry, values, *logged)

    async def dead(self, entry: Row, reason: str) -> None:
        """Give it up without having tried, until somebody has it tried again."""
        now = self._clock()
        logged = transition(entry, "dlq", now, reason)
        await self._write(entry, outbox.given_up(EMAIL_OUTBOX, now), logged)

    async def bounced(self, entry: Row, reason: str) -> None:
        """Log that there is no such address, which is not mailed again.

        The entry goes, or is given up where it must not get lost.
        """
        now, address = self._clock(), entry["recipient_email"]
        outbox_entries: tuple[Query, ...] = (transition(entry, "bounced", now, reason),)
        if not await is_suppressed(self._store, address):
            outbox_entries += (
                Suppression(address, "bounce", {"message_id": entry["id"]}).insert(now),
            )
        if persists_for(entry):
            said = transition(entry, "dlq", now + _AFTER, f"given up: {reason}")
            await self._write(entry, outbox.given_up(EMAIL_OUTBOX, now), *outbox_entries, said)
        else:
            await self._end(entry, *outbox_entries)

    async def paused(self, entry: Row, status: str, reason: str, until: datetime) -> None:
        """Have nobody send anything for a while; the attempt does not count.

        When it is over the others go first: it may be this one message that the relay minds.
        """
        now = self._clock()
        values = {**outbox.released(EMAIL_OUTBOX), "due_at": spell_instant(until + BEHIND)}
        pausing = await pause(self._store, until, now)
        await self._write(entry, values, transition(entry, status, now, reason), pausing)

    async def _end(self, entry: Row, *outbox_entries: Query) -> None:
        await self._write(entry, {"lease": entry["lease"]}, *outbox_entries, _drop(entry))

    async def _write(self, entry: Row, values: Row, *outbox_entries: Query) -> None:
        if not await outbox.run_unless_conflict(
            self._store, self.change(entry, values), *outbox_entries
        ):
            _log.warning("mail %s: another dispatcher has it; nothing is written here", entry["id"])


def _drop(entry: Row) -> Delete:
    return Delete(EMAIL_OUTBOX, outbox.named(entry["id"]))


RATE_LIMIT_PAUSE: Final = timedelta(seconds=60)
LOGIN_PAUSE: Final = timedelta(minutes=5)
RECORD_TRIES: Final = 60
RECORD_SECONDS: Final = 1.0
"""How often, and after how long, it is tried again to write down that a message was sent."""
CLOSING: Final = 421
"""The relay ends the connection (RFC 5321, section 3.8)."""

LEASE_LEAST: Final = timedelta(seconds=90)
"""What has to be left of a lease when a message is begun."""
BACKOFF: Final = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 480, 1500))
"""How long to wait after the first, second, third and fourth attempt."""
PERSISTENT_PAUSE: Final = timedelta(hours=1)
GREYLISTED_PAUSE: Final = timedelta(minutes=5)
"""What greylisting relays usually want to see (RFC 6647, section 2.1, has the practice)."""
CLAIMS_MOST: Final = 20
"""A message whose claims end so often without a word is thought to end the process."""


class Line(AsyncExitStack):
    """The connection of one batch, opened when the first message needs it."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport
        self._session: Session | None = None

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Return when the relay has the message. Raises Refused."""
        if self._session is None:
            self._session = await self.enter_async_context(self._transport.session())
        await self._session.send(sender, recipient, message)


class Delivery:
    """Delivers entries from one address; `sender` is that on the envelope."""

    def __init__(self, store: Store, clock: Clock, preparation: Preparation, sender: str) -> None:
        self._clock = clock
        self._preparation = preparation
        self._sender = sender
        self._ledger = Ledger(store, clock)

    async def deliver(self, entry: Row, state: Row, line: Line) -> bool:
        """Bring an entry as far as it gets now; tell whether the batch may go on.

        Raises Problem `unavailable`; then the entry is left to the end of its lease.
        """
        mine = await self._ledger.hold(entry, LEASE_LEAST)
        if mine is None:
            return True
        expiry = find_expiry(mine, state, self._clock())
        if expiry is not None:
            await self._ledger.dead(mine, expiry)
            return True
        message = await self._prepare(mine)
        return True if message is None else await self._send(mine, message, line)

    async def _prepare(self, entry: Row) -> EmailMessage | None:
        """Return the message, or write down why there is none."""
        try:
            message = await self._preparation.prepare(entry)
        except Problem:
            raise
        except Exception as error:  # noqa: BLE001  one message must not hold up all others
            # The words of the error may be those of the message: only its name is kept.
            reason = f"cannot be composed: {type(error).__name__}"
            _log.error("mail %s %s", entry["id"], reason)
            await self._ledger.dead(entry, reason)
            return None
        if isinstance(message, Withheld):
            end = self._ledger.suppressed if message.is_lasting else self._ledger.dead
            await end(entry, message.reason)
            return None
        return message

    async def _send(self, entry: Row, message: EmailMessage, line: Line) -> bool:
        try:
            async with self._ledger.keep(entry):
                await line.send(self._sender, entry["recipient_email"], message)
        except Refused as refused:
            return await self._bear(entry, refused)
        except Exception as error:  # noqa: BLE001  whatever it is, the next turn may succeed
            fault = f"{type(error).__name__} while it was handed over"
            _log.error("mail %s: %s", entry["id"], fault)
            return await self._bear(entry, Refused("connect", None, "", fault))
        await self._record_sent(entry)
        return True

    async def _record_sent(self, entry: Row) -> None:
        """Write down that a message was sent, however long the store takes: else it goes twice."""
        for _ in range(RECORD_TRIES):
            try:
                await self._ledger.sent(entry)
            except Problem:
                await asyncio.sleep(RECORD_SECONDS)
            else:
                return
        _log.error("mail %s was sent, which could not be written down", entry["id"])

    async def _bear(self, entry: Row, refused: Refused) -> bool:
        """Write down what a refusal means; tell whether the batch may go on."""
        now, said = self._clock(), refused.sentence
        match judge(refused):
            case "bounced":
                await self._ledger.bounced(entry, said)
            case "refused":
                await self._ledger.failed(entry, said, None)
            case "greylisted":
                due = next_attempt(entry, now, GREYLISTED_PAUSE)
                await self._ledger.failed(entry, said, due, "soft_bounced")
            case "rate_limited":
                return await self._stop(entry, "rate_limited", said, now + RATE_LIMIT_PAUSE)
            case "login":
                return await self._stop(entry, "failed", said, now + LOGIN_PAUSE)
            case "retry":
                await self._ledger.failed(entry, said, next_attempt(entry, now))
                return refused.stage != "connect" and refused.code != CLOSING
        return True

    async def _stop(self, entry: Row, status: str, said: str, until: datetime) -> bool:
        _log.warning("mail is paused until %s: %s", until.isoformat(), said)
        await self._ledger.paused(entry, status, said, until)
        return False


def next_attempt(entry: Row, now: datetime, least: timedelta = timedelta()) -> datetime | None:
    """Return when to try again after one more attempt in vain; `None` to give up.

    `least` is the shortest pause.
    """
    if entry["attempts"] < len(BACKOFF):
        pause = BACKOFF[entry["attempts"]]
    elif persists_for(entry):
        pause = PERSISTENT_PAUSE
    else:
        return None
    return now + max(outbox.with_jitter(pause, 1 - outbox.JITTER), least)


def find_expiry(entry: Row, state: Row, now: datetime) -> str | None:
    """Return why an entry is given up before it is tried; `None` where it is not."""
    if entry["claims"] > CLAIMS_MOST:
        return f"the process ended {CLAIMS_MOST} times while this message was being sent"
    life = max(time_to_live(state, entry["queue"]), persists_for(entry) or timedelta())
    if now >= datetime.fromisoformat(entry["queued_at"]) + life:
        return f"not sent within {_spell(life)}"
    return None


def _spell(life: timedelta) -> str:
    minutes = round(life.total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} hours" if hours > 1 and not rest else f"{minutes} minutes"
