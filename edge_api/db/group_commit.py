"""Group commit: one transaction and one commit for all callers that wait, on any engine."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from edge_api.db.errors import unavailable

W = TypeVar("W")

MAX_GROUP_SIZE: Final = 256
"""Callers that share a commit: more would save little of each sync, and delay the first ones."""
DRAIN_SECONDS: Final = 3.0
"""How long a closing store may go on committing for callers that already wait."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call(Generic[W]):
    work: W
    future: asyncio.Future[Any]


class GroupCommitter(ABC, Generic[W]):
    """Collects work while the last group is committed, and commits it as the next group.

    Each caller is answered after the commit and never before.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Call[W]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.failed = False
        """Whether the last group was lost."""

    async def run(self, work: W) -> Any:
        """Return the result of `work`, once that is durable.

        Raises what the work raises, and what `_commit` raises when its whole group is lost. A
        caller that is cancelled leaves the others alone; its work is dropped unless it has begun.
        """
        self.refuse_closed()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(work, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_groups())
            self._task.add_done_callback(self._handle_end)
        return await future

    def refuse_closed(self) -> None:
        """Raise Problem `unavailable` once it is closed."""
        if self._closed:
            raise unavailable("The store is closed")

    async def close(self) -> None:
        """Commit waiting work, for a few seconds at the most, and refuse the rest."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DRAIN_SECONDS)
        self._refuse_waiting()

    @abstractmethod
    async def _commit(self, works: Sequence[W]) -> Sequence[Any]:
        """Run works in one transaction and return, once it is committed, the result of each.

        A work that failed has its exception for a result. Raises when the whole group is lost.
        """

    async def _commit_groups(self) -> None:
        while self._waiting:
            await self._commit_group(self._next_group())

    def _next_group(self) -> list[_Call[W]]:
        count = min(len(self._waiting), MAX_GROUP_SIZE)
        calls = [self._waiting.popleft() for _ in range(count)]
        return [call for call in calls if not call.future.done()]

    async def _commit_group(self, group: Sequence[_Call[W]]) -> None:
        results: Sequence[Any] = [unavailable("The store was stopped") for _ in group]
        try:
            results = await self._commit([call.work for call in group])
            self.failed = False
        except Exception as error:  # noqa: BLE001  whatever it is, every caller gets it
            results = [error for _ in group]
            self.failed = True
        finally:
            for call, result in zip(group, results, strict=True):
                _resolve(call.future, result)

    def _handle_end(self, task: asyncio.Task[None]) -> None:
        # A loop that is torn down cancels tasks, also those that have not begun.
        if task.cancelled():
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        while self._waiting:
            _resolve(self._waiting.popleft().future, unavailable("The store was stopped"))


def _resolve(future: asyncio.Future[Any], result: Any) -> None:
    """Set the result for a caller, unless it was cancelled meanwhile."""
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
