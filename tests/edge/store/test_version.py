"""Version and probe of a store: whether anything has changed, and whether it works."""

import asyncio

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Read, Store
from edge_api.db.tables import LEADS
from tests.edge.engines import Opener
from tests.edge.store.samples import CheckedStore, make_lead

pytestmark = pytest.mark.each_engine


async def test_a_write_changes_the_version(store: Store) -> None:
    """At the moment of the answer, whoever kept something by the old version knows it is stale."""
    seen = [store.version()]
    for _ in range(3):
        await store.run(Insert(LEADS, [make_lead()]))
        seen.append(store.version())

    assert len(set(seen)) == 4


async def test_a_write_by_another_edge_changes_the_version(
    store: Store, open_another: Opener
) -> None:
    """So a key that is revoked elsewhere is refused here soon: within two seconds."""
    other = await open_another()
    before = store.version()
    await other.run(Insert(LEADS, [make_lead()]))
    for _ in range(200):
        if store.version() != before:
            return
        await asyncio.sleep(0.05)
    raise AssertionError


async def test_reading_does_not_change_the_version(store: Store) -> None:
    """Nor does asking for it, or a probe: what is kept stays good."""
    before = store.version()
    await store.run(Read(LEADS))
    await store.probe()

    assert store.version() == before


async def test_a_version_is_never_older_than_an_answer(store: Store) -> None:
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


class CountedCheck:
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


async def test_concurrent_probes_share_a_check() -> None:
    """A hundred probes cost one check, and those right after it none."""
    look = CountedCheck()
    store = CheckedStore(look)
    await asyncio.gather(*(store.probe() for _ in range(100)))
    await store.probe()

    assert look.times == 1


async def test_a_failed_check_reaches_all_probes_and_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A result is kept for a while only, whatever it is."""
    monkeypatch.setattr("edge_api.db.errors.PROBE_CACHE_SECONDS", 0.0)
    look = CountedCheck()
    store = CheckedStore(look)
    look.fault = "The roof leaks"
    results = await asyncio.gather(*(store.probe() for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["The roof leaks; try again later"] * 3

    look.fault = ""
    await store.probe()
    assert look.times == 2


async def test_a_cancelled_probe_leaves_the_check_to_the_others() -> None:
    """A probe whose first caller is cancelled still answers the second."""
    look = CountedCheck()
    store = CheckedStore(look)
    first, second = (asyncio.create_task(store.probe()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second

    assert look.times == 1
