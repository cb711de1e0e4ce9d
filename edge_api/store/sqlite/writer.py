"""The one writer: work that waits together shares a transaction and its sync to the disk.

Each caller is answered after the commit and never before. Savepoints keep the callers apart: one
that fails is rolled back alone. When the commit fails, nothing of the group has happened.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from edge_api.store.faults import unavailable
from edge_api.store.sqlite.connection import Connection, empty_log
from edge_api.store.sqlite.place import Place

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Runs statements inside a transaction that others begin and end; it may be run a second time."""

GROUP_MOST: Final = 256
"""Callers that share a commit: beyond a few hundred a sync is spread thin enough, and the first
of them would wait for too many."""
DRAIN_SECONDS: Final = 3.0
"""How long callers that wait already may keep a closing store open."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    work: Work[Any]
    answer: asyncio.Future[Any]


class Writer:
    """Gathers work while the last group is committed, and commits it as the next."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._waiting: deque[_Call] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.failed = False
        """Whether the last group was lost."""

    async def run(self, work: Work[T]) -> T:
        """Return what `work` returns, once that is durable.

        Raises what `work` raises, and sqlite3.Error or Displaced when its whole group is lost. A
        caller that is cancelled leaves the others alone; its work is dropped unless it has begun.
        """
        if self._closed:
            raise unavailable("The store is closed")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(work, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_groups())
            self._task.add_done_callback(self._note_end)
        return await answer

    async def empty_log(self, *, rewrites: bool) -> bool:
        """Cut the log between two groups; tell whether nobody stood in the way."""
        if self._closed:
            raise unavailable("The store is closed")
        return await self._connection.call(partial(empty_log, rewrites=rewrites))

    async def close(self) -> None:
        """Commit what waits, for a few seconds at the most, and refuse the rest.

        The log is brought into the file, wherever that has gone: it must not be found beside
        another one that has taken its place.
        """
        if self._closed:
            return
        self._closed = True
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DRAIN_SECONDS)
        self._refuse_waiting()
        try:
            await self._connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            await self._connection.close()

    async def _commit_groups(self) -> None:
        while self._waiting:
            await self._commit_group(self._next_group())

    def _next_group(self) -> list[_Call]:
        count = min(len(self._waiting), GROUP_MOST)
        calls = [self._waiting.popleft() for _ in range(count)]
        return [call for call in calls if not call.answer.done()]

    async def _commit_group(self, group: Sequence[_Call]) -> None:
        works = [call.work for call in group]
        results: Sequence[Any] = [unavailable("The store was stopped") for _ in group]
        try:
            results = await self._connection.call(partial(commit_together, self._place, works))
            self.failed = False
        except Exception as error:  # noqa: BLE001  whatever it is, every caller has to be told
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


def commit_together(
    place: Place, works: Sequence[Work[Any]], connection: sqlite3.Connection
) -> list[Any]:
    """Run each work, commit once, and return all results.

    A work that raises has its exception for a result. Raises sqlite3.Error and Displaced when
    nothing of the whole group is durable.
    """
    place.check()
    connection.execute("BEGIN IMMEDIATE")
    try:
        results = _run_all(connection, works)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    place.check()
    return results


def _run_all(connection: sqlite3.Connection, works: Sequence[Work[Any]]) -> list[Any]:
    """Run the works as they are; should one fail, begin again with a savepoint for each.

    Savepoints are what costs most in a transaction, and nearly always no work fails.
    """
    try:
        return [work(connection) for work in works]
    except Exception:  # noqa: BLE001  which work it was comes out at the second attempt
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        return [_attempt(connection, work) for work in works]


def _attempt(connection: sqlite3.Connection, work: Work[T]) -> T | Exception:
    connection.execute("SAVEPOINT work")
    try:
        result = work(connection)
    except Exception as error:
        # A disk that is full or fails ends the whole transaction, not this work alone.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        return error
    connection.execute("RELEASE work")
    return result


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    """Answer a caller, unless it has gone meanwhile."""
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
