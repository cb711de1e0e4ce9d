"""Relays that mind one message, think long, or mean somebody else: other mail flows."""

import asyncio

import pytest

from edge_api import outbox as outbox_module
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.mail.outbox_admin import OutboxAdmin
from tests.edge.edge_process import until
from tests.edge.mail.outbox.post_office import OWNER, PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay

POISON = "451 4.7.1 not this message"


async def test_a_message_that_the_relay_refuses_delays_no_other(
    office: PostOffice, relay: Relay
) -> None:
    """It waits by itself, and uses up its own attempts."""
    relay.data_answers.extend([POISON, "250 2.0.0 ok", "250 2.0.0 ok"])
    for _ in range(3):
        await office.take_lead()
    await office.tick()

    assert sorted((await office.statuses())[3:]) == ["sent", "sent", "soft_bounced"]
    (entry,) = await office.outbox()
    assert entry["attempts"] == 1


async def test_a_login_that_one_recipient_needs_stops_nobody(
    office: PostOffice, relay: Relay
) -> None:
    """A relay that carries mail to some addresses alone says so at the recipient."""
    relay.recipient_answers.append("530 5.7.0 authentication required")
    for _ in range(2):
        await office.take_lead()
    await office.tick()

    assert sorted((await office.statuses())[2:]) == ["dlq", "failed", "sent"]


async def test_a_refusal_of_the_sender_counts_against_nobody(
    office: PostOffice, relay: Relay
) -> None:
    """5.1.0 is said of senders too, when a recipient is named."""
    relay.recipient_answers.append("550 5.1.0 sender address rejected")
    await office.take_lead()
    await office.tick()

    assert await office.suppressed() == {}
    assert [row["dead_at"] is None for row in await office.outbox()] == [False]


async def test_a_notification_is_never_dropped(office: PostOffice, relay: Relay) -> None:
    """If the owner's address is refused it is given up, and can be sent once that is fixed."""
    relay.recipient_answers.append("550 5.1.1 no such mailbox")
    for _ in range(2):
        await office.take_lead()
    await office.tick()
    assert (await office.statuses())[2:] == ["bounced", "dlq", "dlq"]
    assert await office.suppressed() == {OWNER: "bounce"}

    await office.allow(OWNER)
    assert await OutboxAdmin(office.store, office.clock).retry() == 2
    await office.tick()
    assert (await office.statuses())[-2:] == ["sent", "sent"]


async def test_given_up_mail_can_be_discarded(office: PostOffice, relay: Relay) -> None:
    """One or all; what still waits stays, and so does the log."""
    relay.recipient_answers.extend(["554 5.7.1 policy", "554 5.7.1 policy"])
    for _ in range(3):
        await office.take_lead()
    await office.tick()
    dead = [row["id"] for row in await office.outbox()]
    await office.take_lead()
    by_hand = OutboxAdmin(office.store, office.clock)

    assert await by_hand.discard(dead[0]) == 1
    assert await by_hand.discard() == 1
    with pytest.raises(Problem):
        await by_hand.discard(dead[0])
    assert [row["dead_at"] for row in await office.outbox()] == [None]
    assert (await office.statuses()).count("dlq") == 2


async def test_a_relay_that_thinks_long_gets_a_message_once(
    office: PostOffice, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed meanwhile, so that nobody else takes the message up."""
    monkeypatch.setattr(outbox_module, "RENEWAL_SECONDS", 0.01)
    relay.silent = asyncio.Event()
    await office.take_lead()
    sending = asyncio.create_task(office.tick())
    await until(lambda: bool(relay.tried))
    for _ in range(3):
        office.clock.move(seconds=100)
        await asyncio.sleep(0.1)
        assert await office.tick() is False
    relay.silent.set()
    await sending

    assert len(relay.taken) == 1
    assert await office.statuses() == ["pending", "sent"]


async def test_only_the_owners_mail_is_worth_a_warning(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """Anybody can have the service send mail to an address that they made up."""
    office = open_office(store, clock, relay, ACKNOWLEDGE_LEADS="true")
    relay.recipient_answers.extend(["250 2.1.5 ok", "554 5.7.1 policy"])
    await office.take_lead()
    await office.tick()
    assert [row["dead_at"] is None for row in await office.outbox()] == [False]
    assert (await office.mailing.check()).state == "pass"

    relay.recipient_answers.append("554 5.7.1 policy")
    clock.move(hours=25)
    await office.take_lead()
    await office.tick()
    assert (await office.mailing.check()).state == "warn"
