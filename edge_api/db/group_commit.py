"""Group commit: one transaction and one commit for all callers that wait.

It is independent of the engine, which passes in the function that executes a group.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from edge_api.db.errors import unavailable

W = TypeVar("W")
Commit = Callable[[Sequence[W]], Awaitable[Sequence[Any]]]
"""Runs works in one transaction and returns, after the commit, the result of each.

A work that failed has its exception for a result. It raises when the whole group is lost.
"""

GROUP_MOST: Final = 256
"""Callers that share a commit: beyond a few hundred a sync is spread thin enough, and the first
of them would wait for too many."""
DRAIN_SECONDS: Final = 3.0
"""How long callers that wait already may keep a closing store open."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call(Generic[W]):
    work: W
    answer: asyncio.Future[Any]


class GroupCommitter(Generic[W]):
    """Gathers work while the last group is committed, and has it committed as the next.

    Each caller is answered after the commit and never before.
    """

    def __init__(self, commit: Commit[W]) -> None:
        self._commit = commit
        self._waiting: deque[_Call[W]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.failed = False
        """Whether the last group was lost."""

    async def run(self, work: W) -> Any:
        """Return the result of `work`, once that is durable.

        Raises what the work raises, and what `commit` raises when its whole group is lost. A
        caller that is cancelled leaves the others alone; its work is dropped unless it has begun.
        """
        self.refuse_closed()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(work, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_groups())
            self._task.add_done_callback(self._note_end)
        return await answer

    def refuse_closed(self) -> None:
        """Raise Problem `unavailable` once it is closed."""
        if self._closed:
            raise unavailable("The store is closed")

    async def close(self) -> None:
        """Commit what waits, for a few seconds at the most, and refuse the rest."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DRAIN_SECONDS)
        self._refuse_waiting()

    async def _commit_groups(self) -> None:
        while self._waiting:
            await self._commit_group(self._next_group())

    def _next_group(self) -> list[_Call[W]]:
        count = min(len(self._waiting), GROUP_MOST)
        calls = [self._waiting.popleft() for _ in range(count)]
        return [call for call in calls if not call.answer.done()]

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
                _settle(call.answer, result)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        # A loop that is torn down cancels tasks, also those that have not begun.
        if task.cancelled():
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        while self._waiting:
            _settle(self._waiting.popleft().answer, unavailable("The store was stopped"))


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    """Answer a caller, unless it has gone meanwhile."""
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
