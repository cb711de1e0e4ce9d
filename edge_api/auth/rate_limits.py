"""Rate limits over moving windows, counted in one process or by all edges.

In memory they are counted by hand and not by a library's strategies, since every request with a
credential passes here. Edges that share a store count in one place, or exchange their hits.
"""

import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import ceil
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from edge_api.db.problems import Problem
from edge_api.schema.credentials import LimitDecision, RateLimit, Share, read_limit
from edge_api.settings import Settings

CounterKey = tuple[str, str]
"""The name of a limit, and who is counted."""
Hits = tuple[float, ...]
"""Instants, oldest first. Python's collector visits no tuple of numbers: of a hundred thousand
callers it would else stop the service for a tenth of a second, again and again."""

_SWEEP_FROM: Final = 1024
"""Fewer callers than this are not worth looking through."""


def _since(hits: Hits, ended: float) -> Hits:
    """Return the hits that count still: those after `ended`."""
    return hits[bisect_right(hits, ended) :] if hits and hits[0] <= ended else hits


class HitExchange(Protocol):
    """The place where edges exchange what each has counted by itself."""

    async def exchange(self, shares: Mapping[str, Share]) -> Mapping[str, Sequence[float]]:
        """Store the own hits of some windows, and return those of all others in the same.

        For each window, the ages of its hits in seconds, oldest first. Raises Problem
        `unavailable`.
        """


class MemoryLimits:
    """Counts hits; `now` gives seconds on a clock that never goes back.

    Nothing here waits, so that a caller goes on without giving way to others. Used by one thread.
    """

    def __init__(self, now: Callable[[], float], *, shares: bool = False) -> None:
        """Take the clock; with `shares` the counted hits are kept for `exchange`."""
        self._now = now
        self._hits: dict[CounterKey, Hits] = {}
        """Those of each caller within the longest window of the limit: at least one."""
        self._heard: dict[CounterKey, tuple[Hits, ...]] = {}
        """The hits that other processes reported for each window of the limit."""
        self._longest: dict[str, float] = {}
        """The seconds of the longest window of each limit."""
        self._sweep_at = _SWEEP_FROM
        self._shares = shares
        self._unsent: dict[CounterKey, RateLimit] = {}
        self._sent: dict[CounterKey, RateLimit] = {}

    async def exchange(self, place: HitExchange) -> None:
        """Report the hits counted here since the last exchange, and count those of other processes.

        Each report is repeated once: other processes may have reported since. What cannot be
        reported now is reported next time. Raises Problem `unavailable`.
        """
        due = {**self._sent, **self._unsent}
        if not due:
            return
        self._unsent, self._sent = {}, self._unsent
        now = self._now()
        shares = {
            item.key_for(*caller): self._share(caller, item.get_expiry(), now)
            for caller, limit in due.items()
            for item in limit.items
        }
        try:
            heard = await place.exchange(shares)
        except Problem:
            self._unsent = {**due, **self._unsent}
            raise
        now = self._now()
        for caller, limit in due.items():
            ages = (heard.get(item.key_for(*caller), ()) for item in limit.items)
            self._heard[caller] = tuple(tuple(now - age for age in each) for each in ages)

    def _share(self, caller: CounterKey, seconds: int, now: float) -> Share:
        hits = _since(self._hits.get(caller, ()), now - seconds)
        return Share(seconds, tuple(now - hit for hit in hits))

    async def hit(self, limit: RateLimit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        return self.count(limit, key)

    def count(self, limit: RateLimit, key: str) -> LimitDecision:
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

    async def peek(self, limit: RateLimit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""
        windows = self._windows(limit, (limit.name, key), self._now())
        return LimitDecision(taken=False, windows=windows)

    async def refund(self, limit: RateLimit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        caller = limit.name, key
        if hits := self._live(limit, caller, self._now()):
            self._hits[caller] = hits[:-1]
            if len(hits) == 1:
                del self._hits[caller]
            self._note(limit, caller)

    def _note(self, limit: RateLimit, caller: CounterKey) -> None:
        if self._shares:
            self._unsent[caller] = limit

    def _windows(
        self, limit: RateLimit, caller: CounterKey, now: float
    ) -> tuple[tuple[int, float], ...]:
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

    def _live(self, limit: RateLimit, caller: CounterKey, now: float) -> Hits:
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


T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0  # between two attempts to reach the shared place


class LimitBackend(Protocol):
    """Counts hits over the moving windows of a limit. Its methods may raise Problem."""

    async def hit(self, limit: RateLimit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""

    async def peek(self, limit: RateLimit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""

    async def refund(self, limit: RateLimit, key: str) -> None:
        """Uncount the newest hit, if one counts."""


class SharedLimitBackend(LimitBackend, HitExchange, Protocol):
    """The place where edges count together, and exchange what each counts by itself."""


class _FallbackLimits:
    """Counts with all edges, or alone while the shared place is away, so no limit is lifted."""

    def __init__(self, shared: LimitBackend, own: LimitBackend, now: Callable[[], float]) -> None:
        self._shared = shared
        self._own = own
        self._now = now
        self._is_away = False
        self._again_at = 0.0

    async def hit(self, limit: RateLimit, key: str) -> LimitDecision:
        return await self._ask(lambda windows: windows.hit(limit, key))

    async def peek(self, limit: RateLimit, key: str) -> LimitDecision:
        return await self._ask(lambda windows: windows.peek(limit, key))

    async def refund(self, limit: RateLimit, key: str) -> None:
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

    limit: RateLimit
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
        self._own = own = MemoryLimits(now, shares=shared is not None)
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


def _admit(limit: RateLimit, decision: LimitDecision) -> Quota:
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


def _quota(limit: RateLimit, decision: LimitDecision) -> Quota:
    return Quota(limit, tuple([(left, max(1, ceil(wait))) for left, wait in decision.windows]))
