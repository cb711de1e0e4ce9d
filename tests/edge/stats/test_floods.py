"""Floods of invented agents, paths and referrers, and a database that is away."""

import asyncio
import sqlite3
from collections.abc import Iterable
from contextlib import closing

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import Order, Read, count_rows, read_all
from edge_api.db.stats_tables import DAILY_FIGURES, OTHER, PAGE_VIEWS
from edge_api.stats.counter import MAX_AGENT_ROWS, MAX_HITS, MAX_NAMES, Stats
from tests.edge.engines import SQLITE_PREFIX
from tests.edge.stats.conftest import CHROME, POST, Counting
from tests.sizes import scaled

pytestmark = pytest.mark.one_engine


async def flood(counting: Counting, requests: Iterable[tuple[str, dict[str, str]]]) -> int:
    """Send requests on some connections at once; return how many there were."""
    left, sent = iter(requests), 0

    async def send_some() -> None:
        nonlocal sent
        for path, headers in left:
            sent += 1
            async with counting.edge.ask("GET", path, headers=headers) as answer:
                await answer.read()

    await asyncio.gather(*(send_some() for _ in range(20)))
    return sent


@pytest.mark.size("test", grows=True)
async def test_floods_are_bounded(counting: Counting) -> None:
    """The rest counts as other: in memory, and in the rows of a day."""
    count = scaled(test=4_000, judge=100_000)
    stats = counting.edge.service[Stats]
    sent = await flood(
        counting,
        (
            (
                f"{POST}?ref=word{number}" if number % 2 else f"/invented/{number}/",
                {
                    "User-Agent": f"{CHROME} X{number}" if number % 3 else f"Invented{number}/1",
                    "Referer": f"https://invented{number}.example/path",
                    "X-Forwarded-For": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
                },
            )
            for number in range(count)
        ),
    )
    hits = stats._hits  # noqa: SLF001
    assert len(hits) <= 2 * MAX_HITS + 100
    views = await counting.views()
    assert sum(views.values()) == sum(number % 2 for number in range(sent))
    assert {(path, agent) for path, _, agent in views} == {(POST, "")}
    assert await count_rows(counting.edge.service.store, PAGE_VIEWS) <= 3
    assert (await counting.figures("referrer")).keys() == {OTHER}
    assert (await counting.figures("source")).keys() == {OTHER}
    assert len(stats._memory._named) <= MAX_NAMES  # noqa: SLF001
    assert len(stats._memory._rows) <= MAX_AGENT_ROWS  # noqa: SLF001
    assert stats._waiting == {}  # noqa: SLF001
    assert await count_rows(counting.edge.service.store, DAILY_FIGURES) <= 6


async def test_old_days_become_months_when_the_database_is_back(
    counting: Counting, store_url: str
) -> None:
    """Though it was away when the day began."""
    await counting.get(POST)
    await counting.store()
    counting.clock.move(days=1)
    await counting.get(POST)
    await counting.store()
    counting.clock.move(days=900)
    with closing(sqlite3.connect(store_url.removeprefix(SQLITE_PREFIX))) as other:
        other.execute("BEGIN IMMEDIATE")
        await counting.get(POST)
        with pytest.raises(Problem, match="locked"):
            await counting.store()
        other.rollback()
    await counting.store()
    rows = await read_all(counting.edge.service.store, Read(PAGE_VIEWS, order=(Order("day"),)))
    assert [(row["day"][:7], row["count"]) for row in rows] == [("2026-06", 2), ("2028-11", 1)]


async def test_counts_wait_for_a_database_that_is_away(counting: Counting, store_url: str) -> None:
    """They are kept, and stored once when it is back."""
    await counting.get(POST)
    await counting.store()
    with closing(sqlite3.connect(store_url.removeprefix(SQLITE_PREFIX))) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            await counting.get(POST)
            with pytest.raises(Problem, match="locked"):
                await counting.store()
        other.rollback()
    await counting.get("/")
    assert await counting.views() == {(POST, "person", ""): 3, ("/", "person", ""): 1}
