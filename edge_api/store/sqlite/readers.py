"""Readers: connections that only read, the quick ones apart from those that may take long.

A read sees one snapshot. It is ended when its time is over or nobody waits for it any more.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

from edge_api.store.faults import overdue, unavailable
from edge_api.store.matching import ilike, like
from edge_api.store.plan import Outcome, Read
from edge_api.store.sqlite.connection import Connection, connect
from edge_api.store.sqlite.dialect import ILIKE, LIKE
from edge_api.store.sqlite.execution import carry_out
from edge_api.store.sqlite.limit import STEPS_BETWEEN_LOOKS, Limit
from edge_api.store.sqlite.place import Place

Match = Callable[[str | None, str], bool | None]

QUICK: Final = 2
PATIENT: Final = 2
"""Connections of each kind; each has a thread of its own."""
QUICK_SECONDS: Final = 10.0
"""The limit of a read that sets none: it is meant to take milliseconds."""
CLOSE_SECONDS: Final = 1.0
"""What is left to a read when its connection is to be closed."""


class Reader:
    """One connection that only reads."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._limits: list[Limit] = []
        self._limit = Limit(0)
        """Of the read that is going on now; known to the connection's thread alone."""
        self._closed = False

    @classmethod
    async def open(cls, path: Path, place: Place) -> Self:
        """Return a reader of the store at `path`. Raises sqlite3.Error."""
        reader = cls(await Connection.open(partial(connect, path, writes=False)), place)
        await reader._connection.call(reader._watch_clock)
        return reader

    def _watch_clock(self, connection: sqlite3.Connection) -> None:
        """Have the clock looked at between instructions, and by each call of a slow function."""

        def timed(match: Match) -> Match:
            def match_in_time(text: str | None, pattern: str) -> bool | None:
                if self._is_over():
                    connection.interrupt()
                return match(text, pattern)

            return match_in_time

        connection.set_progress_handler(self._is_over, STEPS_BETWEEN_LOOKS)
        connection.create_function(LIKE, 2, timed(like), deterministic=True)
        connection.create_function(ILIKE, 2, timed(ilike), deterministic=True)

    def _is_over(self) -> bool:
        return self._limit.is_over()

    @property
    def load(self) -> int:
        """Return how many reads it has to do."""
        return len(self._limits)

    async def run(self, plans: Sequence[Read], seconds: float) -> list[Outcome]:
        """Return the outcomes, all of one snapshot; `seconds` include the wait for its turn.

        Raises Problem, sqlite3.Error and Displaced.
        """
        if self._closed:
            raise unavailable("The store is closed")
        limit = Limit(seconds)
        self._limits.append(limit)
        try:
            return await self._connection.call(partial(self._read_snapshot, plans, limit))
        except asyncio.CancelledError:
            limit.shorten(0)
            raise
        finally:
            self._limits.remove(limit)

    def _read_snapshot(
        self, plans: Sequence[Read], limit: Limit, connection: sqlite3.Connection
    ) -> list[Outcome]:
        if limit.is_over():
            raise overdue()
        self._place.check()
        self._limit = limit
        connection.execute("BEGIN")
        try:
            return carry_out(connection, plans)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    async def close(self) -> None:
        """Give what is being read a moment to come to its end, and close."""
        self._closed = True
        for limit in self._limits:
            limit.shorten(CLOSE_SECONDS)
        await self._connection.close()


class Readers:
    """All readers of a store; long reads never stand in the way of quick ones."""

    def __init__(self, quick: Sequence[Reader], patient: Sequence[Reader]) -> None:
        self._quick = quick
        self._patient = patient

    async def run(self, plans: Sequence[Read]) -> list[Outcome]:
        """Return the outcomes, all of one snapshot. Raises as `Reader.run` does."""
        seconds = max((plan.seconds for plan in plans if plan.seconds is not None), default=None)
        if seconds is None:
            return await _idlest(self._quick).run(plans, QUICK_SECONDS)
        return await _idlest(self._patient).run(plans, seconds)

    async def close(self) -> None:
        """Close every reader."""
        await asyncio.gather(*(reader.close() for reader in (*self._quick, *self._patient)))


def _idlest(readers: Sequence[Reader]) -> Reader:
    return min(readers, key=lambda reader: reader.load)
