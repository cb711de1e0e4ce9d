"""A look at whether the store works, shared by all who ask at about the same time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from edge_api.schema.problems import Problem
from edge_api.store.faults import LATER, unavailable

FRESH_SECONDS: Final = 2.0
"""How long the outcome of a look stands."""
PATIENCE_SECONDS: Final = 1.0
"""How long a look may take; longer than that nobody would want to wait for a row either."""


class Probe:
    """Looks at most once at a time, and at most every two seconds."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look
        self._task: asyncio.Task[str] | None = None
        self._stale_at = 0.0

    async def run(self) -> None:
        """Return when the store works, by a fresh look. Raises Problem `unavailable`."""
        if self._task is None or (self._task.done() and time.monotonic() > self._stale_at):
            self._task = asyncio.create_task(self._find_fault())
            self._stale_at = time.monotonic() + FRESH_SECONDS
        fault = await asyncio.shield(self._task)
        if fault:
            raise unavailable(fault)

    async def _find_fault(self) -> str:
        """Return what is wrong, or an empty text."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._look()
        except TimeoutError:
            return "The store does not answer"
        except Problem as problem:
            return problem.sentence.removesuffix(LATER)
        return ""
