"""Events, as they are told: `lead.created` with the published members of the lead."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

import orjson

from edge_api.domain.identity import new_id
from edge_api.domain.leads import PUBLIC
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES
from edge_api.schema.table import Row

LEAD_CREATED: Final = "lead.created"
TEST: Final = "webhook.test"
"""Sent when an operator tries an endpoint; it is about nothing."""


def spell_event(event: str, timestamp: str, data: dict[str, Any]) -> str:
    """Return the body of an event in JSON (Standard Webhooks 1.0, payload structure)."""
    return orjson.dumps({"type": event, "timestamp": timestamp, "data": data}).decode()


def lead_deliveries(lead: Row, endpoint_ids: Iterable[str], now: datetime) -> list[Row]:
    """Return a delivery of a new lead for each endpoint."""
    data = {name: lead[name] for name in PUBLIC}
    given = {
        "event": LEAD_CREATED,
        "subject_id": lead["id"],
        "body": spell_event(LEAD_CREATED, lead["created_at"], data),
    }
    present, make_id = spell_instant(now), partial(new_id, now)
    return [
        WEBHOOK_DELIVERIES.new_row({**given, "endpoint_id": endpoint_id}, present, make_id)
        for endpoint_id in endpoint_ids
    ]
