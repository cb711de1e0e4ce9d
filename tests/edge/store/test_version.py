"""What others ask of a store between its rows: has anything changed, and does it work."""

import asyncio
import sqlite3

import pytest

from edge_api.schema.problems import Problem
from edge_api.schema.tables import LEADS
from edge_api.store.plan import Insert, Read
from edge_api.store.probe import Probe
from edge_api.store.sqlite import SQLiteStore
from tests.edge.store.samples import make_lead


async def test_a_write_changes_the_version(store: SQLiteStore) -> None:
    """At the moment of the answer, whoever kept something by the old version knows it is stale."""
    seen = [store.version()]
    for _ in range(3):
        await store.run(Insert(LEADS, [make_lead()]))
        seen.append(store.version())

    assert len(set(seen)) == 4


async def test_a_write_of_another_process_changes_the_version(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """So a key that a command has revoked is refused by the next request."""
    before = store.version()
    rival.execute("UPDATE email_send_state SET batch_size = 20")
    await asyncio.sleep(0)  # another turn of the loop, as for another request

    assert store.version() != before


async def test_reading_does_not_change_the_version(store: SQLiteStore) -> None:
    """Nor does asking for it, or a probe: what is kept stays good."""
    before = store.version()
    await store.run(Read(LEADS))
    await store.probe()

    assert store.version() == before


async def test_a_version_of_a_locked_store_is_had_at_once(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """It is asked for on the event loop, which waits for nobody."""
    before = store.version()
    rival.execute("BEGIN IMMEDIATE")
    rival.execute("UPDATE email_send_state SET batch_size = 20")
    await asyncio.sleep(0)
    assert store.version() == before
    rival.execute("COMMIT")
    await asyncio.sleep(0)

    assert store.version() != before


async def test_a_version_is_never_older_than_an_answer(store: SQLiteStore) -> None:
    """However many ask in the same turn, whoever has just written sees another version."""

    async def write() -> bool:
        before = store.version()
        await store.run(Insert(LEADS, [make_lead()]))
        return store.version() != before

    async def ask() -> None:
        for _ in range(500):
            store.version()
            await asyncio.sleep(0)

    asking = asyncio.gather(*(ask() for _ in range(4)))
    for _ in range(20):
        assert all(await asyncio.gather(*(write() for _ in range(10))))
    await asking


async def test_a_probe_tells_of_a_lock(store: SQLiteStore, rival: sqlite3.Connection) -> None:
    """Within a second, also when the writer would wait for longer."""
    rival.execute("BEGIN IMMEDIATE")
    with pytest.raises(Problem) as refusal:
        await store.probe()

    assert refusal.value.sentence == "The store does not answer; try again later"


class Look:
    """Something to look at, which counts how often that is done."""

    def __init__(self) -> None:
        self.times = 0
        self.fault = ""

    async def __call__(self) -> None:
        """Look, for a moment."""
        self.times += 1
        await asyncio.sleep(0.01)
        if self.fault:
            raise Problem("unavailable", self.fault)


async def test_probes_at_one_time_share_a_look() -> None:
    """A hundred who ask cost one look, and those who ask right after none."""
    look = Look()
    probe = Probe(look)
    await asyncio.gather(*(probe.run() for _ in range(100)))
    await probe.run()

    assert look.times == 1


async def test_a_fault_is_told_to_all_and_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look stands for a while only, whatever it found."""
    monkeypatch.setattr("edge_api.store.probe.FRESH_SECONDS", 0.0)
    look = Look()
    probe = Probe(look)
    look.fault = "The roof leaks"
    results = await asyncio.gather(*(probe.run() for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["The roof leaks; try again later"] * 3

    look.fault = ""
    await probe.run()
    assert look.times == 2


async def test_who_goes_away_leaves_the_look_to_the_others() -> None:
    """A probe whose first caller is cancelled still answers the second."""
    look = Look()
    probe = Probe(look)
    first, second = (asyncio.create_task(probe.run()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second

    assert look.times == 1
