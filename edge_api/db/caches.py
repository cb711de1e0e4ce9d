"""Single-flight execution, and caches in memory."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MIN_ENTRY_BYTES: Final = 16 * 1024  # the least size counted for an entry, with its overhead


class SingleFlight(Generic[T]):
    """Runs work for a key once at a time: callers that use the same key share the result.

    A cancelled caller leaves the work running for the others. With `cancel_when_unused` the work is
    cancelled with its last caller, and the next caller starts it again.
    """

    def __init__(self, *, cancel_when_unused: bool = False) -> None:
        self._cancel_when_unused = cancel_when_unused
        self._tasks: dict[Hashable, asyncio.Future[T]] = {}
        self._waiting: Counter[asyncio.Future[T]] = Counter()

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the work for `key`, started unless it runs. Raises its errors."""
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
            task.exception()  # mark it as retrieved: else asyncio logs it where nobody waits


class SizedCache(Generic[T]):
    """A cache of a limited total size that evicts the least recently used value.

    The default limit of 64 MiB holds some 10,000 compressed pages of a journal.
    """

    def __init__(self, limit: int = 64 * 1024 * 1024) -> None:
        self._entries: OrderedDict[Hashable, tuple[T, int, object]] = OrderedDict()
        self._limit = limit
        self._size = 0

    def get(self, key: Hashable) -> T | None:
        """Return the value for `key`, or `None`."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: T, size: int, owner: object = None) -> None:
        """Store `value` of `size` (in the unit of `limit`), unless that alone is over `limit`.

        `owner` is kept alive with the value, so that its `id` may be part of the key; `size`
        includes its size.
        """
        replaced = self._entries.pop(key, None)
        self._size -= replaced[1] if replaced else 0
        if size > self._limit:
            return
        self._size += size
        self._entries[key] = (value, size, owner)
        while self._size > self._limit:
            _, (_, removed_size, _) = self._entries.popitem(last=False)
            self._size -= removed_size


class SingleFlightCache(Generic[T]):
    """A cache in which concurrent callers share one read of a value.

    `size_of` returns the bytes of a value; all values together have at most `limit` bytes, by
    default 4 MiB. A key of values made from rows includes `Store.version`, taken before the read,
    so that no change is missed.
    """

    def __init__(self, size_of: Callable[[T], int], limit: int = 4 * 1024 * 1024) -> None:
        self._size_of = size_of
        self._values: SizedCache[tuple[T]] = SizedCache(limit)
        self._reads: SingleFlight[T] = SingleFlight(cancel_when_unused=True)

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]], key_size: int = 0) -> T:
        """Return the cached value, or the result of `read`.

        `key_size` is the size of the key itself in bytes, where it may be long. The read is
        cancelled when its last waiting caller is cancelled. Raises what `read` raises.
        """
        cached = self._values.get(key)
        if cached is not None:
            return cached[0]
        return await self._reads.run(key, partial(self._read, key, read, key_size))

    async def _read(self, key: Hashable, read: Callable[[], Awaitable[T]], key_size: int) -> T:
        value = await read()
        self._values.put(key, (value,), max(self._size_of(value) + key_size, MIN_ENTRY_BYTES))
        return value
