"""Reads that take long: they end in time, and quick ones never wait for them."""

import asyncio

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Read, Store, Update
from edge_api.db.tables import LEADS
from tests.edge.store.samples import make_lead

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

# A pattern that no row fits, over texts in which the search has to look at every character.
NOWHERE = Filter("notes", "like", "%" + "a_" * 50 + "b%")
LONG = "a" * 20_000


@pytest.fixture
async def slow(store: Store) -> Store:
    """Return a store in which looking for NOWHERE takes many seconds."""
    for _ in range(4):
        await store.run(Insert(LEADS, [make_lead(notes=LONG) for _ in range(1000)]))
    return store


def reading(seconds: float | None) -> Read:
    """Return the read that takes long."""
    return Read(LEADS, where=(NOWHERE,), timeout=seconds)


async def test_a_read_ends_when_its_time_is_over(slow: Store) -> None:
    """The caller gets an error that says what to do, and the next read is served."""
    with pytest.raises(Problem) as refusal:
        await slow.run(reading(0.2))

    assert (refusal.value.code, refusal.value.sqlstate) == ("unavailable", "57014")
    assert refusal.value.headers["Retry-After"] == "2"
    assert "took too long" in refusal.value.message
    (result,) = await slow.run(Read(LEADS, ("id",), limit=1, timeout=5))
    assert len(result.rows) == 1


async def test_quick_reads_and_writes_do_not_wait_for_long_ones(slow: Store) -> None:
    """While every patient reader is busy, a quick read and a write are done before it ends."""
    long = [asyncio.create_task(slow.run(reading(3))) for _ in range(3)]
    await asyncio.sleep(0.05)
    for _ in range(20):
        await slow.run(Read(LEADS, ("id",), limit=1))
    await slow.run(Insert(LEADS, [make_lead()]))

    assert not any(task.done() for task in long)
    for task in long:
        task.cancel()
    await asyncio.gather(*long, return_exceptions=True)


async def test_a_read_that_waits_in_line_ends_in_time_too(slow: Store) -> None:
    """Its seconds count from the question, not from its turn."""
    results = await asyncio.gather(
        *(slow.run(reading(seconds)) for seconds in (0.6, 0.6, 0.1, 0.1)), return_exceptions=True
    )

    assert [type(result) for result in results] == [Problem] * 4


async def test_a_read_that_nobody_waits_for_is_ended(slow: Store) -> None:
    """Reads of clients that go away make room at once: ten of a minute each are gone."""
    for _ in range(10):
        task = asyncio.create_task(slow.run(reading(60)))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (result,) = await slow.run(Read(LEADS, ("id",), limit=1, timeout=20))

    assert len(result.rows) == 1


async def test_rows_and_total_are_of_one_snapshot(store: Store) -> None:
    """Despite concurrent writes the total fits the rows, and two reads fit each other."""
    await store.run(Insert(LEADS, [make_lead(budget_tier="a") for _ in range(50)]))

    async def swap() -> None:
        for tier in "abababab":
            every = (Filter("name", "eq", "Ada"),)
            await store.run(
                Insert(LEADS, [make_lead()]), Update(LEADS, {"budget_tier": tier}, every)
            )

    async def look() -> None:
        in_a, in_b, all_of_them = (
            Read(LEADS, where=where, with_total=True)
            for where in (
                (Filter("budget_tier", "eq", "a"),),
                (Filter("budget_tier", "eq", "b"),),
                (),
            )
        )
        for _ in range(40):
            first, second, both = await store.run(in_a, in_b, all_of_them)
            assert 0 in (first.total, second.total)
            assert (first.total or 0) + (second.total or 0) == both.total
            assert [first.total, second.total] == [len(first.rows), len(second.rows)]

    await asyncio.gather(swap(), look(), look())
