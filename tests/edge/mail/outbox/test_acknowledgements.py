"""Acknowledgements of leads: rarely sent, so that nobody has us write to somebody else."""

import pytest

from edge_api.db.query import Store
from edge_api.db.tables import IDEMPOTENCY_KEYS
from tests.edge.mail.outbox.post_office import LEAD, OWNER, PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay

READER = LEAD["email"]


@pytest.fixture
async def polite(store: Store, clock: TickingClock, relay: Relay) -> PostOffice:
    """Return a post office that acknowledges leads, three in an hour at the most."""
    office = open_office(
        store, clock, relay, ACKNOWLEDGE_LEADS="true", ACKNOWLEDGEMENTS_PER_HOUR="3"
    )
    await office.change_state(send_delay_ms=0, batch_size=100)
    return office


async def reasons(office: PostOffice) -> list[str]:
    """Return why messages were suppressed."""
    return [row["error_message"] for row in await office.log() if row["status"] == "suppressed"]


async def test_an_acknowledgement_has_a_link_to_unsubscribe(
    polite: PostOffice, relay: Relay
) -> None:
    """It has nothing of what was written, and one link for an address, the same each time."""
    await polite.take_lead(message="Sesame")
    await polite.tick()
    polite.clock.move(hours=25)
    await polite.take_lead(email=READER.upper())
    await polite.tick()

    first, second = (taken for taken in relay.taken if taken.recipient != OWNER)
    assert first.message["List-Unsubscribe"] == second.message["List-Unsubscribe"]
    assert "Sesame" not in first.message.as_string()
    assert first.message["Auto-Submitted"] == "auto-replied"


async def test_an_address_gets_one_acknowledgement_a_day(polite: PostOffice, relay: Relay) -> None:
    """In whatever case it is spelled; a day later it has another."""
    await polite.take_lead()
    await polite.take_lead(email=READER.upper())
    await polite.tick()
    assert relay.recipients.count(READER) == 1
    assert await reasons(polite) == ["this address had an acknowledgement within 24 hours"]
    polite.clock.move(hours=24)
    await polite.take_lead()
    await polite.tick()

    assert relay.recipients.count(READER) == 2


async def test_a_failed_attempt_does_not_use_up_the_day(polite: PostOffice, relay: Relay) -> None:
    """The message that was refused for now is the one of the day, and goes when tried again."""
    relay.recipient_answers.extend(["250 2.0.0 ok", "451 4.3.0 later"])
    await polite.take_lead()
    await polite.tick()
    await polite.tick_at(minutes=6)

    assert (await polite.statuses("acknowledgement"))[-1] == "sent"


async def test_acknowledgements_are_limited_by_the_hour(polite: PostOffice) -> None:
    """Beyond the cap nobody is thanked until the hour is over; the owner is notified of all."""
    for number in range(5):
        await polite.take_lead(email=f"reader-{number}@readers-club.net")
        await polite.tick()
    assert (await polite.statuses("acknowledgement")).count("sent") == 3
    assert (await polite.statuses("notification")).count("sent") == 5
    assert await reasons(polite) == ["3 acknowledgements were sent within an hour"] * 2
    polite.clock.move(minutes=61)
    await polite.take_lead(email="late@readers-club.net")
    await polite.tick()

    assert (await polite.statuses("acknowledgement"))[-1] == "sent"


@pytest.mark.parametrize("changes", [{"spam_score": 3}, {"spam_score": 99}])
async def test_spam_gets_no_acknowledgement(
    polite: PostOffice, relay: Relay, changes: dict[str, int]
) -> None:
    """The owner is notified of it, marked as spam; the address in it gets nothing."""
    await polite.take_lead(**changes)
    await polite.tick()

    assert relay.recipients == [OWNER]
    assert await reasons(polite) == ["the lead looks like spam"]


async def test_the_store_does_not_reveal_acknowledged_addresses(polite: PostOffice) -> None:
    """The acknowledgement of the day is recorded by a keyed hash."""
    await polite.take_lead()
    await polite.tick()

    (row,) = await polite.rows(IDEMPOTENCY_KEYS)
    assert "readers-club" not in str(row)
