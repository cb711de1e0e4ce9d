"""Rate limits over moving windows, counted in one process or by all edges.

In memory they are counted by hand and not by a library's strategies, since every request with a
credential passes here. Edges that share a store count in one place, or exchange their hits.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from edge_api.db.problems import Problem
from edge_api.schema.credentials import Limit, LimitDecision, Share, read_limit
from edge_api.settings import Settings

_NOTHING: Final[deque[float]] = deque(maxlen=0)


class SlidingWindow:
    """The hits within the last `seconds`, of which there may be `most`."""

    __slots__ = ("_heard", "_own", "key", "most", "seconds")

    def __init__(self, key: str, most: int, seconds: int) -> None:
        """Begin without hits; `key` is the name of the window among edges."""
        self.key = key
        self.most = most
        self.seconds = seconds
        self._own: deque[float] = deque()
        self._heard = _NOTHING

    def left(self, now: float) -> int:
        """Return how many hits there is room for; edges may together take more in between."""
        ended, own, heard = now - self.seconds, self._own, self._heard
        while own and own[0] <= ended:
            own.popleft()
        while heard and heard[0] <= ended:
            heard.popleft()
        return max(0, self.most - len(own) - len(heard))

    def wait(self, now: float) -> float:
        """Return the seconds until the oldest hit ends; without hits, all seconds."""
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
        """Replace the hits of all others, oldest first."""
        self._heard = deque(instants)

    def share(self, now: float) -> Share:
        """Return the own hits, for the others."""
        return Share(self.seconds, tuple(now - instant for instant in self._own))

    def is_live(self, now: float) -> bool:
        """Tell whether an own hit has not ended."""
        return bool(self._own) and self._own[-1] + self.seconds > now


_SWEEP_FROM: Final = 1024  # callers; fewer are not worth a sweep


class Exchange(Protocol):
    """The place where edges exchange what each has counted by itself."""

    async def exchange(self, shares: Mapping[str, Share]) -> Mapping[str, Sequence[float]]:
        """Store the own hits of some windows, and return those of all others in the same.

        For each window, the ages of its hits in seconds, oldest first. Raises Problem
        `unavailable`.
        """


class MemoryLimits:
    """Counts hits in memory, in one thread, without waiting; `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float], *, tells: bool = False) -> None:
        """Take the clock; with `tells`, hits are kept for `exchange`."""
        self._now = now
        self._callers: dict[tuple[str, str], tuple[SlidingWindow, ...]] = {}
        """The windows of each limit, by its name and who is counted."""
        self._sweep_at = _SWEEP_FROM
        self._tells = tells
        self._unsent: dict[str, SlidingWindow] = {}
        self._sent: dict[str, SlidingWindow] = {}

    async def exchange(self, place: Exchange) -> None:
        """Tell other edges the hits since the last time, and count theirs.

        What was sent the last time is sent again, since others may have sent theirs since; what
        could not be sent is sent the next time. Raises Problem `unavailable`.
        """
        due = {**self._sent, **self._unsent}
        if not due:
            return
        self._unsent, self._sent = {}, self._unsent
        now = self._now()
        try:
            heard = await place.exchange({key: window.share(now) for key, window in due.items()})
        except Problem:
            self._unsent = {**due, **self._unsent}
            raise
        now = self._now()
        for key, window in due.items():
            window.merge(now - age for age in heard.get(key, ()))

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        return self.count(limit, key)

    def count(self, limit: Limit, key: str) -> LimitDecision:
        """Count as `hit` does, for callers that cannot wait."""
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

    async def peek(self, limit: Limit, key: str) -> LimitDecision:
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

    def _note(self, window: SlidingWindow) -> None:
        if self._tells:
            self._unsent[window.key] = window

    def _windows(self, limit: Limit, key: str) -> tuple[SlidingWindow, ...]:
        found = self._callers.get((limit.name, key))
        if found is None:
            self._sweep()
            found = self._callers[limit.name, key] = tuple(
                SlidingWindow(item.key_for(limit.name, key), item.amount, item.get_expiry())
                for item in limit.items
            )
        return found

    def _sweep(self) -> None:
        """Forget callers without live hits, each time the number of callers has doubled."""
        if len(self._callers) < self._sweep_at:
            return
        now = self._now()
        self._callers = {
            caller: windows
            for caller, windows in self._callers.items()
            if any(window.is_live(now) for window in windows)
        }
        self._sweep_at = max(_SWEEP_FROM, 2 * len(self._callers))


T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0  # between two attempts to reach the shared place


class LimitBackend(Protocol):
    """Counts hits over the moving windows of a limit. Its methods may raise Problem."""

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""

    async def peek(self, limit: Limit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""

    async def refund(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""


class SharedLimitBackend(LimitBackend, Exchange, Protocol):
    """The place where edges count together, and exchange what each counts by itself."""


class _FallbackLimits:
    """Counts with all edges, or alone while the shared place is away, so no limit is lifted."""

    def __init__(self, shared: LimitBackend, own: LimitBackend, now: Callable[[], float]) -> None:
        self._shared = shared
        self._own = own
        self._now = now
        self._is_away = False
        self._again_at = 0.0

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        return await self._ask(lambda windows: windows.hit(limit, key))

    async def peek(self, limit: Limit, key: str) -> LimitDecision:
        return await self._ask(lambda windows: windows.peek(limit, key))

    async def refund(self, limit: Limit, key: str) -> None:
        await self._ask(lambda windows: windows.refund(limit, key))

    async def _ask(self, ask: Callable[[LimitBackend], Awaitable[T]]) -> T:
        if self._is_away and self._now() < self._again_at:
            return await ask(self._own)
        self._again_at = self._now() + PAUSE_SECONDS  # one request alone tries again
        try:
            answer = await ask(self._shared)
        except Problem:  # whatever keeps it from counting
            self._is_away = True
            return await ask(self._own)
        self._is_away = False
        return answer


COUNTED: Final[Mapping[str, str]] = {
    "leads": "address, without a credential: leads that are stored",
    "leads_attempts": (
        "address, without a credential: leads and requests for access that are sent"
    ),
    "analyze": "address",
    "authenticated": "credential",
    "failed_auth": "address: credentials that are not valid",
    "token": "address: tokens, revocations and registrations",
    "search": "address: searches, as a page and as data",
}
"""Every limit, and what it counts by. Its setting is its name in capitals behind `RATE_`; `0`
switches it off."""

AUTHENTICATED: Final = "authenticated"
NO_LIMIT: Final = "0"  # a rate in the settings
OWN: Final = frozenset({AUTHENTICATED})
"""Limits that each edge counts in memory: every request with a credential is counted, which must
not cost a round trip. Edges `exchange` them."""


def list_rates(settings: Settings) -> Mapping[str, str]:
    """Return the rates of the settings by the names of their limits."""
    return MappingProxyType({name: getattr(settings, f"rate_{name}") for name in COUNTED})


@dataclass(frozen=True, slots=True)
class Quota:
    """The rest of a limit after a hit."""

    limit: Limit
    windows: tuple[tuple[int, int], ...]
    """For each item the hits left, and the whole seconds until one more."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields of draft-ietf-httpapi-ratelimit-headers, sections 3 and 4."""
        left = [
            f'"{label}";r={remaining};t={seconds}'
            for label, (remaining, seconds) in zip(self.limit.labels, self.windows, strict=True)
        ]
        return {"RateLimit-Policy": self.limit.policy, "RateLimit": ", ".join(left)}

    @property
    def retry_after(self) -> int:
        """The seconds until a hit is accepted; 0 for now."""
        return max((seconds for remaining, seconds in self.windows if remaining < 1), default=0)


class Limiter:
    """Counts hits; `now` gives seconds on a monotonic clock.

    With `shared` windows all but `OWN` is counted there, exactly for all edges; of `OWN` each edge
    knows the others' hits as of its last `exchange`.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.monotonic,
        shared: SharedLimitBackend | None = None,
    ) -> None:
        self._shared = shared
        self._own = own = MemoryLimits(now, tells=shared is not None)
        others = _FallbackLimits(shared, MemoryLimits(now), now) if shared else own
        rates = list_rates(settings).items()
        self._limits = MappingProxyType({name: read_limit(name, rate) for name, rate in rates})
        self._windows: Mapping[str, LimitBackend] = MappingProxyType(
            {name: own if name in OWN else others for name in self._limits}
        )

    async def exchange(self) -> None:
        """Exchange the hits of `OWN` with other edges. Raises Problem `unavailable`."""
        if self._shared is not None:
            await self._own.exchange(self._shared)

    async def hit(self, name: str, key: str) -> Quota | None:
        """Count a hit and return what is left. Raises Problem `too_many_requests`."""
        limit = self._limits[name]
        if limit is None:
            return None
        return _admit(limit, await self._windows[name].hit(limit, key))

    def count(self, name: str, key: str) -> Quota | None:
        """Count as `hit` does for a limit of `OWN`, without waiting."""
        limit = self._limits[name]
        return None if limit is None else _admit(limit, self._own.count(limit, key))

    async def peek(self, name: str, key: str) -> Quota | None:
        """Return what is left, without counting anything."""
        limit = self._limits[name]
        return None if limit is None else _quota(limit, await self._windows[name].peek(limit, key))

    async def refund(self, name: str, key: str) -> None:
        """Uncount a hit whose purpose failed."""
        limit = self._limits[name]
        if limit is not None:
            await self._windows[name].refund(limit, key)


def _admit(limit: Limit, decision: LimitDecision) -> Quota:
    """Return what is left. Raises Problem `too_many_requests` (RFC 6585, section 4)."""
    quota = _quota(limit, decision)
    if decision.taken:
        return quota
    seconds = max(1, quota.retry_after)  # it may have room again since it was asked
    raise Problem(
        "too_many_requests",
        f"Too many requests: try again in {seconds} second{'s' if seconds > 1 else ''}",
        headers={"Retry-After": str(seconds), **quota.headers},
    )


def _quota(limit: Limit, decision: LimitDecision) -> Quota:
    return Quota(limit, tuple([(left, max(1, ceil(wait))) for left, wait in decision.windows]))
