"""The dispatcher as it runs: woken, stopped in the middle, and kept alive whatever happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Filter, Store
from tests.edge.domain.conftest import WatchedStore
from tests.edge.edge_process import until
from tests.edge.mail.outbox.post_office import PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay


@asynccontextmanager
async def running(office: PostOffice) -> AsyncIterator[asyncio.Task[None]]:
    """Run the dispatcher, and end it."""
    task = asyncio.create_task(office.mailing.dispatcher.run())
    await asyncio.sleep(0.05)  # its first turn finds nothing
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_lead_wakes_the_dispatcher(office: PostOffice, relay: Relay) -> None:
    """A lead that was just stored is notified without waiting for the next poll."""
    async with running(office):
        await office.take_lead()
        office.mailing.outbox.wake()
        await until(lambda: len(relay.taken) == 1)


async def test_full_batches_follow_one_another(office: PostOffice, relay: Relay) -> None:
    """A backlog of several batches goes in one waking."""
    for _ in range(35):
        await office.take_lead()
        office.clock.move(seconds=31)  # fewer than are held as a burst
    async with running(office):
        await until(lambda: len(relay.taken) == 35)


async def test_a_stop_finishes_the_message_under_way(office: PostOffice, relay: Relay) -> None:
    """It waits for the relay's reply, stores it, and gives the other entries back."""
    relay.silent = asyncio.Event()
    for _ in range(3):
        await office.take_lead()
    async with running(office) as task:
        await until(lambda: len(relay.tried) == 1)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
        relay.silent.set()
        with suppress(asyncio.CancelledError):
            await task

    assert len(relay.taken) == 1
    assert sorted(await office.statuses()) == ["pending"] * 3 + ["sent"]
    left = await office.rows(EMAIL_OUTBOX, Filter("lease", "is", None))
    assert len(left) == 2
    assert office.mailing.dispatcher.active_at is None


async def test_a_stop_does_not_wait_for_ever(office: PostOffice, relay: Relay) -> None:
    """A relay that says nothing holds up an end for some seconds; then the message is left."""
    office.mailing.dispatcher.shutdown_timeout = 0.2
    relay.silent = asyncio.Event()
    for _ in range(2):
        await office.take_lead()
    async with running(office):
        await until(lambda: len(relay.tried) == 1)
    relay.silent.set()

    assert sorted(await office.statuses()) == ["pending", "pending"]
    assert len(await office.rows(EMAIL_OUTBOX, Filter("lease", "is", None))) == 1


async def test_the_dispatcher_outlives_an_outage_of_the_store(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """While the store cannot be reached it waits; then it goes on."""
    watched = WatchedStore(store)
    office = open_office(watched, clock, relay)
    await office.take_lead()
    watched.away = True
    async with running(office) as task:
        office.mailing.dispatcher.wake()
        await asyncio.sleep(0.05)
        assert not task.done()
        watched.away = False
        office.mailing.dispatcher.wake()
        await until(lambda: len(relay.taken) == 1)


async def test_a_sent_message_is_recorded_after_an_outage(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """The relay's yes is kept until the store takes it: the message does not go twice."""
    watched = WatchedStore(store)
    office = open_office(watched, clock, relay)
    await office.take_lead()

    def go_away() -> None:
        watched.away = True
        asyncio.get_running_loop().call_later(0.3, come_back)

    def come_back() -> None:
        watched.away = False

    relay.before_data = go_away
    await office.tick()

    assert await office.statuses() == ["pending", "sent"]
    assert (len(relay.taken), await office.outbox()) == (1, [])
