"""A number that changes whenever rows may have changed, whoever changed them.

It is asked for with each request and must not wait, so a task looks at the server for all. What
was read after the number was had may be kept for as long as the number stays: a change by this
edge changes it before its caller is answered, a change by another edge within two seconds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from edge_api.store.postgres.connection import Session
from edge_api.store.postgres.faults import EngineError

LOOK_SECONDS: Final = 0.5
"""Between two looks."""
STALE_SECONDS: Final = 1.5
"""How long a look counts. Afterwards nothing is known of what others do, and nothing that was kept
may be trusted; two seconds is what a revocation may take on all edges."""

_LOOK: Final = "SELECT pg_current_snapshot()::text"
"""Which transactions a statement sees. Where that is the same, so are all rows."""


class Watch:
    """Looks at the server twice a second, on a connection of its own."""

    def __init__(self, connect: Callable[[], Awaitable[Session]]) -> None:
        self._connect = connect
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._number = 0
        self._seen = ""
        self._looked_at = 0.0

    def version(self) -> int:
        """Return the number; another each time while the server cannot be looked at."""
        if time.monotonic() > self._looked_at + STALE_SECONDS:
            self._number += 1
        return self._number

    def note_change(self) -> None:
        """Change the number for a change that this edge has made."""
        self._number += 1

    async def start(self) -> None:
        """Look for the first time, and go on until it is closed. Raises EngineError."""
        await self._look()
        self._task = asyncio.create_task(self._look_on())

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._drop()

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(*EngineError):
                await self._look()

    async def _look(self) -> None:
        try:
            if self._session is None or self._session.is_closed():
                self._session = await self._connect()
            at = time.monotonic()
            seen = await self._session.fetchval(_LOOK)
        except EngineError:
            self._drop()
            raise
        if seen != self._seen:
            self._seen = seen
            self._number += 1
        # The rows that a look tells of are those of the moment at which it was asked for.
        self._looked_at = at

    def _drop(self) -> None:
        if self._session is not None:
            self._session.terminate()
        self._session = None
