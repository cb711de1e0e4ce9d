"""One message on its way: from a claimed entry to what became of it, written in one transaction.

At least once, and as good as once: a message is sent again only where the process ends between
the relay's yes and the commit that says so. No line of the log names an address or a word of mail.
"""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Final, Literal, get_args

from edge_api.domain.actor import Clock
from edge_api.domain.mail.claims import Claims, change_held
from edge_api.domain.mail.compose import Refused, Session, Stage, Transport
from edge_api.domain.mail.entry import Entry, SendState, lay_state, pause, transition
from edge_api.domain.mail.preparation import Preparation, Withheld
from edge_api.domain.mail.unsubscribe import Suppression, is_suppressed
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.store.plan import Condition, Delete, Plan, Store, Update, Where

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

_ledger_log = logging.getLogger(__name__)


class Ledger:
    """Writes the log, and what goes with it. Every method raises Problem `unavailable`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def sent(self, entry: Entry) -> None:
        """Log that the relay has it, whoever holds the entry by then; the entry goes.

        Of an entry that is gone nothing is logged: another has done so, or it was erased together
        with all that tells of its recipient.
        """
        here = Update(EMAIL_OUTBOX, {"lease": entry.lease}, _of(entry), at_least=1)
        try:
            await self._store.run(here, transition(entry, "sent", self._clock()), _drop(entry))
        except Problem as problem:
            if problem.code != "conflict":
                raise
            await self._store.run(_drop(entry))

    async def suppressed(self, entry: Entry, reason: str) -> None:
        """Log why it must not be sent; the entry goes."""
        now = self._clock()
        await self._end(entry, transition(entry, "suppressed", now, reason))

    async def failed(
        self, entry: Entry, reason: str, due: datetime | None, status: str = "failed"
    ) -> None:
        """Log that the relay would not have it; it is due again, or given up without `due`."""
        now = self._clock()
        told = transition(entry, status, now, reason)
        if due is None:
            count = entry.attempts + 1
            said = transition(entry, "dlq", now + _AFTER, f"given up at attempt {count}: {reason}")
            await self._write(entry, _dead(now, attempts=count), told, said)
        else:
            values = {"attempts": entry.attempts + 1, "due_at": spell_instant(due), **_FREE}
            await self._write(entry, values, told)

    async def dead(self, entry: Entry, reason: str) -> None:
        """Give it up without having tried, until somebody has it tried again."""
        now = self._clock()
        await self._write(entry, _dead(now), transition(entry, "dlq", now, reason))

    async def bounced(self, entry: Entry, reason: str) -> None:
        """Log that there is no such address, which is not mailed again.

        The entry goes, or is given up where it must not get lost.
        """
        now = self._clock()
        plans: tuple[Plan, ...] = (transition(entry, "bounced", now, reason),)
        if not await is_suppressed(self._store, entry.recipient):
            found = Suppression(entry.recipient, "bounce", {"message_id": entry.id})
            plans += (found.insert(now),)
        if entry.persists:
            said = transition(entry, "dlq", now + _AFTER, f"given up: {reason}")
            await self._write(entry, _dead(now), *plans, said)
        else:
            await self._end(entry, *plans)

    async def paused(self, entry: Entry, status: str, reason: str, until: datetime) -> None:
        """Have nobody send anything for a while; the attempt does not count.

        When it is over the others go first: it may be this one message that the relay minds.
        """
        now = self._clock()
        await lay_state(self._store, now)
        values = {"due_at": spell_instant(until + BEHIND), **_FREE}
        told = transition(entry, status, now, reason)
        await self._write(entry, values, told, pause(until, now))

    async def _end(self, entry: Entry, *plans: Plan) -> None:
        await self._write(entry, {"lease": entry.lease}, *plans, _drop(entry))

    async def _write(self, entry: Entry, values: Row, *plans: Plan) -> None:
        try:
            await self._store.run(change_held(entry, values), *plans)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            _ledger_log.warning(
                "mail %s: another dispatcher has it; nothing is written here", entry.id
            )


_FREE: Final[Row] = {"lease": None, "claims": 0}
"""What an entry is like that nobody holds."""


def _dead(now: datetime, **more: int) -> Row:
    return {**_FREE, "dead_at": spell_instant(now), **more}


def _drop(entry: Entry) -> Delete:
    return Delete(EMAIL_OUTBOX, _of(entry))


def _of(entry: Entry) -> Where:
    return (Condition("id", "eq", entry.id),)


RATE_LIMIT_PAUSE: Final = timedelta(seconds=60)
LOGIN_PAUSE: Final = timedelta(minutes=5)
RECORD_TRIES: Final = 60
RECORD_SECONDS: Final = 1.0
"""How often, and after how long, it is tried again to write down that a message was sent."""
CLOSING: Final = 421
"""The relay ends the connection (RFC 5321, section 3.8)."""

_log = logging.getLogger(__name__)
BACKOFF: Final = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 480, 1500))
"""How long to wait after the first, second, third and fourth attempt."""
PERSISTENT_PAUSE: Final = timedelta(hours=1)
GREYLISTED_PAUSE: Final = timedelta(minutes=5)
"""What greylisting relays usually want to see (RFC 6647, section 2.1, has the practice)."""
JITTER: Final = 0.2
"""Share by which a pause is longer or shorter, so that not all return at one moment."""
CLAIMS_MOST: Final = 20
"""A message whose claims end so often without a word is thought to end the process."""


class Line:
    """The connection of one batch, opened when the first message needs it."""

    def __init__(self, transport: Transport, stack: AsyncExitStack) -> None:
        self._transport = transport
        self._stack = stack
        self._session: Session | None = None

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Return when the relay has the message. Raises Refused."""
        if self._session is None:
            self._session = await self._stack.enter_async_context(self._transport.session())
        await self._session.send(sender, recipient, message)


