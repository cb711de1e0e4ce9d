"""Connections that only read, the quick ones apart from those that may take long.

A read sees one snapshot. It is ended when its time is over or nobody waits for it any more.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self, TypeAlias

import asyncpg

from edge_api.store.faults import overdue
from edge_api.store.plan import Outcome, Read
from edge_api.store.postgres.connection import (
    CONNECT_SECONDS,
    MARGIN_SECONDS,
    SETTINGS,
    Connection,
    PooledSession,
    milliseconds,
)
from edge_api.store.postgres.execution import carry_out
from edge_api.store.postgres.faults import EngineError

QUICK: Final = 4
PATIENT: Final = 2
"""The most connections of each kind. With the one that writes and the one that watches a store has
eight at the most; a server has 100 unless it is set otherwise."""
QUICK_SECONDS: Final = 10.0
"""The limit of a read that sets none: it is meant to take milliseconds."""
RELEASE_SECONDS: Final = 1.0
"""How long the server may take to end a read that nobody waits for; then its connection goes."""
CLOSE_SECONDS: Final = 1.0
"""What is left to a read when its connection is to be closed."""

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


class Readers:
    """All readers of a store; long reads never stand in the way of quick ones.

    A pool opens a connection when one is needed, and a new one in the place of one that broke.
    """

    def __init__(self, quick: Pool, patient: Pool) -> None:
        self._quick = quick
        self._patient = patient

    @classmethod
    async def open(cls, url: str) -> Self:
        """Return readers of the database at `url`."""
        return cls(await _pool(url, QUICK), await _pool(url, PATIENT))

    async def run(self, plans: Sequence[Read]) -> list[Outcome]:
        """Return the outcomes, all of one snapshot. Raises Problem and EngineError."""
        seconds = max((plan.seconds for plan in plans if plan.seconds is not None), default=None)
        if seconds is None:
            return await _read(self._quick, plans, QUICK_SECONDS)
        return await _read(self._patient, plans, seconds, is_limited=True)

    async def close(self) -> None:
        """Give what is being read a moment to come to its end, and close."""
        await asyncio.gather(_close(self._quick), _close(self._patient))


async def _pool(url: str, most: int) -> Pool:
    settings = {
        **SETTINGS,
        "default_transaction_read_only": "on",
        "statement_timeout": milliseconds(QUICK_SECONDS),
        "idle_in_transaction_session_timeout": milliseconds(QUICK_SECONDS),
    }
    return await asyncpg.create_pool(
        url,
        min_size=0,  # else a task of the pool's own would try to connect, and log each failure
        max_size=most,
        timeout=CONNECT_SECONDS,
        server_settings=settings,
        connection_class=PooledSession,
    )


async def _close(pool: Pool) -> None:
    try:
        await asyncio.wait_for(pool.close(), CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()


async def _read(
    pool: Pool, plans: Sequence[Read], seconds: float, *, is_limited: bool = False
) -> list[Outcome]:
    """Carry out the plans; `seconds` include the wait for a connection."""
    ends_at = time.monotonic() + seconds
    try:
        async with asyncio.timeout(seconds + MARGIN_SECONDS):
            connection = await pool.acquire(timeout=seconds)
            try:
                if len(plans) == 1 and not plans[0].counted and not is_limited:
                    return await carry_out(connection, plans)
                return await _read_snapshot(connection, plans, ends_at - time.monotonic())
            finally:
                await pool.release(connection, timeout=RELEASE_SECONDS)
    except TimeoutError:
        if time.monotonic() < ends_at:
            raise  # the server does not let us connect
        raise overdue() from None
    except asyncpg.QueryCanceledError:
        raise overdue() from None


async def _read_snapshot(
    connection: Connection, plans: Sequence[Read], seconds: float
) -> list[Outcome]:
    """Carry out the plans in one transaction, and leave none open on a connection that is kept."""
    try:
        await connection.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SET LOCAL statement_timeout = {milliseconds(seconds)}"
        )
        outcomes = await carry_out(connection, plans)
        await connection.execute("COMMIT")
    except BaseException:
        await _roll_back(connection)
        raise
    return outcomes


async def _roll_back(connection: Connection) -> None:
    """End a transaction that has failed: a pool would too, but log an error for it."""
    try:
        await connection.execute("ROLLBACK", timeout=RELEASE_SECONDS)
    except EngineError:
        with suppress(asyncpg.InterfaceError):  # the pool has taken it away already
            connection.terminate()
