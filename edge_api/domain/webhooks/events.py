"""Events: `lead.created` with the published members of the lead, what carries it, the answer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol

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


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt."""

    status: int | None
    """`None` where no answer came."""
    sentence: str
    """Says what happened, without a word of what was sent or answered: it may be logged."""
    retry_after: str = ""
    """That header as it came (RFC 9110, section 10.2.3)."""

    @property
    def is_taken(self) -> bool:
        """Tell whether the event has arrived."""
        return self.status is not None and HTTPStatus(200) <= self.status < HTTPStatus(300)

    @property
    def is_refused_for_good(self) -> bool:
        """Tell whether the address wants no event any more."""
        return self.status == HTTPStatus.GONE


class Messenger(Protocol):
    """Posts what it is given to addresses that it may connect to."""

    async def check(self, url: str) -> None:
        """Return if `url` can be told anything at all. Raises Problem `invalid` that says why not.

        A name that leads nowhere yet is no fault: it is looked up again for each attempt.
        """

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Return what came of sending the body once; whatever happens is an answer."""