class Delivery:
    """Delivers entries from one address; `sender` is that on the envelope."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        preparation: Preparation,
        sender: str,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._preparation = preparation
        self._sender = sender
        self._pause = pause
        self._claims = Claims(store, clock)
        self._ledger = Ledger(store, clock)

    async def deliver(self, entry: Entry, state: SendState, line: Line) -> bool:
        """Bring an entry as far as it gets now; tell whether the batch may go on.

        Raises Problem `unavailable`; then the entry is left to the end of its lease.
        """
        mine = await self._claims.hold(entry)
        if mine is None:
            return True
        doom = find_doom(mine, state, self._clock())
        if doom is not None:
            await self._ledger.dead(mine, doom)
            return True
        message = await self._prepare(mine)
        return True if message is None else await self._send(mine, message, line)

    async def _prepare(self, entry: Entry) -> EmailMessage | None:
        """Return the message, or write down why there is none."""
        try:
            message = await self._preparation.prepare(entry)
        except Problem:
            raise
        except Exception as error:  # noqa: BLE001  one message must not hold up all others
            # The words of the error may be those of the message: only its name is kept.
            reason = f"cannot be composed: {type(error).__name__}"
            _log.error("mail %s %s", entry.id, reason)
            await self._ledger.dead(entry, reason)
            return None
        if isinstance(message, Withheld):
            end = self._ledger.suppressed if message.is_lasting else self._ledger.dead
            await end(entry, message.reason)
            return None
        return message

    async def _send(self, entry: Entry, message: EmailMessage, line: Line) -> bool:
        try:
            async with self._claims.keep(entry):
                await line.send(self._sender, entry.recipient, message)
        except Refused as refused:
            return await self._bear(entry, refused)
        except Exception as error:  # noqa: BLE001  whatever it is, the next turn may succeed
            fault = f"{type(error).__name__} while it was handed over"
            _log.error("mail %s: %s", entry.id, fault)
            return await self._bear(entry, Refused("connect", None, "", fault))
        await self._record_sent(entry)
        return True

    async def _record_sent(self, entry: Entry) -> None:
        """Write down that a message was sent, however long the store takes: else it goes twice."""
        for _ in range(RECORD_TRIES):
            try:
                await self._ledger.sent(entry)
            except Problem:
                await self._pause(RECORD_SECONDS)
            else:
                return
        _log.error("mail %s was sent, which could not be written down", entry.id)

    async def _bear(self, entry: Entry, refused: Refused) -> bool:
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

    async def _stop(self, entry: Entry, status: str, said: str, until: datetime) -> bool:
        _log.warning("mail is paused until %s: %s", until.isoformat(), said)
        await self._ledger.paused(entry, status, said, until)
        return False


def next_attempt(entry: Entry, now: datetime, least: timedelta = timedelta()) -> datetime | None:
    """Return when to try again after one more attempt in vain; `None` to give up.

    `least` is the shortest pause.
    """
    pause = _pause(entry)
    if pause is None:
        return None
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  spreads load, hides nothing
    return now + max(pause * spread, least)


def _pause(entry: Entry) -> timedelta | None:
    if entry.attempts < len(BACKOFF):
        return BACKOFF[entry.attempts]
    return PERSISTENT_PAUSE if _persists_for(entry) else None


def find_doom(entry: Entry, state: SendState, now: datetime) -> str | None:
    """Return why an entry is given up before it is tried; `None` where it is not."""
    if entry.claims > CLAIMS_MOST:
        return f"the process ended {CLAIMS_MOST} times while this message was being sent"
    life = max(state.times_to_live[entry.queue], _persists_for(entry) or timedelta())
    if now >= entry.queued_at + life:
        return f"not sent within {_spell(life)}"
    return None


def _persists_for(entry: Entry) -> timedelta | None:
    return entry.letter.persists_for if entry.letter else None


def _spell(life: timedelta) -> str:
    minutes = round(life.total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} hours" if hours > 1 and not rest else f"{minutes} minutes"
