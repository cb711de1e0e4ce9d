"""An entry of the outbox, and the state of the sending: a message that waits, and its plans.

The log has one row for each transition of an entry; the entry's id is its `message_id` there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from edge_api.domain.actor import new_id
from edge_api.domain.mail.compose import LETTERS, Letter, Queue
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.schema.tables import EMAIL_SEND_LOG, EMAIL_SEND_STATE
from edge_api.store.plan import Condition, Insert, Read, Store, Update

READ_STATE = Read(EMAIL_SEND_STATE)


@dataclass(frozen=True, slots=True)
class SendState:
    """What holds for this turn."""

    retry_after_until: datetime | None
    batch_size: int
    send_delay: float
    """Seconds between two messages."""
    times_to_live: Mapping[str, timedelta]
    """By queue, counted from when an entry was queued."""

    def is_paused(self, now: datetime) -> bool:
        """Tell whether nothing is to be sent yet."""
        return self.retry_after_until is not None and now < self.retry_after_until


def state_of(rows: list[Row], now: datetime) -> SendState:
    """Return the state that `READ_STATE` has found; the defaults where the row is missing."""
    row = rows[0] if rows else _default_row(now)
    until = row["retry_after_until"]
    return SendState(
        retry_after_until=datetime.fromisoformat(until) if until else None,
        batch_size=row["batch_size"],
        send_delay=row["send_delay_ms"] / 1000,
        times_to_live={
            "auth": timedelta(minutes=row["auth_email_ttl_minutes"]),
            "transactional": timedelta(minutes=row["transactional_email_ttl_minutes"]),
        },
    )


def pause(until: datetime, now: datetime) -> Update:
    """Return the plan that has every dispatcher wait; the row must be there."""
    values = EMAIL_SEND_STATE.new_values(
        {"retry_after_until": spell_instant(until)}, spell_instant(now)
    )
    return Update(EMAIL_SEND_STATE, values, (Condition("id", "eq", 1),))


async def lay_state(store: Store, now: datetime) -> None:
    """See to it that the row is there. Raises Problem."""
    try:
        await store.run(Insert(EMAIL_SEND_STATE, [_default_row(now)]))
    except Problem as problem:
        if problem.code != "conflict":
            raise


def _default_row(now: datetime) -> Row:
    return EMAIL_SEND_STATE.new_row({}, spell_instant(now), str)


REASON_LONGEST: Final = 1000
"""Characters that the log keeps of why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message that waits to be sent."""

    id: str
    queue: Queue
    template: str
    recipient: str
    subject_id: str
    """The row that it is about."""
    created_at: datetime
    queued_at: datetime
    due_at: datetime
    lease: str | None = None
    claims: int = 0
    """How often it was claimed by somebody who then said no more."""
    attempts: int = 0
    dead_at: datetime | None = None

    @property
    def persists(self) -> bool:
        """Tell whether it must not get lost: it is given up in the end, and never dropped."""
        return self.letter is not None and self.letter.persists_for is not None

    @property
    def letter(self) -> Letter | None:
        """Return what kind of letter it is; `None` for one of another version of the service."""
        return LETTERS.get(self.template)


def new_entry(letter: Letter, recipient: str, subject_id: str, now: datetime) -> Entry:
    """Return an entry that is due at once."""
    return Entry(
        id=new_id(now),
        queue=letter.queue,
        template=letter.template,
        recipient=recipient,
        subject_id=subject_id,
        created_at=now,
        queued_at=now,
        due_at=now,
    )


def read_entry(row: Row) -> Entry:
    """Return the entry that a row of the outbox holds."""
    return Entry(
        id=row["id"],
        queue=row["queue"],
        template=row["template_name"],
        recipient=row["recipient_email"],
        subject_id=row["subject_id"],
        created_at=datetime.fromisoformat(row["created_at"]),
        queued_at=datetime.fromisoformat(row["queued_at"]),
        due_at=datetime.fromisoformat(row["due_at"]),
        lease=row["lease"],
        claims=row["claims"],
        attempts=row["attempts"],
        dead_at=datetime.fromisoformat(row["dead_at"]) if row["dead_at"] else None,
    )


def keep(entry: Entry) -> Insert:
    """Return the plan that puts a new entry into the outbox."""
    given = {
        "id": entry.id,
        "queue": entry.queue,
        "template_name": entry.template,
        "recipient_email": entry.recipient,
        "subject_id": entry.subject_id,
    }
    row = EMAIL_OUTBOX.own_row(given, spell_instant(entry.created_at), str)
    return Insert(EMAIL_OUTBOX, [row])


def transition(
    entry: Entry,
    status: str,
    at: datetime,
    reason: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Insert:
    """Return the plan that logs what has become of an entry, and why."""
    given = {
        "message_id": entry.id,
        "template_name": entry.template,
        "recipient_email": entry.recipient,
        "status": status,
        "error_message": reason[:REASON_LONGEST] if reason else None,
        "metadata": metadata,
    }
    row = EMAIL_SEND_LOG.own_row(given, spell_instant(at), partial(new_id, at))
    return Insert(EMAIL_SEND_LOG, [row])
