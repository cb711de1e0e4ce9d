"""Limits counted in the memory of this process, over moving windows of instants.

Every request with a credential passes here, so that this is done by hand and not by the strategies
of a library. Edges that share a store tell one another what each has counted.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Final, Protocol

from edge_api.db.problems import Problem
from edge_api.schema.credentials import Limit, LimitDecision, Share

Caller = tuple[str, str]
"""The name of a limit, and who is counted."""
Hits = tuple[float, ...]
"""Instants, oldest first. Python's collector visits no tuple of numbers: of a hundred thousand
callers it would else stop the service for a tenth of a second, again and again."""

_SWEEP_FROM: Final = 1024
"""Fewer callers than this are not worth looking through."""


def _since(hits: Hits, ended: float) -> Hits:
    """Return the hits that count still: those after `ended`."""
    return hits[bisect_right(hits, ended) :] if hits and hits[0] <= ended else hits


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
        self._hits: dict[Caller, Hits] = {}
        """Those of each caller within the longest window of the limit: at least one."""
        self._heard: dict[Caller, tuple[Hits, ...]] = {}
        """What others have told of each window of the limit."""
        self._longest: dict[str, float] = {}
        """The seconds of the longest window of each limit."""
        self._sweep_at = _SWEEP_FROM
        self._tells = tells
        self._untold: dict[Caller, Limit] = {}
        self._told: dict[Caller, Limit] = {}

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
        shares = {
            item.key_for(*caller): self._share(caller, item.get_expiry(), now)
            for caller, limit in due.items()
            for item in limit.items
        }
        try:
            heard = await place.exchange(shares)
        except Problem:
            self._untold = {**due, **self._untold}
            raise
        now = self._now()
        for caller, limit in due.items():
            ages = (heard.get(item.key_for(*caller), ()) for item in limit.items)
            self._heard[caller] = tuple(tuple(now - age for age in each) for each in ages)

    def _share(self, caller: Caller, seconds: int, now: float) -> Share:
        hits = _since(self._hits.get(caller, ()), now - seconds)
        return Share(seconds, tuple(now - hit for hit in hits))

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        return self.count(limit, key)

    def count(self, limit: Limit, key: str) -> LimitDecision:
        """Do as `hit` does, for callers that cannot wait."""
        now, caller = self._now(), (limit.name, key)
        windows = self._windows(limit, caller, now)
        if any(not left for left, _ in windows):
            return LimitDecision(taken=False, windows=windows)
        if caller not in self._hits:
            self._sweep(now)
        self._hits[caller] = *self._live(limit, caller, now), now
        self._note(limit, caller)
        return LimitDecision(
            taken=True, windows=tuple([(left - 1, wait) for left, wait in windows])
        )

    async def look(self, limit: Limit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""
        windows = self._windows(limit, (limit.name, key), self._now())
        return LimitDecision(taken=False, windows=windows)

    async def refund(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        caller = limit.name, key
        if hits := self._live(limit, caller, self._now()):
            self._hits[caller] = hits[:-1]
            if len(hits) == 1:
                del self._hits[caller]
            self._note(limit, caller)

    def _note(self, limit: Limit, caller: Caller) -> None:
        if self._tells:
            self._untold[caller] = limit

    def _windows(self, limit: Limit, caller: Caller, now: float) -> tuple[tuple[int, float], ...]:
        """Return the room in each window, and the seconds until its oldest hit stops counting.

        Of no hit, all seconds. Edges that have not heard of one another may together have taken
        more than there was.
        """
        hits, windows = self._hits.get(caller, ()), []
        for item, heard in zip(limit.items, self._heard.get(caller) or repeat(()), strict=False):
            ended = now - item.get_expiry()
            own, others = _since(hits, ended), _since(heard, ended)
            oldest = min((*own[:1], *others[:1]), default=now)
            windows.append((max(0, item.amount - len(own) - len(others)), oldest - ended))
        return tuple(windows)

    def _live(self, limit: Limit, caller: Caller, now: float) -> Hits:
        """Return the own hits that count in any window."""
        if limit.name not in self._longest:
            self._longest[limit.name] = max(item.get_expiry() for item in limit.items)
        return _since(self._hits.get(caller, ()), now - self._longest[limit.name])

    def _sweep(self, now: float) -> None:
        """Forget callers of whom nothing counts, each time their number has doubled."""
        if len(self._hits) < self._sweep_at:
            return
        self._hits = {
            caller: hits
            for caller, hits in self._hits.items()
            if hits[-1] + self._longest[caller[0]] > now
        }
        self._heard = {caller: each for caller, each in self._heard.items() if caller in self._hits}
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._hits))
