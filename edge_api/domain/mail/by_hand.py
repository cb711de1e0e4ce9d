"""What whoever runs the service does with mail by hand: look at what waits, have it tried again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from edge_api.domain.actor import OPERATOR, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.mail.entry import Entry, read_entry, transition
from edge_api.schema.kinds import parse_uuid, spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.schema.tables import EMAIL_SEND_LOG
from edge_api.store.plan import AffectedBy, Condition, Delete, Order, Read, Store, Update

_DEAD = Condition("dead_at", "is", None, negated=True)


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
        where = (_DEAD,) if entry_id is None else (_DEAD, _identified(entry_id))
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
        where = (_DEAD,) if entry_id is None else (_DEAD, _identified(entry_id))
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
        update = Update(EMAIL_OUTBOX, _fresh(now), (ids, _DEAD), at_least=len(dead))
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
