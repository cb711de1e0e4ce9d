"""What is written when something has become of an entry: each ending is one transaction.

Every one but `sent` is written only while the entry is still ours. What was sent was sent,
whoever holds the entry by then.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.mail.claims import change_held
from edge_api.domain.mail.entry import Entry, transition
from edge_api.domain.mail.state import lay_state, pause
from edge_api.domain.mail.suppression import Suppression, is_suppressed
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.store.plan import Condition, Delete, Plan, Store, Update, Where

_AFTER: Final = timedelta(microseconds=1)
"""Between two rows of one transaction: the log is sorted by time."""

BEHIND: Final = timedelta(seconds=30)
"""How long after a pause the message that brought it is due: the others have been by then."""

_log = logging.getLogger(__name__)


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
            _log.warning("mail %s: another dispatcher has it; nothing is written here", entry.id)


_FREE: Final[Row] = {"lease": None, "claims": 0}
"""What an entry is like that nobody holds."""


def _dead(now: datetime, **more: int) -> Row:
    return {**_FREE, "dead_at": spell_instant(now), **more}


def _drop(entry: Entry) -> Delete:
    return Delete(EMAIL_OUTBOX, _of(entry))


def _of(entry: Entry) -> Where:
    return (Condition("id", "eq", entry.id),)
