"""Rate limits over moving windows, counted in one process or by all edges.

The counting in memory does without the strategies of a library, which would be slower: every
request with a credential is counted. Edges that share a store count there, or exchange their hits.
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
from edge_api.schema.credentials import LimitDecision, RateLimit, WindowHits, read_limit
from edge_api.schema.sentences import counted
from edge_api.settings import Settings

CounterKey = tuple[str, str]
"""The name of a limit, and the key that its hits are counted by."""
Hits = tuple[float, ...]
"""Instants, oldest first. The garbage collector skips tuples of numbers; to visit lists of a
hundred thousand callers would block the service for a tenth of a second each time."""

_MIN_SWEEP_SIZE: Final = 1024  # below this number of callers, a sweep is not worth its time


def _after(hits: Hits, start: float) -> Hits:
    """Return the hits of a window, after its `start`."""
    return hits[bisect_right(hits, start) :] if hits and hits[0] <= start else hits


Exchange = Callable[[Mapping[str, WindowHits]], Awaitable[Mapping[str, Sequence[float]]]]
"""Stores this edge's hits of some windows, and returns those of the other edges.

The answer has the ages of the hits of each window in seconds, oldest first. Raises Problem
`unavailable`."""


class MemoryLimits:
    """Counts hits in memory; `now` gives seconds on a monotonic clock.

    Nothing here waits for I/O. For use by one thread.
    """

    def __init__(self, now: Callable[[], float], *, is_exchanged: bool = False) -> None:
        """Record hits for `exchange` if `is_exchanged` is set."""
        self._now = now
        self._hits: dict[CounterKey, Hits] = {}
        """The hits of each caller within the longest window of the limit: at least one."""
        self._remote: dict[CounterKey, tuple[Hits, ...]] = {}
        """The hits that other processes reported for each window of the limit."""
        self._longest_window: dict[str, float] = {}
        """The seconds of the longest window of each limit."""
        self._sweep_at = _MIN_SWEEP_SIZE
        self._is_exchanged = is_exchanged
        self._unreported: dict[CounterKey, RateLimit] = {}
        self._reported_once: dict[CounterKey, RateLimit] = {}

    async def exchange(self, exchange: Exchange) -> None:
        """Report the hits since the last exchange, and fetch those of other processes.

        A caller is reported twice, since the second report also fetches the hits that others
        reported after the first. A report that fails is repeated next time. Raises Problem
        `unavailable`.
        """
        pending = {**self._reported_once, **self._unreported}
        if not pending:
            return
        self._unreported, self._reported_once = {}, self._unreported
        now = self._now()
        windows = {
            item.key_for(*caller): self._window_hits(caller, item.get_expiry(), now)
            for caller, limit in pending.items()
            for item in limit.items
        }
        try:
            remote = await exchange(windows)
        except Problem:
            self._unreported = {**pending, **self._unreported}
            raise
        now = self._now()
        for caller, limit in pending.items():
            ages = (remote.get(item.key_for(*caller), ()) for item in limit.items)
            self._remote[caller] = tuple(tuple(now - age for age in each) for each in ages)

    def _window_hits(self, caller: CounterKey, seconds: int, now: float) -> WindowHits:
        hits = _after(self._hits.get(caller, ()), now - seconds)
        return WindowHits(seconds, tuple(now - hit for hit in hits))

    async def hit(self, limit: RateLimit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        return self.count(limit, key)

    def count(self, limit: RateLimit, key: str) -> LimitDecision:
        """Count a hit like `hit`, but without `await`."""
        now, caller = self._now(), (limit.name, key)
        windows = self._window_states(limit, caller, now)
        if any(not remaining for remaining, _ in windows):
            return LimitDecision(allowed=False, windows=windows)
        if caller not in self._hits:
            self._sweep(now)
        self._hits[caller] = *self._active_hits(limit, caller, now), now
        self._mark_unreported(limit, caller)
        return LimitDecision(
            allowed=True, windows=tuple([(remaining - 1, wait) for remaining, wait in windows])
        )

    async def peek(self, limit: RateLimit, key: str) -> LimitDecision:
        """Return the remaining hits, without counting one."""
        windows = self._window_states(limit, (limit.name, key), self._now())
        return LimitDecision(allowed=False, windows=windows)

    async def refund(self, limit: RateLimit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        caller = limit.name, key
        if hits := self._active_hits(limit, caller, self._now()):
            self._hits[caller] = hits[:-1]
            if len(hits) == 1:
                del self._hits[caller]
            self._mark_unreported(limit, caller)

    def _mark_unreported(self, limit: RateLimit, caller: CounterKey) -> None:
        if self._is_exchanged:
            self._unreported[caller] = limit

    def _window_states(
        self, limit: RateLimit, caller: CounterKey, now: float
    ) -> tuple[tuple[int, float], ...]:
        """Return the remaining hits of each window, and the seconds until its oldest hit expires.

        Without hits, the full window length. Edges that did not know each other's hits may
        together have accepted more than the limit.
        """
        hits, windows = self._hits.get(caller, ()), []
        for item, remote in zip(limit.items, self._remote.get(caller) or repeat(()), strict=False):
            start = now - item.get_expiry()
            local, others = _after(hits, start), _after(remote, start)
            oldest = min((*local[:1], *others[:1]), default=now)
            windows.append((max(0, item.amount - len(local) - len(others)), oldest - start))
        return tuple(windows)

    def _active_hits(self, limit: RateLimit, caller: CounterKey, now: float) -> Hits:
        """Return this process's hits within the longest window."""
        if limit.name not in self._longest_window:
            self._longest_window[limit.name] = max(item.get_expiry() for item in limit.items)
        return _after(self._hits.get(caller, ()), now - self._longest_window[limit.name])

    def _sweep(self, now: float) -> None:
        """Delete callers without active hits, each time the number of callers has doubled."""
        if len(self._hits) < self._sweep_at:
            return
        self._hits = {
            caller: hits
            for caller, hits in self._hits.items()
            if hits[-1] + self._longest_window[caller[0]] > now
        }
        self._remote = {key: each for key, each in self._remote.items() if key in self._hits}
        self._sweep_at = max(_MIN_SWEEP_SIZE, 2 * len(self._hits))


