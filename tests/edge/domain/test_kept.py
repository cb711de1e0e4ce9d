import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from edge_api.db.caches import MIN_ENTRY_BYTES, SingleFlightCache
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, QueryResult, Read
from edge_api.db.sqlite.engine import SQLiteStore
from edge_api.db.tables import SUPPRESSED_EMAILS

READ = Read(SUPPRESSED_EMAILS, ("email",))


async def suppress(store: SQLiteStore, email: str) -> None:
    """Change the store by one row."""
    given = {"email": email, "reason": "bounce"}
    number = abs(hash(email)) % 10**12
    row = SUPPRESSED_EMAILS.new_row(
        given,
        "2026-06-01T12:00:00.000000Z",
        partial(str, f"01981a2b-3c4d-7e5f-8a6b-{number:012}"),
    )
    await store.run(Insert(SUPPRESSED_EMAILS, [row]))


def kept(watched: Any) -> Callable[[], Coroutine[Any, Any, list[QueryResult]]]:
    """Return what gives the rows of a table, as they are kept."""
    return partial(answers(watched).get, None, partial(watched.run, READ))


async def test_concurrent_callers_share_one_read(watched: Any) -> None:
    """However many ask while the store stays as it is, it is read once."""
    value = kept(watched)

    await asyncio.gather(*(value() for _ in range(20)))
    await value()

    assert watched.runs == 1


async def test_a_change_is_seen_by_whoever_asks_next(watched: Any, store: SQLiteStore) -> None:
    """A cached value is valid only until the store changes."""
    value = kept(watched)
    assert (await value())[0].rows == []

    await suppress(store, "ada@example.org")

    assert (await value())[0].rows == [{"email": "ada@example.org"}]


async def test_a_failure_is_not_kept(watched: Any) -> None:
    """Once the store is back, the next caller is answered."""
    value = kept(watched)
    watched.away = True
    with pytest.raises(Problem):
        await value()

    watched.away = False

    assert (await value())[0].rows == []


