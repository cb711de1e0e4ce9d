"""Limits counted in the memory of this process, by the strategy of the `limits` library."""

from collections.abc import Callable

from limits.strategies import MovingWindowRateLimiter

from edge_api.domain.moving_windows import MovingWindows
from edge_api.schema.rates import Limit, Tally


class MemoryWindows:
    """Counts hits; `now` gives seconds on a clock that never goes back.

    Nothing here waits, so that a caller goes on without giving way to others.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows = MovingWindows(now)
        self._strategy = MovingWindowRateLimiter(self._windows)

    async def hit(self, limit: Limit, key: str) -> Tally:
        """Count a hit if every window of the limit has room for it."""
        fits = all(self._strategy.test(item, limit.name, key) for item in limit.items)
        if fits:
            for item in limit.items:
                self._strategy.hit(item, limit.name, key)
        return self._tally(limit, key, taken=fits)

    async def look(self, limit: Limit, key: str) -> Tally:
        """Return what is left, without counting anything."""
        return self._tally(limit, key, taken=False)

    async def take_back(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        for item in limit.items:
            self._windows.take_back(item.key_for(limit.name, key))

    def _tally(self, limit: Limit, key: str, *, taken: bool) -> Tally:
        now = self._now()
        stats = [self._strategy.get_window_stats(item, limit.name, key) for item in limit.items]
        return Tally(taken, tuple((left, reset - now) for reset, left in stats))
