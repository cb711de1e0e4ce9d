"""How mail stands: whether it flows, for readiness, and what is done with it by hand.

Leads are taken whatever happens to mail. It says states and no addresses: anybody may read it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from edge_api.domain.actor import OPERATOR, Change, Clock, audit_entry
from edge_api.domain.health import Check
from edge_api.domain.mail.claims import LEASE
from edge_api.domain.mail.compose import LETTERS
from edge_api.domain.mail.dispatcher import Dispatcher
from edge_api.domain.mail.entry import (
    READ_STATE,
    Entry,
    SendState,
    read_entry,
    state_of,
    transition,
)
from edge_api.domain.mail.outbox import MailRules
from edge_api.domain.mail.unsubscribe import read_suppression
from edge_api.schema.kinds import parse_uuid, spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.schema.tables import EMAIL_SEND_LOG
from edge_api.store.plan import AffectedBy, Condition, Delete, Order, Outcome, Read, Store, Update

_ALIVE = Condition("dead_at", "is", None)
_DEAD = Condition("dead_at", "is", None, negated=True)
_LOST = Condition(
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
            sentences = [*self._settings(), *await self._rows(), *self._heartbeat()]
        except Problem:
            return Check("warn", "the state of mail cannot be read")
        return Check("warn", "; ".join(sentences)) if sentences else Check("pass")

    def _settings(self) -> Iterator[str]:
        if self.rules.configured and self.rules.owner is None:
            yield "mail has a relay, but nobody to tell of leads: set OWNER_EMAIL"

    async def _rows(self) -> Sequence[str]:
        now = self.clock()
        owner = self.rules.owner or ""
        found, dead, suppressed = await self.store.run(
            READ_STATE, _any(_DEAD, _LOST), read_suppression(owner)
        )
        state = state_of(found.rows, now)
        late = await self.store.run(*(_late(queue, state, now) for queue in state.times_to_live))
        return [*_judge_state(state, now), *_judge_rows(dead, suppressed, late)]

    def _heartbeat(self) -> Iterator[str]:
        beat = self.dispatcher and self.dispatcher.beat
        if beat and self.clock() - beat > LEASE:
            yield "the dispatcher of mail does not move: restart the service"


def _judge_state(state: SendState, now: datetime) -> Iterator[str]:
    if state.is_paused(now) and state.retry_after_until is not None:
        until = spell_instant(state.retry_after_until)
        yield f"mail is paused until {until}: email_send_log says why"


def _judge_rows(dead: Outcome, suppressed: Outcome, late: Sequence[Outcome]) -> Iterator[str]:
    if dead.rows:
        yield (
            "mail was given up: python -m edge_api mail list says why, mail retry sends it again"
        )
    if any(outcome.rows for outcome in late):
        yield "mail waits for longer than half of its time to live: look at the relay"
    if suppressed.rows:
        yield "the owner's address is suppressed: delete its row in suppressed_emails"


def _late(queue: str, state: SendState, now: datetime) -> Read:
    since = spell_instant(now - state.times_to_live[queue] / 2)
    return _any(_ALIVE, Condition("queue", "eq", queue), Condition("queued_at", "lte", since))


def _any(*where: Condition) -> Read:
    return Read(EMAIL_OUTBOX, ("id",), where, limit=1)


_GIVEN_UP = Condition("dead_at", "is", None, negated=True)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry of the outbox, with the last that was logged of it."""

    entry: Entry
    reason: str | None


class MailByHand:
    """The outbox of one store, before a person."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def all(self) -> list[Waiting]:
        """Return all that waits or was given up, the oldest first."""
        (outcome,) = await self._store.run(Read(EMAIL_OUTBOX, order=(Order("queued_at"),)))
        entries = [read_entry(row) for row in outcome.rows]
        reasons = await self._read_reasons(entries)
        return [Waiting(entry, reasons.get(entry.id)) for entry in entries]

    async def retry(self, entry_id: str | None = None) -> int:
        """Queue what was given up again, one entry or all; return how many.

        Raises Problem `not_found` for an id that was not given up, `conflict` where it changed
        meanwhile.
        """
        where = (_GIVEN_UP,) if entry_id is None else (_GIVEN_UP, _identified(entry_id))
        (outcome,) = await self._store.run(Read(EMAIL_OUTBOX, where=where))
        dead = [read_entry(row) for row in outcome.rows]
        if dead:
            await self._requeue(dead)
        elif entry_id is not None:
            raise _missing(entry_id)
        return len(dead)

    async def discard(self, entry_id: str | None = None) -> int:
        """Forget what was given up, one entry or all; return how many. The log still tells of it.

        Raises Problem `not_found` for an id that was not given up.
        """
        where = (_GIVEN_UP,) if entry_id is None else (_GIVEN_UP, _identified(entry_id))
        change = Change("discard", EMAIL_OUTBOX, AffectedBy(0), ("id",))
        (gone, _) = await self._store.run(
            Delete(EMAIL_OUTBOX, where), audit_entry(OPERATOR, change, self._clock())
        )
        if not gone.rows and entry_id is not None:
            raise _missing(entry_id)
        return len(gone.rows)

    async def _requeue(self, dead: Sequence[Entry]) -> None:
        now = self._clock()
        ids = Condition("id", "in", tuple(entry.id for entry in dead))
        update = Update(EMAIL_OUTBOX, _fresh(now), (ids, _GIVEN_UP), at_least=len(dead))
        told = (transition(entry, "pending", now, metadata={"requeued": True}) for entry in dead)
        change = Change("retry", EMAIL_OUTBOX, AffectedBy(0), ("id",))
        await self._store.run(update, *told, audit_entry(OPERATOR, change, now))

    async def _read_reasons(self, entries: Sequence[Entry]) -> dict[str, str | None]:
        ids = Condition("message_id", "in", tuple(entry.id for entry in entries))
        order = (Order("created_at"), Order("id"))
        columns = ("message_id", "error_message", "created_at", "id")
        (outcome,) = await self._store.run(Read(EMAIL_SEND_LOG, columns, (ids,), order))
        return {row["message_id"]: row["error_message"] for row in outcome.rows}


def _fresh(now: datetime) -> Row:
    """Return what an entry is like that has not been tried."""
    present = spell_instant(now)
    cleared = {"dead_at": None, "lease": None, "claims": 0, "attempts": 0}
    return {**cleared, "queued_at": present, "due_at": present}


def _identified(entry_id: str) -> Condition:
    try:
        return Condition("id", "eq", parse_uuid(entry_id))
    except ValueError:
        raise _missing(entry_id) from None


def _missing(entry_id: str) -> Problem:
    return Problem(
        "not_found", f"No mail {entry_id} was given up; python -m edge_api mail list shows what was"
    )
