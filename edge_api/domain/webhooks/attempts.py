"""What is written about deliveries: that somebody has claimed them, and what came of it.

A claim lasts for a lease; whoever ends in between has claimed in vain, and the delivery is tried
again under the same id.
"""

import secrets
from datetime import datetime, timedelta
from typing import Final

from edge_api.domain.actor import SERVICE
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.webhooks.messenger import Answer
from edge_api.domain.webhooks.schedule import next_attempt
from edge_api.domain.webhooks.standing import ENABLED, WAITING
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.schema.table import Row
from edge_api.store.plan import (
    AffectedBy,
    Condition,
    Delete,
    Order,
    Plan,
    Read,
    Store,
    Update,
    Where,
)

LEASE: Final = timedelta(seconds=60)
"""Four times as long as an attempt may take."""
AT_ONCE: Final = 8
"""How many deliveries to one endpoint are under way together."""
GONE: Final = "it answered 410 Gone"


async def claim(store: Store, endpoint_id: str, now: datetime) -> list[Row]:
    """Return deliveries that are due at an endpoint and are ours alone for the lease.

    Others may have read the same rows as due: the update meets those that nobody else has met.
    Raises Problem.
    """
    due = (WAITING, Condition("due_at", "lte", spell_instant(now)))
    where = (*due, Condition("endpoint_id", "eq", endpoint_id))
    reading = Read(WEBHOOK_DELIVERIES, ("id",), where, (Order("due_at"),), AT_ONCE)
    (found,) = await store.run(reading)
    if not found.rows:
        return []
    ids = tuple(row["id"] for row in found.rows)
    values = {"lease": secrets.token_hex(16), "due_at": spell_instant(now + LEASE)}
    (claimed,) = await store.run(
        Update(WEBHOOK_DELIVERIES, values, (*due, Condition("id", "in", ids)))
    )
    return claimed.rows


def settle(delivery: Row, answer: Answer, now: datetime) -> tuple[Plan, ...]:
    """Return what is to be written of an attempt, if the delivery is still claimed for it."""
    if answer.is_taken:
        return (Delete(WEBHOOK_DELIVERIES, _ours(delivery)),)
    if answer.is_refused_for_good:
        return disable(delivery["endpoint_id"], now)
    failures = delivery["attempts"] + 1
    again = next_attempt(failures, answer.retry_after, now)
    values = {
        "attempts": failures,
        "last_answer": answer.sentence,
        "lease": None,
        "due_at": spell_instant(again or now),
        "dead_at": None if again else spell_instant(now),
    }
    return (Update(WEBHOOK_DELIVERIES, values, _ours(delivery)),)


def disable(endpoint_id: str, now: datetime) -> tuple[Plan, ...]:
    """Return the plans that tell an endpoint nothing more, and give up what waits for it."""
    present = spell_instant(now)
    values = {"disabled_at": present, "disabled_for": GONE}
    where = (Condition("id", "eq", endpoint_id), ENABLED)
    waiting = (Condition("endpoint_id", "eq", endpoint_id), WAITING)
    entry = Change("disable", WEBHOOK_ENDPOINTS, AffectedBy(0), ("id",))
    return (
        Update(WEBHOOK_ENDPOINTS, values, where),
        _give_up(waiting, present),
        audit_entry(SERVICE, entry, now),
    )


async def tidy(store: Store, now: datetime) -> None:
    """Give up what waits for disabled endpoints, and forget what waits for removed ones.

    Such rows come of a lead that was stored in the moment in which its endpoint went.
    Raises Problem.
    """
    present = spell_instant(now)
    (endpoints,) = await store.run(Read(WEBHOOK_ENDPOINTS, ("id", "disabled_at")))
    known = tuple(row["id"] for row in endpoints.rows)
    disabled = tuple(row["id"] for row in endpoints.rows if row["disabled_at"])
    stray = (WAITING, Condition("endpoint_id", "in", known, negated=True))
    stuck = (WAITING, Condition("endpoint_id", "in", disabled))
    for where, mend in (
        (stray, Delete(WEBHOOK_DELIVERIES, stray)),
        (stuck, _give_up(stuck, present)),
    ):
        (found,) = await store.run(Read(WEBHOOK_DELIVERIES, ("id",), where, limit=1))
        if found.rows:  # nothing is written for nothing
            await store.run(mend)


def _give_up(where: Where, present: str) -> Update:
    values = {"dead_at": present, "lease": None, "last_answer": "the endpoint is disabled"}
    return Update(WEBHOOK_DELIVERIES, values, where)


def _ours(delivery: Row) -> Where:
    own = Condition("id", "eq", delivery["id"])
    return own, WAITING, Condition("lease", "eq", delivery["lease"])
