"""A pool of SQLite connections for full-text search, with a limit for each read.

A read is interrupted at its deadline, and never started once its caller is cancelled. The pool
knows nothing of the queries.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Self, TypeVar

from edge_api.db.errors import unavailable
from edge_api.db.problems import Problem
from edge_api.db.sqlite.connection import Connection, Deadline

MAX_CONNECTIONS: Final = 2
"""Each has a thread of its own."""
MAX_READS: Final = 64
"""Reads in progress and waiting, in all; beyond that a read fails at once."""
WAIT_SECONDS: Final = 2.0
"""The time limit of a read, with its wait."""
RUN_SECONDS: Final = 0.5
"""The time limit of a read without its wait; it is meant to take milliseconds."""
_STEPS_BETWEEN_CHECKS: Final = 500
"""Few: one instruction may rank a whole document."""

T = TypeVar("T")


class _PooledConnection:
    """One connection, and the limits of all reads that were given to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.deadlines: list[Deadline] = []
        self._deadline = Deadline(0)
        """Of the read that is going on now; known to the connection's thread alone."""

    def set_deadline_checks(self, connection: sqlite3.Connection) -> None:
        connection.set_progress_handler(self._is_expired, _STEPS_BETWEEN_CHECKS)

    def _is_expired(self) -> bool:
        return self._deadline.is_expired()

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        deadline = Deadline(WAIT_SECONDS)
        self.deadlines.append(deadline)
        try:
            return await self.connection.call(partial(self._work, work, deadline))
        except asyncio.CancelledError:
            deadline.shorten(0)
            raise
        finally:
            self.deadlines.remove(deadline)

    def _work(
        self,
        work: Callable[[sqlite3.Connection], T],
        deadline: Deadline,
        connection: sqlite3.Connection,
    ) -> T:
        if deadline.is_expired():
            raise _busy()
        deadline.shorten(RUN_SECONDS)
        self._deadline = deadline
        return work(connection)


class SearchConnectionPool:
    """Connections to one file, open."""

    def __init__(self, connections: Sequence[_PooledConnection]) -> None:
        self._connections = connections

    @classmethod
    async def open(cls, connector: Callable[[], sqlite3.Connection]) -> Self:
        """Return a pool of connections. Raises sqlite3.Error."""
        connections: list[_PooledConnection] = []
        try:
            for _ in range(MAX_CONNECTIONS):
                connections.append(_PooledConnection(await Connection.open(connector)))
                await connections[-1].connection.call(connections[-1].set_deadline_checks)
        except BaseException:
            await cls(connections).close()
            raise
        return cls(connections)

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the least busy connection and return what it returns.

        Raises Problem `unavailable` where too many wait, or the time is over; sqlite3.Error.
        """
        if sum(len(pooled.deadlines) for pooled in self._connections) >= MAX_READS:
            raise _busy()
        try:
            return await min(self._connections, key=lambda pooled: len(pooled.deadlines)).call(work)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise unavailable("The search took too long: use fewer words") from None
            raise

    async def close(self) -> None:
        """Close every connection, after its waiting reads."""
        await asyncio.gather(*(pooled.connection.close() for pooled in self._connections))


def _busy() -> Problem:
    """Return the problem of a read that was not started, since too many others wait."""
    return unavailable("Too many searches are under way")
