"""Claims of entries: leases, also when a dispatcher is late or dies."""

import asyncio

import pytest

from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Filter, Store, Update
from edge_api.mail.queue import MailLeases
from tests.edge.engines import Opener
from tests.edge.mail.outbox.post_office import OWNER, PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay

pytestmark = pytest.mark.each_engine


async def test_a_claimed_entry_is_left_to_its_owner(
    office: PostOffice, store: Store, clock: TickingClock
) -> None:
    """Two dispatchers get different entries; a third gets none until a lease is over."""
    for _ in range(5):
        await office.take_lead()
    first, second = MailLeases(store, clock), MailLeases(store, clock)
    taken = (await first.claim_due(3))[0]
    others = (await second.claim_due(3))[0]

    assert len({entry["id"] for entry in (*taken, *others)}) == 5
    assert (await second.claim_due(3))[0] == []
    clock.move(seconds=121)
    assert {entry["id"] for entry in (await second.claim_due(9))[0]} == {
        entry["id"] for entry in (*taken, *others)
    }


async def test_concurrent_claims_do_not_overlap(
    office: PostOffice, open_another: Opener, clock: TickingClock
) -> None:
    """Many claims at once, from several processes on one store, never share an entry."""
    for _ in range(40):
        await office.take_lead()
    stores = [await open_another() for _ in range(3)]
    batches = await asyncio.gather(
        *(MailLeases(store, clock).claim_due(7) for store in stores for _ in range(4))
    )

    ids = [entry["id"] for batch, _ in batches for entry in batch]
    assert len(ids) == len(set(ids))
    assert not all(is_complete for _, is_complete in batches)


async def test_a_released_entry_is_due_at_once(
    office: PostOffice, store: Store, clock: TickingClock
) -> None:
    """Leases that are given back hold up nobody; those that are another's by now stay."""
    for _ in range(2):
        await office.take_lead()
    claims = MailLeases(store, clock)
    early = (await claims.claim_due(2))[0]
    clock.move(seconds=121)
    late = (await claims.claim_due(1))[0]
    await claims.release(early)

    (free,) = (await claims.claim_due(2))[0]
    assert {free["id"], late[0]["id"]} == {entry["id"] for entry in early}


async def test_a_long_batch_keeps_its_leases(
    office: PostOffice, store: Store, clock: TickingClock, relay: Relay
) -> None:
    """Before each message the lease is made to last; another dispatcher finds nothing to do."""
    for _ in range(4):
        await office.take_lead()
    relay.before_data = lambda: clock.move(seconds=59)
    other = open_office(store, clock, relay)

    async def try_the_other(_address: str) -> None:
        assert await other.tick() is False

    relay.before_recipient = try_the_other
    await office.tick()

    assert len(relay.taken) == 4
    assert sorted(await office.statuses()) == ["pending"] * 4 + ["sent"] * 4


async def test_a_lease_that_was_lost_is_left_to_its_owner(
    office: PostOffice, store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A dispatcher that slept through its lease does not send what another has taken."""
    for _ in range(3):
        await office.take_lead()
    other = open_office(store, clock, relay)

    async def oversleep(_address: str) -> None:
        relay.before_recipient = None
        clock.move(seconds=121)
        await MailLeases(store, clock).claim_due(2)

    relay.before_recipient = oversleep
    await office.tick()

    rows = await office.outbox()
    assert (len(relay.taken), len(rows)) == (2, 1)
    await other.tick_at(seconds=121)
    assert len(relay.taken) == 3
    assert len({str(taken.message["Message-ID"]) for taken in relay.taken}) == 3


async def test_a_failure_of_another_entry_is_not_written(
    office: PostOffice, store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A dispatcher that lost the lease during the attempt stores no refusal."""
    await office.take_lead()
    relay.by_recipient[OWNER] = "451 4.3.0 later"

    async def oversleep(_address: str) -> None:
        clock.move(seconds=121)
        await MailLeases(store, clock).claim_due(1)

    relay.before_recipient = oversleep
    await office.tick()

    assert await office.statuses() == ["pending"]


async def test_an_entry_that_kills_the_process_is_given_up(
    office: PostOffice, relay: Relay
) -> None:
    """An entry that was claimed more than 20 times without an ending is tried no more."""
    await office.take_lead()
    await office.change_entries(claims=20)
    await office.tick()

    assert await office.statuses() == ["pending", "dlq"]
    assert relay.tried == []


async def test_an_entry_with_many_claims_is_claimed_alone_and_last(
    office: PostOffice, store: Store, clock: TickingClock
) -> None:
    """An entry whose claims failed several times is sent alone: others would fail with it."""
    for _ in range(3):
        await office.take_lead()
    await office.change_entries(claims=3)
    for _ in range(2):
        await office.take_lead()
    claims = MailLeases(store, clock)

    assert [len((await claims.claim_due(10))[0]) for _ in range(4)] == [2, 1, 1, 1]


async def test_an_outcome_resets_the_claims_of_an_entry(office: PostOffice, relay: Relay) -> None:
    """Claims are counted since somebody last said what came of one."""
    relay.by_recipient[OWNER] = "451 4.3.0 later"
    await office.take_lead()
    await office.change_entries(claims=5)
    await office.tick()

    (row,) = await office.rows(EMAIL_OUTBOX, Filter("claims", "eq", 0))
    assert row["attempts"] == 1


async def test_mail_about_access_goes_first(office: PostOffice, relay: Relay) -> None:
    """The queue `auth` is sent from before the other, however late it came."""
    for _ in range(3):
        await office.take_lead()
    last = max(row["id"] for row in await office.rows(EMAIL_OUTBOX))
    first = {"queue": "auth", "recipient_email": "first@readers-club.net"}
    await office.store.run(Update(EMAIL_OUTBOX, first, (Filter("id", "eq", last),)))
    await office.tick()

    assert relay.recipients == ["first@readers-club.net", OWNER, OWNER]
