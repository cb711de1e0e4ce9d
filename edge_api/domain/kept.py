"""What was read from the store and is believed until the store changes.

All who ask meanwhile share one read, so that a crowd costs the store no more than one does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from edge_api.store.plan import Store

T = TypeVar("T")


class Kept(Generic[T]):
    """One value, read by `read` whenever it is asked for and the store is not as it was."""

    def __init__(self, store: Store, read: Callable[[], Awaitable[T]]) -> None:
        self._store = store
        self._read = read
        self._version: int | None = None
        self._value: asyncio.Future[T] | None = None

    async def get(self) -> T:
        """Return the value. Raises what `read` raises, and Problem as `Store.version` does."""
        version = self._store.version()  # before the rows, so that no change is missed
        if self._value is None or self._version != version:
            self._version, self._value = version, asyncio.ensure_future(self._read())
            self._value.add_done_callback(self._forget_failure)
        return await asyncio.shield(self._value)

    def _forget_failure(self, value: "asyncio.Future[T]") -> None:
        if (value.cancelled() or value.exception() is not None) and value is self._value:
            self._value = None
