"""Limits counted in the memory of this process, by the strategy of the `limits` library.

Edges that share a store tell one another what each has counted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from limits.strategies import MovingWindowRateLimiter

from edge_api.domain.moving_windows import MovingWindows
from edge_api.schema.problems import Problem
from edge_api.schema.rates import Limit, Share, Tally


class Exchange(Protocol):
    """Where edges tell one another what each has counted by itself."""

    async def exchange(self, told: Mapping[str, Share]) -> Mapping[str, Sequence[float]]:
        """Put down the own hits of some windows, and return those of all others in the same.

        Of each window the ages of its hits in seconds, oldest first. Raises Problem `unavailable`.
        """


class MemoryWindows:
    """Counts hits; `now` gives seconds on a clock that never goes back.

    Nothing here waits, so that a caller goes on without giving way to others.
    """

    def __init__(self, now: Callable[[], float], *, tells: bool = False) -> None:
        """Take the clock; with `tells` what is counted is kept for `exchange`."""
        self._now = now
        self._windows = MovingWindows(now, tells=tells)
        self._strategy = MovingWindowRateLimiter(self._windows)

    async def exchange(self, place: Exchange) -> None:
        """Tell other edges what was counted here since the last time, and count what they tell.

        What could not be told now is told the next time. Raises Problem `unavailable`.
        """
        told = self._windows.take_untold()
        if not told:
            return
        try:
            heard = await place.exchange(told)
        except Problem:
            self._windows.tell_again(told)
            raise
        for key in told:
            self._windows.hear(key, heard.get(key, ()))

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