T = TypeVar("T")

RETRY_SECONDS: Final = 1.0  # between two attempts to reach the shared store


class SharedLimits(Protocol):
    """The store where edges count hits together, and exchange those counted in memory.

    Its methods may raise Problem.
    """

    @property
    def exchange(self) -> Exchange:
        """The exchange of hits."""

    async def hit(self, limit: RateLimit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""

    async def peek(self, limit: RateLimit, key: str) -> LimitDecision:
        """Return the remaining hits, without counting one."""

    async def refund(self, limit: RateLimit, key: str) -> None:
        """Uncount the newest hit, if one counts."""


LimitBackend = MemoryLimits | SharedLimits

COUNTED_BY: Final[Mapping[str, str]] = {
    "leads": "address, without a credential: leads that are stored",
    "access_requests": "address: requests for access that are stored",
    "leads_attempts": (
        "address, without a credential: leads and requests for access that are sent"
    ),
    "analyze": "address; with a credential, the credential",
    "authenticated": "credential",
    "failed_auth": "address: credentials that are not valid",
    "subscribe": "address, without a credential: subscriptions that are asked for",
    "token": "address: tokens, revocations and registrations",
    "search": "address: searches, as a page and as data",
    "desk_links": "browser that signed in before: links to the desk that are mailed",
}
"""The key by which each limit counts, and the requests that it counts, by the name of the limit.
The setting of a limit is `RATE_` and its name."""

AUTHENTICATED: Final = "authenticated"
"""The limit that each edge counts in memory: every request with a credential is counted, which must
not cost a round trip. Edges `exchange` its hits."""
NO_LIMIT: Final = "0"  # the setting of a limit that is not applied


def list_rates(settings: Settings) -> Mapping[str, str]:
    """Return the rates of the settings by the names of their limits."""
    return MappingProxyType({name: getattr(settings, f"rate_{name}") for name in COUNTED_BY})


@dataclass(frozen=True, slots=True)
class Quota:
    """The remaining hits of a limit."""

    limit: RateLimit
    windows: tuple[tuple[int, int], ...]
    """The hits left in each window of the limit, and the whole seconds until one more."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields of draft-ietf-httpapi-ratelimit-headers, sections 3 and 4."""
        fields = [
            f'"{label}";r={remaining};t={seconds}'
            for label, (remaining, seconds) in zip(self.limit.labels, self.windows, strict=True)
        ]
        return {"RateLimit-Policy": self.limit.policy, "RateLimit": ", ".join(fields)}

    @property
    def retry_after(self) -> int:
        """The seconds until a hit is accepted; 0 for now."""
        return max((seconds for remaining, seconds in self.windows if remaining < 1), default=0)


class Limiter:
    """Counts hits; `now` gives seconds on a monotonic clock.

    With `shared`, all limits but `AUTHENTICATED` are counted there, exactly for all edges; for that
    one, each edge knows the hits of the others as of its last `exchange`.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.monotonic,
        shared: SharedLimits | None = None,
    ) -> None:
        self._now = now
        self._shared = shared
        self._local = MemoryLimits(now, is_exchanged=shared is not None)
        self._fallback = MemoryLimits(now)
        self._is_unavailable = False
        self._retry_at = 0.0
        self._limits = {name: read_limit(name, rate) for name, rate in list_rates(settings).items()}

    async def exchange(self) -> None:
        """Exchange the hits of `AUTHENTICATED` with other edges. Raises Problem `unavailable`."""
        if self._shared is not None:
            await self._local.exchange(self._shared.exchange)

    async def hit(self, name: str, key: str) -> Quota | None:
        """Count a hit and return the remaining ones. Raises Problem `too_many_requests`."""
        limit = self._limits[name]
        if limit is None:
            return None
        return _admit(limit, await self._call(name, lambda backend: backend.hit(limit, key)))

    def count(self, name: str, key: str) -> Quota | None:
        """Count as `hit` does, in this process and without waiting: for `AUTHENTICATED`."""
        limit = self._limits[name]
        return None if limit is None else _admit(limit, self._local.count(limit, key))

    async def peek(self, name: str, key: str) -> Quota | None:
        """Return the remaining hits, without counting one."""
        limit = self._limits[name]
        if limit is None:
            return None
        return _quota(limit, await self._call(name, lambda backend: backend.peek(limit, key)))

    async def refund(self, name: str, key: str) -> None:
        """Uncount a hit whose request failed."""
        limit = self._limits[name]
        if limit is not None:
            await self._call(name, lambda backend: backend.refund(limit, key))

    async def _call(self, name: str, call: Callable[[LimitBackend], Awaitable[T]]) -> T:
        """Call the backend of a limit: the shared store, or memory while that is unavailable."""
        if self._shared is None or name == AUTHENTICATED:
            return await call(self._local)
        if self._is_unavailable and self._now() < self._retry_at:
            return await call(self._fallback)
        self._retry_at = self._now() + RETRY_SECONDS  # one request alone tries again
        try:
            answer = await call(self._shared)
        except Problem:  # whatever its reason
            self._is_unavailable = True
            return await call(self._fallback)
        self._is_unavailable = False
        return answer


def _admit(limit: RateLimit, decision: LimitDecision) -> Quota:
    """Return the quota. Raises Problem `too_many_requests` (RFC 6585, section 4)."""
    quota = _quota(limit, decision)
    if decision.allowed:
        return quota
    seconds = max(1, quota.retry_after)  # it may have room again since it was asked
    raise Problem(
        "too_many_requests",
        counted(
            "Too many requests: try again in %(seconds)s second",
            "Too many requests: try again in %(seconds)s seconds",
            seconds,
            seconds=str(seconds),
        ),
        headers={"Retry-After": str(seconds), **quota.headers},
    )


def _quota(limit: RateLimit, decision: LimitDecision) -> Quota:
    return Quota(limit, tuple([(left, max(1, ceil(wait))) for left, wait in decision.windows]))
