"""New leads, sent to real receivers: once each, signed, and again until they have arrived."""

import asyncio
import json
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from edge_api import outbox as outbox_module
from edge_api.db.query import Store
from edge_api.leads.service import Sender
from edge_api.webhooks import dispatcher as tell_module
from edge_api.webhooks.dispatcher import LEASE, RETRY_DELAYS
from tests.edge.domain.conftest import MovableClock, WatchedStore
from tests.edge.engines import Opener
from tests.edge.webhooks.conftest import (
    Office,
    Receiver,
    ReceiverMaker,
    make_office,
    read_lead,
)


async def fail(office: Office) -> dict[str, object]:
    """Let one attempt be made, and return the delivery, which must have failed."""
    await office.dispatcher.run_once()
    (row,) = await office.deliveries()
    return row


def pause(office: Office, row: dict[str, object]) -> timedelta:
    """Return how long a delivery waits from now on."""
    return datetime.fromisoformat(str(row["due_at"])) - office.clock()


async def test_a_lead_is_sent_with_its_published_members(
    office: Office, receiver: Receiver
) -> None:
    """In JSON, with the instant in which it was stored, and then nothing of it is kept."""
    await office.endpoints.add(receiver.url)
    lead = await office.lead("Hello \u4f60\u597d", notes="none")
    assert receiver.received == []

    await office.dispatcher.run_once()

    (received,) = receiver.received
    assert received.headers["content-type"] == "application/json"
    assert json.loads(received.body) == {
        "type": "lead.created",
        "timestamp": lead["created_at"],
        "data": lead,
    }
    assert set(lead) == {"id", "name", "email", "budget_tier", "message", "created_at"}
    assert await office.deliveries() == []
    await office.dispatcher.run_once()
    assert len(receiver.received) == 1


async def test_a_lead_goes_to_every_endpoint_with_an_id_for_each(
    office: Office, make_receiver: ReceiverMaker
) -> None:
    """One that is away holds the other up in nothing."""
    first, second = await make_receiver(), await make_receiver()
    second.status = 500
    for each in (first, second):
        await office.endpoints.add(each.url)
    for number in range(20):
        await office.lead(f"Hello {number}")

    await office.dispatcher.run_once()

    assert len(set(first.ids)) == len(set(second.ids)) == len(second.ids) == 20
    assert set(first.ids).isdisjoint(second.ids)
    waiting = {each["url"]: each["waiting"] for each in await office.endpoints.all()}
    assert waiting == {first.url: 0, second.url: 20}


async def test_spam_is_not_sent(office: Office, receiver: Receiver) -> None:
    """A lead with a filled honeypot is stored, and no more."""
    await office.endpoints.add(receiver.url)
    await office.lead("Buy", _gotcha="x")

    assert await office.deliveries() == []


async def test_without_endpoints_nothing_is_kept(office: Office) -> None:
    """A lead is a lead."""
    await office.lead()
    await office.dispatcher.run_once()

    assert await office.deliveries() == []


async def test_a_replayed_lead_is_sent_once(office: Office, receiver: Receiver) -> None:
    """A request that is repeated with its key stores nothing, and tells nothing."""
    await office.endpoints.add(receiver.url)
    for _ in range(3):
        await office.leads.create(read_lead("Hello"), Sender(None, "192.0.2.1"), "a-key")
    await office.dispatcher.run_once()

    assert len(receiver.received) == 1


async def test_failures_are_tried_again_ever_later_and_then_given_up(
    office: Office, receiver: Receiver
) -> None:
    """Ten attempts with the same id and the same bytes, a new signature for each."""
    await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status = 500
    for number, least in enumerate(RETRY_DELAYS, start=1):
        row = await fail(office)
        assert (row["attempts"], row["last_answer"]) == (number, "answered 500")
        assert row["dead_at"] is None
        assert least <= pause(office, row) <= least * 1.2
        office.clock.now = datetime.fromisoformat(str(row["due_at"])) - timedelta(seconds=1)
        await office.dispatcher.run_once()
        assert len(receiver.received) == number, "not before its time"
        office.clock.move(seconds=1)

    row = await fail(office)
    assert row["dead_at"] is not None
    office.clock.move(days=30)
    await office.dispatcher.run_once()
    assert len(receiver.received) == len(RETRY_DELAYS) + 1 == 10
    assert len({(each.id, each.body) for each in receiver.received}) == 1
    assert len({each.headers["webhook-signature"] for each in receiver.received}) == 10


