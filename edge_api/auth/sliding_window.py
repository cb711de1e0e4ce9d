"""Limits counted in the memory of this process, over moving windows of instants.

Every request with a credential passes here, so that this is done by hand and not by the strategies
of a library. Edges that share a store tell one another what each has counted.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from edge_api.db.problems import Problem
from edge_api.schema.credentials import Limit, LimitDecision, Share

_NOTHING: Final[deque[float]] = deque(maxlen=0)
"""What others have told of most windows; never added to."""


class MovingWindow:
    """The hits within the last `seconds`, of which there may be `most`."""

    __slots__ = ("_heard", "_own", "key", "most", "seconds")

    def __init__(self, key: str, most: int, seconds: int) -> None:
        """Begin without hits; `key` is what edges call the window among themselves."""
        self.key = key
        self.most = most
        self.seconds = seconds
        self._own: deque[float] = deque()
        self._heard = _NOTHING

    def left(self, now: float) -> int:
        """Return how many hits there is room for, and forget those that no longer count.

        Edges that have not heard of one another may together have taken more than there was.
        """
        ended, own, heard = now - self.seconds, self._own, self._heard
        while own and own[0] <= ended:
            own.popleft()
        while heard and heard[0] <= ended:
            heard.popleft()
        return max(0, self.most - len(own) - len(heard))

    def wait(self, now: float) -> float:
        """Return the seconds until the oldest of the hits stops counting; of none, all seconds."""
        oldest = self._own[0] if self._own else now
        if self._heard:
            oldest = min(oldest, self._heard[0])
        return oldest + self.seconds - now

    def count(self, now: float) -> None:
        """Count a hit."""
        self._own.append(now)

    def refund(self) -> bool:
        """Uncount the newest own hit; tell whether there was one."""
        if self._own:
            self._own.pop()
            return True
        return False

    def merge(self, instants: Iterable[float]) -> None:
        """Count the hits of all others, oldest first, as they now are."""
        self._heard = deque(instants)

    def share(self, now: float) -> Share:
        """Return what others have to be told of the own hits."""
        return Share(self.seconds, tuple(now - instant for instant in self._own))

    def is_live(self, now: float) -> bool:
        """Tell whether an own hit counts still."""
        return bool(self._own) and self._own[-1] + self.seconds > now


_SWEEP_FROM: Final = 1024
"""Fewer callers than this are not worth looking through."""


class Exchange(Protocol):
    """Where edges tell one another what each has counted by itself."""

    async def exchange(self, told: Mapping[str, Share]) -> Mapping[str, Sequence[float]]:
        """Put down the own hits of some windows, and return those of all others in the same.

        Of each window the ages of its hits in seconds, oldest first. Raises Problem `unavailable`.
        """


class SlidingWindows:
    """Counts hits; `now` gives seconds on a clock that never goes back.

    Nothing here waits, so that a caller goes on without giving way to others. Used by one thread.
    """

    def __init__(self, now: Callable[[], float], *, tells: bool = False) -> None:
        """Take the clock; with `tells` what is counted is kept for `exchange`."""
        self._now = now
        self._callers: dict[tuple[str, str], tuple[MovingWindow, ...]] = {}
        """The windows of each limit, by its name and who is counted."""
        self._sweep_at = _SWEEP_FROM
        self._tells = tells
        self._untold: dict[str, MovingWindow] = {}
        self._told: dict[str, MovingWindow] = {}

    async def exchange(self, place: Exchange) -> None:
        """Tell other edges what was counted here since the last time, and count what they tell.

        What was told the last time is told once more: others may have told of theirs since. What
        could not be told now is told the next time. Raises Problem `unavailable`.
        """
        due = {**self._told, **self._untold}
        if not due:
            return
        self._untold, self._told = {}, self._untold
        now = self._now()
        try:
            heard = await place.exchange({key: window.share(now) for key, window in due.items()})
        except Problem:
            self._untold = {**due, **self._untold}
            raise
        now = self._now()
        for key, window in due.items():
            window.merge(now - age for age in heard.get(key, ()))

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        return self.count(limit, key)

    def count(self, limit: Limit, key: str) -> LimitDecision:
        """Do as `hit` does, for callers that cannot wait."""
        now, windows = self._now(), self._windows(limit, key)
        left = [window.left(now) for window in windows]
        taken = min(left) > 0
        if taken:
            left = [room - 1 for room in left]
            for window in windows:
                window.count(now)
                self._note(window)
        waits = [window.wait(now) for window in windows]
        return LimitDecision(taken, tuple(zip(left, waits, strict=True)))

    async def look(self, limit: Limit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""
        now = self._now()
        windows = self._windows(limit, key)
        counted = tuple((window.left(now), window.wait(now)) for window in windows)
        return LimitDecision(taken=False, windows=counted)

    async def refund(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        now = self._now()
        for window in self._windows(limit, key):
            window.left(now)
            if window.refund():
                self._note(window)

    def _note(self, window: MovingWindow) -> None:
        if self._tells:
            self._untold[window.key] = window

    def _windows(self, limit: Limit, key: str) -> tuple[MovingWindow, ...]:
        """Return where the hits of one caller are counted."""
        found = self._callers.get((limit.name, key))
        if found is None:
            self._sweep()
            found = self._callers[limit.name, key] = tuple(
                MovingWindow(item.key_for(limit.name, key), item.amount, item.get_expiry())
                for item in limit.items
            )
        return found

    def _sweep(self) -> None:
        """Forget callers of whom nothing counts, each time their number has doubled."""
        if len(self._callers) < self._sweep_at:
            return
        now = self._now()
        self._callers = {
            caller: windows
            for caller, windows in self._callers.items()
            if any(window.is_live(now) for window in windows)
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._callers))
