"""One message on its way: from a claimed entry to what became of it.

At least once, and as good as once: a message is sent again only where the process ends between
the relay's yes and the commit that says so. No line of the log names an address or a word of mail.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.mail.claims import Claims
from edge_api.domain.mail.entry import Entry
from edge_api.domain.mail.ledger import Ledger
from edge_api.domain.mail.preparation import Preparation, Withheld
from edge_api.domain.mail.replies import judge
from edge_api.domain.mail.state import SendState
from edge_api.domain.mail.transport import Refused, Session, Transport
from edge_api.schema.problems import Problem
from edge_api.store.plan import Store

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
