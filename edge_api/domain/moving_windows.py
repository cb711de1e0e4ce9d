"""One moving window: the instants of the hits that still count, own ones and others' of the same.

It is asked the time and looks at no clock; whose hits these are is not known here.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from edge_api.schema.rates import Share

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

    def take_back(self) -> bool:
        """Uncount the newest own hit; tell whether there was one."""
        if self._own:
            self._own.pop()
            return True
        return False

    def hear(self, instants: Iterable[float]) -> None:
        """Count the hits of all others, oldest first, as they now are."""
        self._heard = deque(instants)

    def share(self, now: float) -> Share:
        """Return what others have to be told of the own hits."""
        return Share(self.seconds, tuple(now - instant for instant in self._own))

    def is_live(self, now: float) -> bool:
        """Tell whether an own hit counts still."""
        return bool(self._own) and self._own[-1] + self.seconds > now
