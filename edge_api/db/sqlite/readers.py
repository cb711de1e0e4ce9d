"""Connections that only read: each read goes to the least busy one, and ends at its deadline."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Final, Self, TypeVar

from edge_api.db.query import ilike, like
from edge_api.db.sqlite.connection import Connection
from edge_api.db.sqlite.execution import ILIKE, LIKE

STEPS_BETWEEN_CHECKS: Final = 4000
"""Instructions of SQLite's virtual machine between two checks of the deadline: some 100 us."""
CLOSE_SECONDS: Final = 1.0
"""The time left to a read when its connection is being closed."""

T = TypeVar("T")
Match = Callable[[str | None, str], bool | None]


class _Deadline:
    """The deadline of a read; the caller that waits for it may bring it forward."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def shorten(self, seconds: float) -> None:
        self._ends_at = min(self._ends_at, time.monotonic() + seconds)

    def is_expired(self) -> bool:
        return time.monotonic() >= self._ends_at


class _Reader:
    """One connection, and the deadlines of all reads that were given to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.deadlines: list[_Deadline] = []
        self.current = _Deadline(0)
        """Of the read that is going on now; known to the connection's thread alone."""

    def set_deadline_checks(self, steps: int, connection: sqlite3.Connection) -> None:
        """Check the deadline between instructions, and in each call of a slow function."""

        def is_expired() -> bool:
            return self.current.is_expired()

        def timed(match: Match) -> Match:
            def match_in_time(text: str | None, pattern: str) -> bool | None:
                if is_expired():
                    connection.interrupt()
                return match(text, pattern)

            return match_in_time

        connection.set_progress_handler(is_expired, steps)
        connection.create_function(LIKE, 2, timed(like), deterministic=True)
        connection.create_function(ILIKE, 2, timed(ilike), deterministic=True)


class Readers:
    """Connections to one file, open; each has a thread of its own."""

    def __init__(self, readers: Sequence[_Reader]) -> None:
        self._readers = readers

    @classmethod
    async def open(
        cls,
        connector: Callable[[], sqlite3.Connection],
        count: int,
        steps: int = STEPS_BETWEEN_CHECKS,
    ) -> Self:
        """Return so many connections, which check deadlines every `steps`. Raises sqlite3.Error."""
        readers: list[_Reader] = []
        try:
            for _ in range(count):
                readers.append(_Reader(await Connection.open(connector)))
                await readers[-1].connection.call(partial(readers[-1].set_deadline_checks, steps))
        except BaseException:
            await cls(readers).close()
            raise
        return cls(readers)

    @property
    def load(self) -> int:
        """The number of reads, running and waiting."""
        return sum(len(reader.deadlines) for reader in self._readers)

    async def run(
        self, work: Callable[[sqlite3.Connection], T], seconds: float, run_seconds: float = inf
    ) -> T:
        """Return what `work` returns within `seconds`, of which it may run for `run_seconds`.

        Raises TimeoutError if its turn does not come in time, and sqlite3.Error: SQLITE_INTERRUPT
        where it takes too long. It is never begun once the caller is cancelled.
        """
        reader = min(self._readers, key=lambda reader: len(reader.deadlines))
        deadline = _Deadline(seconds)

        def work_in_time(connection: sqlite3.Connection) -> T:
            if deadline.is_expired():
                raise TimeoutError
            deadline.shorten(run_seconds)
            reader.current = deadline
            return work(connection)

        reader.deadlines.append(deadline)
        try:
            return await reader.connection.call(work_in_time)
        except asyncio.CancelledError:
            deadline.shorten(0)
            raise
        finally:
            reader.deadlines.remove(deadline)

    async def close(self) -> None:
        """Let running reads finish within a moment, and close every connection."""
        for reader in self._readers:
            for deadline in reader.deadlines:
                deadline.shorten(CLOSE_SECONDS)
        await asyncio.gather(*(reader.connection.close() for reader in self._readers))
