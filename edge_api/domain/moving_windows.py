"""Where moving windows are kept: in memory, for the strategies of the `limits` library.

The library's own memory storage never lets go of a key and starts a thread after each hit; this
one drops what has passed on its way, and asks the clock that it was given.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from limits.storage import MemoryStorage

_SWEEP_FROM: Final = 1024
"""Fewer windows than this are not worth looking through."""


class MovingWindows(MemoryStorage):
    """The instants of the hits within each window, oldest first; used by one thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self._windows: dict[str, tuple[int, deque[float]]] = {}
        """For each key the seconds that its hits count, and their instants."""
        self._sweep_at = _SWEEP_FROM

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits and return True, or return False if they do not fit."""
        instants = self._within(key, expiry)
        if len(instants) + amount > limit:
            return False
        instants.extend([self._now()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002  the library's signature
        """Return the instant of the oldest hit that counts (now without one) and their number."""
        instants = self._within(key, expiry)
        return (instants[0] if instants else self._now()), len(instants)

    def take_back(self, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        _, instants = self._windows.get(key, (0, deque[float]()))
        if instants:
            instants.pop()

    def clear(self, key: str) -> None:
        """Forget one key."""
        self._windows.pop(key, None)

    def reset(self) -> int:
        """Forget every key and return how many there were."""
        count = len(self._windows)
        self._windows.clear()
        return count

    def _within(self, key: str, expiry: int) -> deque[float]:
        """Return the instants of a key that still count."""
        window = self._windows.get(key)
        if window is None:
            self._sweep()
            window = self._windows[key] = expiry, deque()
        instants, now = window[1], self._now()
        while instants and instants[0] + expiry <= now:
            instants.popleft()
        return instants

    def _sweep(self) -> None:
        """Drop the keys that count nothing, each time their number has doubled."""
        if len(self._windows) < self._sweep_at:
            return
        now = self._now()
        self._windows = {
            key: (expiry, instants)
            for key, (expiry, instants) in self._windows.items()
            if instants and instants[-1] + expiry > now
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._windows))
