"""Events for other services: what they say, who signs them, and how deliveries stand."""

import base64
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol

import orjson
from standardwebhooks import Webhook, WebhookVerificationError

from edge_api.domain.actor import new_id
from edge_api.domain.health import Check
from edge_api.domain.leads import PUBLIC
from edge_api.domain.sealing import Wrapping
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row, Table
from edge_api.store.plan import Condition, Order, Read, Store, Where

SECRET_BYTES: Final = 32
SIGNED: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
"""The headers that carry a signature; the first two are signed with the body."""

_ID: Final = re.compile(r"[!-~]{1,255}")
"""Visible ASCII characters, as many as are kept."""


def new_secret() -> str:
    """Return a secret that nobody can guess."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(given: Sequence[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of a message: one signature for each secret that is given."""
    text = body.decode()
    signatures = [Webhook(secret).sign(message_id, at, text) for secret in given]
    values = message_id, str(int(at.timestamp())), " ".join(signatures)
    return dict(zip(SIGNED, values, strict=True))


def is_signed(given: Sequence[str], headers: Mapping[str, str], body: bytes) -> bool:
    """Tell whether one of the secrets signed the message within five minutes of now.

    `headers` are looked up in the spelling of `SIGNED`.
    """
    found = {name: headers.get(name, "") for name in SIGNED}
    if _ID.fullmatch(found["webhook-id"]) is None:
        return False
    return any(_verifies(Webhook(secret), found, body) for secret in given)


def _verifies(webhook: Webhook, headers: dict[str, str], body: bytes) -> bool:
    try:
        webhook.verify(body, headers, json_parse=False)
    except (WebhookVerificationError, ValueError):  # the library chokes on base64 that is none
        return False
    return True


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