async def test_a_cancelled_caller_ends_no_shared_read(watched: Any) -> None:
    """A caller that is cancelled leaves the others their answer."""
    value = kept(watched)
    leaving, staying = (asyncio.create_task(value()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()

    assert (await staying)[0].rows == []
    assert watched.runs == 1


class Answers:
    """Cached answers to several questions, valid while the store is unchanged."""

    def __init__(self, watched: Any, most: int) -> None:
        self._watched = watched
        self._cache: SingleFlightCache[list[QueryResult]] = SingleFlightCache(lambda _: 1, most)

    async def get(self, key: object, read: Any, length: int = 0) -> list[QueryResult]:
        """Return the answer to a question."""
        return await self._cache.get((self._watched.version(), key), read, length)


def answers(watched: Any, most: int = 10 * MIN_ENTRY_BYTES) -> Answers:
    """Return nothing kept yet; each answer will be as heavy as the least."""
    return Answers(watched, most)


async def test_each_question_is_read_once(watched: Any) -> None:
    """Callers with the same question, at the same time or later, share that read."""
    kept, read = answers(watched), partial(watched.run, READ)

    await asyncio.gather(*(kept.get(number % 3, read) for number in range(20)))
    await kept.get(2, read)

    assert watched.runs == 3


async def test_a_change_makes_every_answer_stale(watched: Any, store: SQLiteStore) -> None:
    """A read that is under way during the change is not shared with later callers."""
    kept, read = answers(watched), partial(watched.run, READ)
    assert (await kept.get("early", read))[0].rows == []
    reading = asyncio.create_task(kept.get("late", read))
    await suppress(store, "ada@example.org")
    await reading

    for question in ("early", "late"):
        assert (await kept.get(question, read))[0].rows == [{"email": "ada@example.org"}]


async def test_the_oldest_answers_are_evicted(watched: Any) -> None:
    """Memory stays bounded however many questions are asked; what alone is too heavy stays out."""
    kept, read = answers(watched, most=2 * MIN_ENTRY_BYTES), partial(watched.run, READ)
    for number in range(3):
        await kept.get(number, read)
    await kept.get(2, read)
    await kept.get(1, read)
    assert watched.runs == 3

    await kept.get(0, read)
    assert watched.runs == 4
    await kept.get("a long question", read, 2 * MIN_ENTRY_BYTES + 1)
    await kept.get(0, read)
    assert watched.runs == 5

    narrow = answers(watched, most=MIN_ENTRY_BYTES - 1)
    for _ in range(2):
        await narrow.get(0, read)
    assert watched.runs == 7


async def test_a_failed_answer_is_not_kept(watched: Any) -> None:
    """All waiting callers get the error; the next one is answered."""
    kept, read = answers(watched), partial(watched.run, READ)
    asking = asyncio.gather(*(kept.get(1, read) for _ in range(3)), return_exceptions=True)
    await asyncio.sleep(0)
    watched.away = True
    assert [type(outcome) for outcome in await asking] == [Problem] * 3

    watched.away = False

    assert (await kept.get(1, read))[0].rows == []


class SlowRead:
    """A read that ends when it is let go; ended before that, it takes its time as well."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.gate = asyncio.Event()
        self.unwinding = asyncio.Event()

    async def __call__(self) -> list[QueryResult]:
        """Return nothing, once the gate is open."""
        self.begun += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ended += 1
            async with asyncio.timeout(10):  # a test that fails must not hang
                await self.unwinding.wait()
            raise
        return []


async def leave(*askers: "asyncio.Task[list[QueryResult]]") -> None:
    """Cancel the waiting callers."""
    for asker in askers:
        asker.cancel()
    await asyncio.gather(*askers, return_exceptions=True)


async def turns() -> None:
    """Let every task take all the steps that it can take by itself."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_last_cancelled_caller_ends_the_read(watched: Any) -> None:
    """A read for nobody would only keep others waiting; nothing of it is kept."""
    kept, read = answers(watched), SlowRead()
    asked = [asyncio.create_task(kept.get(1, read)) for _ in range(3)]
    await turns()

    await leave(*asked[:2])
    await turns()
    assert (read.begun, read.ended) == (1, 0)

    await leave(asked[2])
    await turns()
    assert (read.begun, read.ended) == (1, 1)
    read.unwinding.set()
    read.gate.set()
    assert await kept.get(1, read) == []
    assert read.begun == 2


async def test_a_caller_during_a_cancelled_read_gets_a_new_one(watched: Any) -> None:
    """It is a new read, which the end of the old one does not touch."""
    kept, read = answers(watched), SlowRead()
    leaving = asyncio.create_task(kept.get(1, read))
    await turns()
    await leave(leaving)
    await turns()
    asking = [asyncio.create_task(kept.get(1, read)) for _ in range(2)]
    await turns()
    assert (read.begun, read.ended) == (2, 1)

    read.unwinding.set()
    await turns()
    read.gate.set()
    assert await asyncio.gather(*asking) == [[], []]
    assert (read.begun, read.ended) == (2, 1)
    assert await kept.get(1, read) == []
    assert read.begun == 2


async def test_cancelling_a_stale_read_leaves_the_new_one(watched: Any, store: SQLiteStore) -> None:
    """After a change others have a read of their own, which goes on."""
    kept, read = answers(watched), SlowRead()
    leaving = asyncio.create_task(kept.get(1, read))
    await turns()
    await suppress(store, "ada@example.org")
    asking = asyncio.create_task(kept.get(1, read))
    await turns()
    read.unwinding.set()
    await leave(leaving)
    await turns()
    assert (read.begun, read.ended) == (2, 1)

    read.gate.set()
    assert await asking == []
    assert await kept.get(1, read) == []
    assert read.begun == 2
