"""Commands for mail by hand: list what waits, queue again what was given up."""

import asyncio

import pytest

from edge_api.db.problems import Problem
from edge_api.db.tables import AUDIT_LOG
from edge_api.mail.outbox_admin import OutboxAdmin
from tests.edge.edge_process import until
from tests.edge.mail.outbox.post_office import LEAD, OWNER, PostOffice, open_office
from tests.edge.mail.outbox.scripted_relay import Relay


@pytest.fixture
async def dead(office: PostOffice, relay: Relay) -> PostOffice:
    """Return a post office that has given up two messages, with one that waits."""
    relay.by_recipient[OWNER] = "554 5.7.1 policy"
    await office.take_lead()
    await office.take_lead()
    await office.tick()
    relay.by_recipient.clear()
    await office.take_lead()
    return office


async def test_waiting_mail_is_listed_with_its_last_error(dead: PostOffice) -> None:
    """Oldest first, with what the log said last."""
    found = await OutboxAdmin(dead.store, dead.clock).all()

    assert [bool(entry["dead_at"]) for entry in found] == [True, True, False]
    assert [entry["reason"] is None for entry in found] == [False, False, True]
    assert "given up at attempt 1" in found[0]["reason"]


async def test_all_given_up_mail_is_queued_again(dead: PostOffice, relay: Relay) -> None:
    """It counts as new: its attempts and its time begin anew, and the log and the audit say so."""
    dead.clock.move(hours=100)
    count = await OutboxAdmin(dead.store, dead.clock).retry()

    assert count == 2
    rows = [row for row in await dead.log() if row["metadata"]]
    assert [(row["status"], row["metadata"]) for row in rows] == [
        ("pending", {"requeued": True})
    ] * 2
    (entry,) = await dead.rows(AUDIT_LOG)
    assert (entry["actor"], entry["verb"], entry["rows"]) == ("credential:operator", "retry", 2)
    assert {row["attempts"] for row in await dead.outbox()} == {0}
    await dead.tick()
    assert len(relay.taken) == 2  # the third waited for longer than three days


async def test_one_message_is_queued_again(dead: PostOffice, relay: Relay) -> None:
    """By its id."""
    (first, *_) = await dead.outbox()
    assert await OutboxAdmin(dead.store, dead.clock).retry(first["id"].upper()) == 1
    await dead.tick()

    assert len(relay.taken) == 2


@pytest.mark.parametrize("wrong", ["nonsense", "01989f3a-7c00-7000-8000-3d2b1c0a9f8e", "waiting"])
async def test_only_given_up_mail_is_queued_again(dead: PostOffice, wrong: str) -> None:
    """An unknown id, and one that waits anyway, are refused."""
    *_, waiting = await dead.outbox()
    with pytest.raises(Problem) as caught:
        await OutboxAdmin(dead.store, dead.clock).retry(
            waiting["id"] if wrong == "waiting" else wrong
        )

    assert caught.value.code == "not_found"


async def test_waiting_mail_is_sent_once_the_relay_works(office: PostOffice, relay: Relay) -> None:
    """The pause ends, and a later attempt is made now; both begin at the next turn."""
    relay.by_recipient[OWNER] = "451 4.3.0 later"
    await office.take_lead()
    await office.tick()
    relay.by_recipient[OWNER] = "421 4.7.0 too many"
    await office.take_lead()
    await office.tick()
    relay.by_recipient.clear()
    await office.tick()
    assert len(relay.taken) == 0

    admin = OutboxAdmin(office.store, office.clock)
    assert await admin.make_all_due() == 2
    await office.tick()
    assert (len(relay.taken), await office.outbox(), await admin.make_all_due()) == (2, [], 0)


async def test_nothing_to_queue_again_is_nothing(office: PostOffice) -> None:
    """All of none is none."""
    assert await OutboxAdmin(office.store, office.clock).retry() == 0


async def test_an_acknowledgement_that_is_queued_again_is_the_one_of_its_day(
    office: PostOffice, relay: Relay
) -> None:
    """Giving up does not use up what an address may have in a day."""
    polite = open_office(office.store, office.clock, relay, ACKNOWLEDGE_LEADS="true")
    relay.by_recipient[LEAD["email"]] = "554 5.7.1 policy"
    await polite.take_lead()
    await polite.tick()
    relay.by_recipient.clear()
    await OutboxAdmin(polite.store, polite.clock).retry()
    await polite.tick()

    assert (await polite.statuses("acknowledgement"))[-1] == "sent"


async def test_a_message_under_way_is_not_hastened(office: PostOffice, relay: Relay) -> None:
    """The relay has a message and has not answered yet: nobody else may send it; another waits."""
    relay.silent = asyncio.Event()
    await office.take_lead()
    sending = asyncio.create_task(office.tick())
    await until(lambda: len(relay.tried) == 1)
    (claimed,) = await office.outbox()
    await office.take_lead()
    hastened = await OutboxAdmin(office.store, office.clock).make_all_due()
    entries = await office.outbox()
    relay.silent.set()
    await sending
    await office.tick()

    assert (hastened, claimed in entries) == (1, True)
    assert len(relay.taken) == 2
    assert await office.statuses() == ["pending", "pending", "sent", "sent"]
