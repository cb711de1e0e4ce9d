"""Limits of several windows: one list of cases for counting in memory and in PostgreSQL."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import asyncpg
import pytest

from edge_api.auth.rate_limits import LimitBackend, MemoryLimits
from edge_api.db.postgres.connection import SCHEMA
from edge_api.db.postgres.rate_limits import PostgresLimits, open_limits
from edge_api.schema.credentials import LimitDecision, RateLimit, read_limit
from tests.edge.domain.conftest import MovableClock
from tests.edge.engines import SQLITE_PREFIX

pytestmark = pytest.mark.each_engine

AGE = """
UPDATE rate_hits SET
    hits = ARRAY(SELECT hit - make_interval(secs => $1) FROM unnest(hits) AS hit ORDER BY hit),
    until = until - make_interval(secs => $1)
"""
"""PostgreSQL counts on its own clock: a test moves the hits, as if they had come earlier."""


@dataclass(frozen=True)
class Counter:
    """Where hits are counted, and what lets time pass there."""

    limits: LimitBackend
    pass_time: Callable[[float], Awaitable[object]]

    async def hit(self, limit: RateLimit, after: float = 0.0, key: str = "x") -> LimitDecision:
        """Count a hit some seconds after the last one."""
        await self.pass_time(after)
        return await self.limits.hit(limit, key)


@pytest.fixture
async def counter(store_url: str, clock: MovableClock) -> AsyncIterator[Counter]:
    """Return what counts hits beside a store on the engine of the test."""
    if store_url.startswith(SQLITE_PREFIX):

        async def move(seconds: float) -> None:
            clock.move(seconds=seconds)

        yield Counter(MemoryLimits(clock.seconds), move)
        return
    limits = await open_limits(store_url, b"s" * 32)
    rival = await asyncpg.connect(store_url, server_settings={"search_path": SCHEMA})
    try:
        yield Counter(limits, lambda seconds: rival.execute(AGE, seconds))
    finally:
        rival.terminate()
        await limits.close()


def limit_of(rate: str, name: str = "leads") -> RateLimit:
    """Return a limit that is not switched off."""
    limit = read_limit(name, rate)
    assert limit is not None
    return limit


def left_of(decision: LimitDecision) -> list[int]:
    """Return the hits that each window has left."""
    return [left for left, _ in decision.windows]


@pytest.mark.parametrize(
    ("rate", "pauses", "allowed", "left"),
    [
        pytest.param("1/minute;2/day", (0, 60, 60), (1, 1, 0), [1, 0], id="the longer is full"),
        pytest.param("2/day;1/minute", (0, 60, 60), (1, 1, 0), [0, 1], id="the longer is first"),
        pytest.param("1/day;9/minute", (0, 70_000), (1, 0), [0, 9], id="the longer is stricter"),
        pytest.param(
            "1/minute;2/hour;3/day",
            (0, 60, 3540, 60, 3600),
            (1, 1, 1, 0, 0),
            [1, 2, 0],
            id="the longest of three is full",
        ),
        pytest.param("1/minute;9/day", (0, 1, 1), (1, 0, 0), [0, 8], id="a refusal counts nowhere"),
        pytest.param("1/minute;1/day", (0, 86_400), (1, 1), [0, 0], id="both have passed"),
    ],
)
async def test_each_window_of_a_limit_counts(
    counter: Counter,
    rate: str,
    pauses: Sequence[float],
    allowed: Sequence[int],
    left: list[int],
) -> None:
    """A hit is taken if all have room; the hits of the longest are kept as long as it lasts."""
    limit = limit_of(rate)
    decisions = [await counter.hit(limit, after=pause) for pause in pauses]

    assert [each.allowed for each in decisions] == list(map(bool, allowed))
    assert left_of(decisions[-1]) == left


async def test_a_refund_is_of_every_window(counter: Counter) -> None:
    """The newest hit is taken back: the older ones count until their windows have passed."""
    limit = limit_of("2/minute;2/day")
    await counter.hit(limit)
    await counter.hit(limit, after=50)
    await counter.limits.refund(limit, "x")

    assert left_of(await counter.limits.peek(limit, "x")) == [1, 1]
    await counter.pass_time(10)
    assert left_of(await counter.limits.peek(limit, "x")) == [2, 1]


async def sweep(counter: Counter, limit: RateLimit) -> None:
    """Clear away what has passed: in memory, many other senders bring that about."""
    if isinstance(counter.limits, PostgresLimits):
        await counter.limits.sweep()
        return
    for sender in range(3000):
        await counter.hit(limit, key=f"sender {sender}")


async def test_a_sweep_leaves_the_longest_window(counter: Counter) -> None:
    """What is cleared away has passed in all windows of its limit, not in the first alone."""
    limit = limit_of("5/minute;1/day")
    await counter.hit(limit)
    await counter.pass_time(3600)
    await sweep(counter, limit)

    assert not (await counter.hit(limit)).allowed


async def test_a_sweep_leaves_hits_that_are_newer_than_a_passed_one(counter: Counter) -> None:
    """A sender whose first hit has passed is not cleared away with the hits that still count."""
    limit = limit_of("3/minute")
    for pause in (0, 50, 0):
        await counter.hit(limit, after=pause)
    await counter.pass_time(11)
    await sweep(counter, limit)

    assert left_of(await counter.limits.peek(limit, "x")) == [1]
