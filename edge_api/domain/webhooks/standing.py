"""How things stand: which endpoints are told, with which secrets, and what did not arrive."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from edge_api.domain.health import Check
from edge_api.domain.sealing import Wrapping
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row, Table
from edge_api.store.plan import Condition, Order, Read, Store, Where

PURPOSE: Final = "webhook secrets"
"""What the secrets of endpoints are wrapped for."""

WAITING: Final = Condition("dead_at", "is", None)
GIVEN_UP: Final = Condition("dead_at", "is", None, negated=True)
"""Of a delivery."""
ENABLED: Final = Condition("disabled_at", "is", None)
DISABLED: Final = Condition("disabled_at", "is", None, negated=True)
"""Of an endpoint."""


async def enabled(store: Store) -> list[Row]:
    """Return the endpoints that are told of events, oldest first. Raises Problem."""
    plan = Read(WEBHOOK_ENDPOINTS, where=(ENABLED,), order=(Order("id"),))
    (outcome,) = await store.run(plan)
    return outcome.rows


async def find(store: Store, endpoint_id: str) -> Row | None:
    """Return an endpoint. Raises Problem where the store cannot be read."""
    where = (Condition("id", "eq", endpoint_id),)
    (outcome,) = await store.run(Read(WEBHOOK_ENDPOINTS, where=where))
    return outcome.rows[0] if outcome.rows else None


async def count(store: Store, table: Table, where: Where) -> int:
    """Return how many rows match. Raises Problem."""
    (outcome,) = await store.run(Read(table, (table.key,), where, limit=1, counted=True))
    return outcome.total or 0


async def look(store: Store) -> Check:
    """Return whether there is anything that an operator should mend."""
    try:
        sentence = await _trouble(store)
    except Problem:
        sentence = "it is not known how webhooks stand"
    return Check("warn" if sentence else "pass", sentence)


async def _trouble(store: Store) -> str:
    """Return what is wrong, in a sentence; empty where that is nothing. Raises Problem."""
    disabled, given_up = await store.run(
        Read(WEBHOOK_ENDPOINTS, ("id",), (DISABLED,), limit=1),
        Read(WEBHOOK_DELIVERIES, ("id",), (GIVEN_UP,), limit=1),
    )
    found = [
        *(["a webhook endpoint is disabled"] if disabled.rows else []),
        *(["events for webhooks were given up"] if given_up.rows else []),
    ]
    return f"{' and '.join(found)}: see python -m edge_api webhooks list" if found else ""


def secrets_of(endpoint: Row, wrapping: Wrapping, now: datetime) -> Sequence[str]:
    """Return the secrets that sign now, the present one first. Raises Problem `unavailable`."""
    wrapped = [endpoint["secret"]]
    if (endpoint["former_until"] or "") > spell_instant(now):
        wrapped.append(endpoint["former_secret"])
    try:
        return [wrapping.unwrap(each).decode() for each in wrapped]
    except ValueError:
        sentence = "its secret was kept with another SECRET_KEY: rotate it"
        raise Problem("unavailable", sentence) from None
