"""Single-flight execution, and caches in memory."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final, Generic, TypeVar

from edge_api.db.query import Store

T = TypeVar("T")

CACHE_MOST: Final = 64 * 1024 * 1024
"""Bytes; some 10,000 pages of a journal in their compressed form."""
ANSWERS_MOST: Final = 4 * 1024 * 1024
"""Bytes of answers that are kept at a time."""
MIN_ENTRY_BYTES: Final = 16 * 1024
"""Bytes that each counts for at least, with what holds it."""


class SingleFlight(Generic[T]):
    """Work under way, by a key of the caller's.

    A cancelled caller leaves the work running for the others. With `cancel_when_unused` the work is
    cancelled with its last caller, and the next caller starts it again.
    """

    def __init__(self, *, cancel_when_unused: bool = False) -> None:
        self._cancel_when_unused = cancel_when_unused
        self._tasks: dict[Hashable, asyncio.Future[T]] = {}
        self._waiting: Counter[asyncio.Future[T]] = Counter()

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the outcome of the work that is under way for `key`; begin it if none is.

        Raises what the work raises, to everybody who waits.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.ensure_future(work())
            task.add_done_callback(partial(self._forget, key))
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                if self._cancel_when_unused and not task.done():
                    task.cancel()
                    self._forget(key, task)

    def _forget(self, key: Hashable, task: "asyncio.Future[T]") -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if task.done() and not task.cancelled():
            task.exception()  # looked at: perhaps nobody waits for it any more


class SizedCache(Generic[T]):
    """Keeps values by a key of the caller's, up to a size; the least recently used go first."""

    def __init__(self, most: int = CACHE_MOST) -> None:
        self._kept: OrderedDict[Hashable, tuple[T, int, object]] = OrderedDict()
        self._most = most
        self._size = 0

    def get(self, key: Hashable) -> T | None:
        """Return what is kept under `key`."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        self._kept.move_to_end(key)
        return entry[0]

    def keep(self, key: Hashable, value: T, size: int, owner: object = None) -> None:
        """Keep `value` of `size` (bytes, or what `most` counts), unless that alone is over `most`.

        `owner` lives as long, so that its identity may be part of the key; its size is part of
        `size`.
        """
        replaced = self._kept.pop(key, None)
        self._size -= replaced[1] if replaced else 0
        if size > self._most:
            return
        self._size += size
        self._kept[key] = (value, size, owner)
        while self._size > self._most:
            _, (_, gone, _) = self._kept.popitem(last=False)
            self._size -= gone


class SingleFlightCache(Generic[T]):
    """Answers by their questions, up to a size; `weigh` gives their bytes.

    All who ask meanwhile share one read, so that a crowd costs no more than one does.
    """

    def __init__(self, weigh: Callable[[T], int], most: int = ANSWERS_MOST) -> None:
        self._weigh = weigh
        self._answers: SizedCache[tuple[T]] = SizedCache(most)
        self._reads: SingleFlight[T] = SingleFlight(cancel_when_unused=True)

    async def get(self, question: Hashable, read: Callable[[], Awaitable[T]], length: int = 0) -> T:
        """Return the answer: what `read` gives, unless it is kept.

        `length` is how many bytes the question itself takes, where it may be long. The read is
        cancelled when its last waiting caller is cancelled. Raises what `read` raises.
        """
        kept = self._answers.get(question)
        if kept is not None:
            return kept[0]
        return await self._reads.run(question, partial(self._read, question, read, length))

    async def _read(self, question: Hashable, read: Callable[[], Awaitable[T]], length: int) -> T:
        answer = await read()
        weight = max(self._weigh(answer) + length, MIN_ENTRY_BYTES)
        self._answers.keep(question, (answer,), weight)
        return answer


class VersionedCache(Generic[T]):
    """Answers of the store by their questions, believed until the store changes."""

    def __init__(self, store: Store, weigh: Callable[[T], int], most: int = ANSWERS_MOST) -> None:
        self._store = store
        self._make = partial(SingleFlightCache, weigh, most)
        self._version: int | None = None
        self._answers: SingleFlightCache[T] = self._make()

    async def get(self, question: Hashable, read: Callable[[], Awaitable[T]], length: int = 0) -> T:
        """Return the answer as `SingleFlightCache.get` does, while the store is as it was then.

        Raises Problem as `Store.version` does.
        """
        version = self._store.version()  # before the rows, so that no change is missed
        if version != self._version:
            self._version, self._answers = version, self._make()
        return await self._answers.get(question, read, length)
