"""Connections that search: nobody waits long for what others ask, or asked and left."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from edge_api.db.fts.index import MAX_READS, READERS, Search
from edge_api.db.problems import Problem
from edge_api.db.sqlite.connection import Readers

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
async def search(tmp_path: Path) -> AsyncIterator[Search]:
    """Return a search over an empty file."""
    connector = partial(sqlite3.connect, tmp_path / "file.db", check_same_thread=False)
    readers = await Readers.open(connector, READERS, 500)
    opened = Search(readers, os.open(tmp_path / "file.db", os.O_RDONLY | os.O_CREAT))
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
async def held(search: Search) -> AsyncIterator[Event]:
    """Hold every connection until the event is set."""
    release = Event()
    begun = [Event() for _ in range(READERS)]

    def hold(start: Event, _: sqlite3.Connection) -> None:
        start.set()
        release.wait(30)

    tasks = [asyncio.create_task(search.call(partial(hold, start))) for start in begun]
    for start in begun:
        assert await asyncio.to_thread(start.wait, 30)
    try:
        yield release
    finally:
        release.set()
        await asyncio.gather(*tasks)


def count(connection: sqlite3.Connection) -> int:
    """Count without end."""
    (number,) = connection.execute(ENDLESS).fetchone()
    return int(number)


def one(connection: sqlite3.Connection) -> int:
    """Return 1 by way of the engine."""
    (number,) = connection.execute("SELECT 1").fetchone()
    return int(number)


async def test_endless_work_is_interrupted(search: Search) -> None:
    """The caller gets an error that says what to do, and the next one is served."""
    with pytest.raises(Problem) as refusal:
        await search.call(count)

    assert (refusal.value.code, refusal.value.headers["Retry-After"]) == ("unavailable", "2")
    assert "use fewer words" in refusal.value.message
    assert await search.call(one) == 1


async def test_no_more_wait_than_there_is_room_for(search: Search, held: Event) -> None:
    """Callers after that are refused at once, and those in line are served."""
    waiting = [asyncio.create_task(search.call(one)) for _ in range(MAX_READS - READERS)]
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="Too many searches") as refusal:
        await search.call(one)
    held.set()

    assert (refusal.value.code, refusal.value.headers["Retry-After"]) == ("unavailable", "2")
    assert set(await asyncio.gather(*waiting)) == {1}


async def test_work_of_a_cancelled_caller_is_never_begun(search: Search, held: Event) -> None:
    """It leaves its place in the line to others."""
    done: list[int] = []
    left = [
        asyncio.create_task(search.call(lambda _: done.append(1))) for _ in range(MAX_READS // 2)
    ]
    await asyncio.sleep(0)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    staying = [asyncio.create_task(search.call(one)) for _ in range(MAX_READS - READERS)]
    await asyncio.sleep(0)
    held.set()

    assert set(await asyncio.gather(*staying)) == {1}
    assert done == []


async def test_a_caller_that_waits_too_long_gets_an_error(
    search: Search, held: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is not begun any more."""
    monkeypatch.setattr("edge_api.db.fts.index.WAIT_SECONDS", 0.0)
    late = asyncio.create_task(search.call(one))
    await asyncio.sleep(0)
    held.set()

    with pytest.raises(Problem, match="Too many searches"):
        await late
