"""The end of the service: deliveries under way end and are stored, and none is begun."""

import asyncio
from contextlib import suppress

import pytest

from edge_api import outbox as outbox_module
from edge_api.db.internal_tables import WEBHOOK_DELIVERIES
from edge_api.db.query import Query, QueryResult, Store, Update
from edge_api.webhooks.dispatcher import MAX_CONCURRENT
from tests.edge.domain.conftest import MovableClock, WatchedStore
from tests.edge.webhooks.conftest import Office, Receiver, make_office
from tests.patience import patience


def hold_answers(receiver: Receiver) -> asyncio.Event:
    """Let a receiver answer only once the event that is returned is set."""
    answering = asyncio.Event()

    async def hold() -> None:
        await asyncio.wait_for(answering.wait(), 20)

    receiver.before_answer = hold
    return answering


async def ended(running: asyncio.Task[None]) -> bool:
    """Return whether a task that was cancelled ends by that."""
    done, _ = await asyncio.wait({running}, timeout=patience(20))
    return running in done and running.cancelled()


async def test_attempts_under_way_are_finished_and_no_more_begun(
    office: Office, receiver: Receiver
) -> None:
    """Outcomes of sent events are stored; unclaimed deliveries are left as they were."""
    answering = hold_answers(receiver)
    await office.endpoints.add(receiver.url)
    for number in range(MAX_CONCURRENT + 4):
        await office.lead(f"Hello {number}")
    running = asyncio.create_task(office.dispatcher.run())
    for _ in range(MAX_CONCURRENT):
        await receiver.arrival()

    running.cancel()
    await asyncio.sleep(0.1)
    answering.set()

    assert await ended(running)
    assert len(receiver.received) == MAX_CONCURRENT
    left = await office.deliveries()
    assert [(row["lease"], row["attempts"]) for row in left] == [(None, 0)] * 4
    assert not set(receiver.ids) & {row["id"] for row in left}


async def test_an_attempt_that_is_too_late_is_cut_and_keeps_its_claim(
    office: Office, receiver: Receiver
) -> None:
    """It may have arrived: it is sent again when its lease is over, and not at once."""
    answering = hold_answers(receiver)
    await office.endpoints.add(receiver.url)
    await office.lead()
    office.dispatcher.shutdown_timeout = 0.05
    running = asyncio.create_task(office.dispatcher.run())
    await receiver.arrival()

    running.cancel()

    assert await ended(running)
    answering.set()
    (row,) = await office.deliveries()
    assert (row["attempts"], row["lease"] is None) == (0, False)
    await make_office(office.store, office.clock).dispatcher.run_once()
    assert len(receiver.received) == 1


class EndingStore(WatchedStore):
    """A real store behind which a task is cancelled as soon as deliveries are claimed."""

    running: asyncio.Task[None] | None = None

    async def run(self, *outbox_entries: Query) -> list[QueryResult]:
        """Pass the plans on."""
        results = await super().run(*outbox_entries)
        (plan, *_) = outbox_entries
        if self.running and isinstance(plan, Update) and plan.table is WEBHOOK_DELIVERIES:
            self.running.cancel()
            await asyncio.sleep(0.05)
        return results


async def test_claimed_deliveries_that_were_not_sent_are_released(
    store: Store, clock: MovableClock, receiver: Receiver
) -> None:
    """The next process need not wait for the end of a lease."""
    ending = EndingStore(store)
    office = make_office(ending, clock)
    await office.endpoints.add(receiver.url)
    await office.lead()
    ending.running = asyncio.create_task(office.dispatcher.run())

    assert await ended(ending.running)
    next_one = make_office(store, clock)
    assert receiver.received == []
    (row,) = await next_one.deliveries()
    assert (row["lease"], row["attempts"]) == (None, 0)
    await next_one.dispatcher.run_once()
    assert len(receiver.received) == 1


@pytest.mark.parametrize("steps", range(6))
async def test_an_end_is_not_lost_on_being_woken(
    office: Office, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """However close behind a new lead it comes."""
    monkeypatch.setattr(outbox_module, "POLL_SECONDS", 3600)
    running = asyncio.create_task(office.dispatcher.run())
    await asyncio.sleep(0.1)
    office.dispatcher.wake()
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()

    is_ended = await ended(running)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert is_ended