async def test_given_up_deliveries_are_queued_again_by_hand(
    office: Office, receiver: Receiver
) -> None:
    """It begins anew, and arrives."""
    keyed = await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status = 500
    for _ in range(10):
        await fail(office)
        office.clock.move(days=2)
    assert (await office.endpoints.all())[0]["given_up"] == 1
    receiver.status = 200

    assert await office.endpoints.retry(keyed["id"]) == 1
    assert await office.endpoints.retry() == 0
    (row,) = await office.deliveries()
    assert (row["attempts"], row["dead_at"]) == (0, None)
    await office.dispatcher.run_once()
    assert await office.deliveries() == []
    assert len(set(receiver.ids)) == 1


async def test_waiting_deliveries_are_sent_again_at_once(
    office: Office, receiver: Receiver
) -> None:
    """A receiver that works again need not wait for the next attempt."""
    await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status = 500
    await fail(office)
    receiver.status = 200
    await office.dispatcher.run_once()
    assert len(await office.deliveries()) == 1

    assert await office.endpoints.retry() == 1
    await office.dispatcher.run_once()
    assert await office.deliveries() == []


async def test_given_up_deliveries_can_be_discarded(office: Office, receiver: Receiver) -> None:
    """Waiting ones cannot."""
    keyed = await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status = 410
    await office.dispatcher.run_once()
    await office.endpoints.enable(keyed["id"])
    await office.lead("Another")

    assert await office.endpoints.discard(keyed["id"]) == 1
    assert [row["dead_at"] for row in await office.deliveries()] == [None]


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        ("60", 60, 72),
        ("1", 5, 6),
        ("0", 5, 6),
        ("Mon, 01 Jun 2026 12:10:00 GMT", 600, 720),
        ("Mon, 01 Jun 2026 11:00:00 GMT", 5, 6),
        ("99999999999999999999", 86_400, 103_680),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400, 103_680),
        ("soon", 5, 6),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 5, 6),
        ("-5", 5, 6),
        (",", 5, 6),
        ("1 Jan 12:00 , GMT", 5, 6),
        ("Mon, 01 Jun 2026 12:10:00 -99999999999999", 5, 6),
    ],
)
async def test_a_receiver_may_ask_for_a_longer_pause(
    office: Office, receiver: Receiver, retry_after: str, least: int, most: int
) -> None:
    """Never for a shorter one, nor for more than a day."""
    await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status, receiver.headers = 429, {"Retry-After": retry_after}

    seconds = pause(office, await fail(office)).total_seconds()
    assert least <= seconds <= most


async def test_gone_disables_the_endpoint_and_gives_up_what_waits(
    office: Office, receiver: Receiver
) -> None:
    """Nothing more is kept for it until its operator enables it; then all can be sent."""
    keyed = await office.endpoints.add(receiver.url)
    for number in range(12):
        await office.lead(f"Hello {number}")
    receiver.status = 410
    await office.dispatcher.run_once()

    row = await office.endpoint()
    assert row["disabled_at"] is not None
    assert row["disabled_for"] == "it answered 410 Gone"
    rows = await office.deliveries()
    assert len(rows) == 12
    assert all(row["dead_at"] for row in rows)
    asked = len(receiver.received)
    assert asked < 12
    await office.lead("More")
    office.clock.move(days=1)
    await office.dispatcher.run_once()
    assert (len(receiver.received), len(await office.deliveries())) == (asked, 12)

    receiver.status = 200
    await office.endpoints.enable(keyed["id"])
    await office.endpoints.retry()
    await office.dispatcher.run_once()
    assert await office.deliveries() == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(
    office: Office, receiver: Receiver, make_receiver: ReceiverMaker, status: int
) -> None:
    """It is a failure like any other."""
    other = await make_receiver()
    receiver.status, receiver.headers = status, {"Location": other.url}
    await office.endpoints.add(receiver.url)
    await office.lead()

    assert (await fail(office))["last_answer"] == f"answered {status}"
    assert other.received == []


