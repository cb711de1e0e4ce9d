"""Limits counted in one place by all edges, and what holds while that place is away."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from edge_api.domain.memory_windows import Exchange
from edge_api.schema.problems import Problem
from edge_api.schema.rates import Limit, Tally

T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0
"""Between two attempts to reach a place that is away: requests do not each wait for it."""


class Windows(Protocol):
    """Where hits are counted, each over the moving windows of its limit.

    Every method may raise Problem `unavailable`.
    """

    async def hit(self, limit: Limit, key: str) -> Tally:
        """Count a hit if every window of the limit has room for it."""

    async def look(self, limit: Limit, key: str) -> Tally:
        """Return what is left, without counting anything."""

    async def take_back(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""


class Together(Windows, Exchange, Protocol):
    """Where edges count together, and tell one another what each counts by itself."""


class SharedWindows:
    """Counts with all edges; while that cannot be done, this edge counts by itself.

    So no limit is lifted when the place is away, and nothing fails because it could not be counted.
    """

    def __init__(self, shared: Windows, own: Windows, now: Callable[[], float]) -> None:
        self._shared = shared
        self._own = own
        self._now = now
        self._is_away = False
        self._again_at = 0.0

    async def hit(self, limit: Limit, key: str) -> Tally:
        """Count a hit if every window of the limit has room for it."""
        return await self._ask(lambda windows: windows.hit(limit, key))

    async def look(self, limit: Limit, key: str) -> Tally:
        """Return what is left, without counting anything."""
        return await self._ask(lambda windows: windows.look(limit, key))

    async def take_back(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        await self._ask(lambda windows: windows.take_back(limit, key))

    async def _ask(self, ask: Callable[[Windows], Awaitable[T]]) -> T:
        if self._is_away and self._now() < self._again_at:
            return await ask(self._own)
        self._again_at = self._now() + PAUSE_SECONDS  # while it is away one alone tries again
        try:
            answer = await ask(self._shared)
        except Problem:  # whatever keeps it from counting
            self._is_away = True
            return await ask(self._own)
        self._is_away = False
        return answer
