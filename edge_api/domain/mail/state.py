"""How the sending of mail goes about it: the one row of `email_send_state`, read at each turn.

Administrators change it; the service itself only sets how long it pauses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from edge_api.schema.kinds import spell_instant
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.schema.tables import EMAIL_SEND_STATE
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