async def test_a_receiver_that_says_nothing_is_not_waited_for(
    office: Office, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event is sent again later."""
    monkeypatch.setattr(tell_module, "POST_TIMEOUT_SECONDS", 0.2)
    receiver.before_answer = lambda: asyncio.sleep(5)
    await office.endpoints.add(receiver.url)
    await office.lead()

    assert "no answer within" in str((await fail(office))["last_answer"])


async def test_a_receiver_that_is_not_there(office: Office) -> None:
    """Likewise; nothing is said of why."""
    await office.endpoints.add("http://127.0.0.1:1/")
    await office.lead()

    assert (await fail(office))["last_answer"] == "its server cannot be reached"


async def test_two_dispatchers_at_once_send_nothing_twice(
    office: Office, receiver: Receiver, open_another: Opener, clock: MovableClock
) -> None:
    """Each with a store of its own on the same database, as two processes have."""
    await office.endpoints.add(receiver.url)
    for number in range(200):
        await office.lead(f"Hello {number}")
    others = [await open_another() for _ in range(3)]
    offices = [office, *(make_office(other, clock) for other in others)]
    async with asyncio.TaskGroup() as group:
        for each in offices:
            group.create_task(each.dispatcher.run_once())

    assert len(receiver.ids) == len(set(receiver.ids)) == 200
    assert await office.deliveries() == []


async def test_an_end_between_answer_and_commit_repeats_with_the_same_id(
    store: Store, clock: MovableClock, receiver: Receiver
) -> None:
    """The store is lost right after the answer; when the lease is over, it is sent again."""
    watched = WatchedStore(store)
    office = make_office(watched, clock)
    await office.endpoints.add(receiver.url)
    await office.lead()

    async def lose_the_store() -> None:
        watched.away = True

    receiver.before_answer = lose_the_store
    await office.dispatcher.run_once()
    receiver.before_answer, watched.away = None, False
    (row,) = await office.deliveries()
    assert (row["attempts"], row["lease"] is None) == (0, False)
    await office.dispatcher.run_once()
    assert len(receiver.received) == 1, "its lease is not over"
    clock.now += LEASE
    await office.dispatcher.run_once()

    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert await office.deliveries() == []


async def test_a_dispatcher_with_an_expired_lease_changes_nothing(
    store: Store, clock: MovableClock, receiver: Receiver
) -> None:
    """A lease that ended in the meantime is another edge's, whose outcome is kept."""
    slow, quick = make_office(store, clock), make_office(store, clock)
    await slow.endpoints.add(receiver.url)
    await slow.lead()
    receiver.status = 500

    async def overtake() -> None:
        receiver.before_answer = None
        clock.now += LEASE
        await quick.dispatcher.run_once()

    receiver.before_answer = overtake
    await slow.dispatcher.run_once()

    (row,) = await slow.deliveries()
    assert len(receiver.received) == 2
    assert (row["attempts"], row["last_answer"]) == (1, "answered 500")


async def test_a_removed_endpoint_gets_nothing(office: Office, receiver: Receiver) -> None:
    """Its waiting deliveries are deleted with it."""
    keyed = await office.endpoints.add(receiver.url)
    await office.lead()
    await office.endpoints.remove(keyed["id"])
    await office.lead()
    await office.dispatcher.run_once()

    assert (await office.deliveries(), receiver.received) == ([], [])


async def test_events_for_a_disabled_endpoint_are_not_queued(
    office: Office, receiver: Receiver
) -> None:
    """Nothing new waits for it, and what waited is given up."""
    await office.endpoints.add(receiver.url)
    await office.lead()
    receiver.status = 410
    await office.dispatcher.run_once()
    await office.lead()
    await office.dispatcher.run_once()

    assert [row["last_answer"] for row in await office.deliveries()] == ["the endpoint is disabled"]
    assert len(receiver.received) == 1


async def test_only_a_lead_with_deliveries_wakes_the_loop(
    office: Office, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an endpoint, and for spam, there is nothing to look for."""
    woken: list[str] = []
    monkeypatch.setattr(office.dispatcher, "wake", lambda: woken.append("woken"))

    await office.lead()
    assert woken == []
    await office.endpoints.add(receiver.url)
    await office.lead("Another")
    assert woken == ["woken"]


async def test_the_loop_sends_at_once_when_it_is_woken(
    office: Office, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And goes on when the store was away for a while."""
    monkeypatch.setattr(outbox_module, "POLL_SECONDS", 3600)
    watched = WatchedStore(office.store)
    watched_office = make_office(watched, office.clock)
    await watched_office.endpoints.add(receiver.url)
    watched.away = True
    running = asyncio.create_task(watched_office.dispatcher.run())
    try:
        await asyncio.sleep(0.05)
        watched.away = False
        await watched_office.lead()
        await receiver.arrival()
        await watched_office.lead("Another")
        await receiver.arrival()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
