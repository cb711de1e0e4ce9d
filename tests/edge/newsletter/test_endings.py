"""Bounces, complaints and erasure end subscriptions, each on its own terms."""

import json
import time
from base64 import b64decode, b64encode
from hmac import digest as hmac_digest
from typing import Any

import pytest

from edge_api.auth.actor import OPERATOR, new_id
from edge_api.auth.erasure import Privacy
from edge_api.db.internal_tables import EMAIL_OUTBOX, ERASED_ROWS
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Insert, Store
from edge_api.db.tables import EMAIL_SEND_LOG, IDEMPOTENCY_KEYS
from edge_api.db.types import format_instant
from edge_api.mail.messages import CONFIRMATION
from edge_api.mail.queue import new_entry
from edge_api.newsletter.subscribers import Subscribers
from tests.edge.conftest import EMAIL_HOOK_SECRET
from tests.edge.mail.outbox.conftest import relay
from tests.edge.mail.outbox.post_office import open_office
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.edge.newsletter.conftest import ANN, SECRET_KEY, Newsletter, TickingClock

__all__ = ["relay"]
pytestmark = pytest.mark.each_engine
NEWSLETTER_ON = {
    "NEWSLETTER": "on",
    "NEWSLETTER_FROM": "post@journal-keepers.net",
    "NEWSLETTER_POSTAL_ADDRESS": "1 Street, Town",
}


@pytest.fixture
def clock() -> TickingClock:
    """Return a clock at noon of 1 June 2026."""
    return TickingClock()


def signed(body: bytes) -> dict[str, str]:
    """Return the headers of an event (Standard Webhooks)."""
    stamp = str(int(time.time()))
    key = b64decode(EMAIL_HOOK_SECRET.removeprefix("whsec_"))
    mark = hmac_digest(key, f"msg_{stamp}.{stamp}.".encode() + body, "sha256")
    return {
        "Content-Type": "application/json",
        "webhook-id": f"msg_{stamp}",
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{b64encode(mark).decode()}",
    }


@pytest.mark.parametrize(
    ("event", "bounce", "outcome"),
    [
        ("email.bounced", "permanent", ("bounced", "bounce")),
        ("email.bounced", "transient", ("active", None)),
        ("email.complained", None, ("ended", "complaint")),
        ("email.unsubscribed", None, ("ended", "link")),
    ],
)
async def test_reports_of_a_mail_service(
    newsletter: Newsletter, event: str, bounce: str | None, outcome: tuple[str, str | None]
) -> None:
    """The address of another subscriber stays."""
    await newsletter.add()
    await newsletter.add("ben@readers-club.net")
    data = {"email": "Ann@Readers-Club.net", **({"bounce_type": bounce} if bounce else {})}
    body = json.dumps({"type": event, "data": data}).encode()
    async with newsletter.edge.ask(
        "POST", "/api/public/hooks/email", data=body, headers=signed(body)
    ) as answer:
        assert answer.status == 200, await answer.text()
    row = await newsletter.subscriber()
    assert (row["status"], row["ended_by"]) == outcome
    assert (await newsletter.subscriber("ben@readers-club.net"))["status"] == "active"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("5.1.1", "bounced"),
        ("5.1.2", "bounced"),
        ("5.1.3", "bounced"),
        ("5.1.6", "bounced"),
        ("5.1.10", "bounced"),
        ("5.1.4", "pending"),
        ("5.1.5", "pending"),
        ("5.7.1", "pending"),
        ("5.2.2", "pending"),
    ],
)
async def test_refusals_of_a_relay(
    store: Store,
    clock: Any,
    relay: Relay,
    code: str,
    status: str,
) -> None:
    """Only what says that the address itself is wrong ends its subscription."""
    office = open_office(store, clock, relay, **NEWSLETTER_ON)
    now = office.clock()
    row = SUBSCRIBERS.new_row(
        {"email": ANN, "token": "0" * 64}, format_instant(now), lambda: new_id(now)
    )
    entry = new_entry(CONFIRMATION, ANN, row["id"], now)
    await office.store.run(Insert(SUBSCRIBERS, [row]), Insert(EMAIL_OUTBOX, [entry]))
    relay.recipient_answers.append(f"550 {code} no")
    await office.tick()
    (found,) = await office.rows(SUBSCRIBERS)
    assert found["status"] == status
    assert not relay.recipient_answers
    assert await office.outbox() == [] or status == "pending"


async def test_erasing_leaves_nothing_but_a_digest(newsletter: Newsletter) -> None:
    """The row, what waits and the count of confirmations go, also of an address without a row."""
    await newsletter.ask()
    store, clock = newsletter.edge.service.store, newsletter.clock
    privacy = Privacy(store, clock, SECRET_KEY.encode())
    found = await privacy.find("Ann@Readers-Club.net")
    assert len(found[SUBSCRIBERS]) == len(found[IDEMPOTENCY_KEYS]) == 1
    await privacy.erase(ANN, OPERATOR)
    for table in (SUBSCRIBERS, IDEMPOTENCY_KEYS, EMAIL_OUTBOX, EMAIL_SEND_LOG):
        assert await newsletter.rows(table) == []
    assert await newsletter.deliver() == []
    assert "ann" not in str(await newsletter.rows(ERASED_ROWS))

    await newsletter.ask()
    clock.move(days=8)
    await newsletter.edge.service[Subscribers].forget_pending()
    assert await newsletter.rows(SUBSCRIBERS) == []
    assert len((await privacy.find(ANN))[IDEMPOTENCY_KEYS]) == 1
    await privacy.erase(ANN, OPERATOR)
    assert await newsletter.rows(IDEMPOTENCY_KEYS) == []


async def test_what_was_erased_is_erased_again_after_a_restore(newsletter: Newsletter) -> None:
    """A restored row is known by its key, and the restored digest by its own."""
    await newsletter.ask()
    store, clock = newsletter.edge.service.store, newsletter.clock
    before: dict[Any, Any] = {
        table: await newsletter.rows(table) for table in (SUBSCRIBERS, IDEMPOTENCY_KEYS)
    }
    await Privacy(store, clock, SECRET_KEY.encode()).erase(ANN, OPERATOR)
    await store.run(*(Insert(table, rows) for table, rows in before.items()))
    await Privacy(store, clock).erase(None, OPERATOR)
    for table in before:
        assert await newsletter.rows(table) == []
