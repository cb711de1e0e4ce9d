"""Work that several requests need at the same time, done once for all of them.

What the work is, and how long its outcome is kept, is not known here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

Outcome = TypeVar("Outcome")


class SharedWork(Generic[Outcome]):
    """Work under way, by a key of the caller's."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Outcome]] = {}

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
        """Return the outcome of the work that is under way for `key`; begin it if none is.

        Raises what the work raises, to everybody who waits. Whoever stops waiting leaves it running
        for the others.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    def _end(self, key: Hashable, task: asyncio.Task[Outcome]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # looked at: perhaps nobody waits for it any more
