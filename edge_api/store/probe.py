"""Whether the store works: a look that all share who ask at about the same time, and the log."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final

from edge_api.schema.problems import Problem, is_unavailable
from edge_api.store.faults import LATER, unavailable

FRESH_SECONDS: Final = 2.0
"""How long the outcome of a look stands."""
PATIENCE_SECONDS: Final = 1.0
"""How long a look may take; longer than that nobody would want to wait for a row either."""
RETURN_SECONDS: Final = 1.0
"""Between two looks at whether a store that is away is back."""

_log = logging.getLogger(__name__)


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


class Outage:
    """Logs that the store is away, and that it is back: a line each, whoever meets it meanwhile.

    Nobody else logs the problem `unavailable` of a store.
    """

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look
        self._task: asyncio.Task[None] | None = None
        self._failed = 0
        self._closed = False

    def note(self, fault: Exception, reason: object) -> None:
        """Count an attempt that failed with `unavailable`; log `reason` if it is the first.

        A read that took too long is none: its client is told, and background work logs it.
        """
        if self._closed or not is_unavailable(fault):
            return
        if self._task is None:
            self._failed = 1
            words = str(reason) or type(reason).__name__
            _log.warning("the store is unavailable: %s", words)
            # An empty context: the line belongs to no request id.
            self._task = asyncio.create_task(self._await_return(), context=Context())
        elif asyncio.current_task() is not self._task:  # a look of its own is no attempt
            self._failed += 1

    def close(self) -> None:
        """Log nothing more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    async def _await_return(self) -> None:
        """Log that the store is back once a look succeeds and no attempt fails meanwhile."""
        began, failed = time.monotonic(), -1
        while failed != self._failed:
            failed = self._failed
            await asyncio.sleep(RETURN_SECONDS)
            try:
                await self._look()
            except Exception:  # noqa: BLE001  whatever it is, the store is not back
                failed = -1
        self._task = None
        away, failed = time.monotonic() - began, self._failed
        _log.warning("the store is available again after %.1f s; %d attempts failed", away, failed)
