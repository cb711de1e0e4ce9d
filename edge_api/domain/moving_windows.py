"""Where moving windows are kept: in memory, for the strategies of the `limits` library.

The library's own memory storage never lets go of a key and starts a thread after each hit; this
one drops what has passed on its way, asks the clock that it was given, and counts what it hears of
other edges.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from limits.storage import MemoryStorage

from edge_api.schema.rates import Share

_SWEEP_FROM: Final = 1024
"""Fewer windows than this are not worth looking through."""
_NOTHING: Final[deque[float]] = deque(maxlen=0)


class MovingWindows(MemoryStorage):
    """The instants of the hits within each window, oldest first; used by one thread."""

    def __init__(self, now: Callable[[], float], *, tells: bool = False) -> None:
        """Take the clock; with `tells` it is noted which windows change, for `take_untold`."""
        super().__init__()
        self._now = now
        self._windows: dict[str, tuple[int, deque[float]]] = {}
        """For each key the seconds that its hits count, and their instants."""
        self._sweep_at = _SWEEP_FROM
        self._elsewhere: dict[str, deque[float]] = {}
        """The instants of the hits that other edges have told of."""
        self._tells = tells
        self._untold: set[str] = set()
        self._told: set[str] = set()

    def take_untold(self) -> Mapping[str, Share]:
        """Return the own hits of every window that was changed since this was last asked.

        Those of the time before come once more: others may have told of theirs since.
        """
        due = self._untold | self._told
        self._untold, self._told = set(), self._untold
        now = self._now()
        return {
            key: Share(window[0], tuple(now - instant for instant in window[1]))
            for key in due
            if (window := self._windows.get(key)) is not None
        }

    def tell_again(self, keys: Iterable[str]) -> None:
        """Take windows for untold that nobody could be told of."""
        self._untold.update(keys)

    def hear(self, key: str, ages: Sequence[float]) -> None:
        """Count the hits of all others, of these ages in seconds, oldest first, as they now are."""
        now = self._now()
        self._elsewhere[key] = deque(now - age for age in ages)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits and return True, or return False if they do not fit."""
        instants = self._within(key, expiry)
        if len(instants) + len(self._heard(key, expiry)) + amount > limit:
            return False
        instants.extend([self._now()] * amount)
        self._note(key)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002  the library's signature
        """Return the instant of the oldest hit that counts (now without one) and their number."""
        own, others = self._within(key, expiry), self._heard(key, expiry)
        oldest = min((instants[0] for instants in (own, others) if instants), default=self._now())
        return oldest, len(own) + len(others)

    def take_back(self, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        _, instants = self._windows.get(key, (0, deque[float]()))
        if instants:
            instants.pop()
            self._note(key)

    def clear(self, key: str) -> None:
        """Forget one key."""
        self._windows.pop(key, None)
        self._elsewhere.pop(key, None)

    def reset(self) -> int:
        """Forget every key and return how many there were."""
        count = len(self._windows)
        self._windows.clear()
        self._elsewhere.clear()
        return count

    def _note(self, key: str) -> None:
        if self._tells:
            self._untold.add(key)

    def _within(self, key: str, expiry: int) -> deque[float]:
        """Return the instants of a key that still count."""
        window = self._windows.get(key)
        if window is None:
            self._sweep()
            window = self._windows[key] = expiry, deque()
        return self._drop_passed(window[1], expiry)

    def _heard(self, key: str, expiry: int) -> deque[float]:
        """Return the instants of a key that others told of and that still count."""
        heard = self._elsewhere.get(key)
        return _NOTHING if heard is None else self._drop_passed(heard, expiry)

    def _drop_passed(self, instants: deque[float], expiry: int) -> deque[float]:
        if instants:
            ends_at = self._now() - expiry
            while instants and instants[0] <= ends_at:
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
        self._elsewhere = {
            key: heard for key, heard in self._elsewhere.items() if key in self._windows
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._windows))
