"""Rate limits: how often somebody may do something, counted in one process or by all edges.

Counted over moving windows: in the memory of this process or, for edges that share a store, in
one place for all. What is counted, and by which key, is decided by whoever counts.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from edge_api.auth.sliding_window import Exchange, SlidingWindows
from edge_api.db.problems import Problem
from edge_api.schema.credentials import Limit, LimitDecision, read_limit
from edge_api.settings import Settings

T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0
"""Between two attempts to reach a place that is away: requests do not each wait for it."""


class Windows(Protocol):
    """Where hits are counted, each over the moving windows of its limit.

    Every method may raise Problem `unavailable`.
    """

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""

    async def look(self, limit: Limit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""

    async def refund(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""


class Together(Windows, Exchange, Protocol):
    """Where edges count together, and tell one another what each counts by itself."""


class SharedWindows:
    """Counts with all edges; while that cannot be done, this edge counts by itself.

    So no limit is lifted when the place is away, and nothing fails because it could not be counted.
    """

    def __init__(self, shared: Windows, own: Windows, now: Callable[[], float]) -> None:
        self._shared = shared
        self._own = own
        self._now = now
        self._is_away = False
        self._again_at = 0.0

    async def hit(self, limit: Limit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        return await self._ask(lambda windows: windows.hit(limit, key))

    async def look(self, limit: Limit, key: str) -> LimitDecision:
        """Return what is left, without counting anything."""
        return await self._ask(lambda windows: windows.look(limit, key))

    async def refund(self, limit: Limit, key: str) -> None:
        """Uncount the newest hit, if one counts."""
        await self._ask(lambda windows: windows.refund(limit, key))

    async def _ask(self, ask: Callable[[Windows], Awaitable[T]]) -> T:
        if self._is_away and self._now() < self._again_at:
            return await ask(self._own)
        self._again_at = self._now() + PAUSE_SECONDS  # while it is away one alone tries again
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
"""Every limit, and what it counts by.

Each has a setting of that name in capitals behind `RATE_`; `0` switches it off.
"""

AUTHENTICATED: Final = "authenticated"
NO_LIMIT: Final = "0"
"""How settings spell a rate that nothing is held to."""
OWN: Final = frozenset({AUTHENTICATED})
"""What each edge counts in memory, wherever the others are counted: every request with a credential
is, which must not cost a trip to anywhere. Edges tell one another of it in `exchange`."""


def list_rates(settings: Settings) -> Mapping[str, str]:
    """Return the rates by the names of their limits, as the settings spell them."""
    return MappingProxyType({name: getattr(settings, f"rate_{name}") for name in COUNTED})


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a limit after a hit."""

    limit: Limit
    windows: tuple[tuple[int, int], ...]
    """For each item the hits that are left, and the whole seconds until one more is."""

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
        """The seconds after which a hit will be taken; 0 if it would be now."""
        return max((seconds for remaining, seconds in self.windows if remaining < 1), default=0)


class Limiter:
    """Counts hits; `now` gives seconds on a clock that never goes back.

    With `shared` windows all but `OWN` is counted there, exactly for all edges together; of `OWN`
    each edge knows what the others have counted as of its last `exchange`.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.monotonic,
        shared: Together | None = None,
    ) -> None:
        self._shared = shared
        self._own = own = SlidingWindows(now, tells=shared is not None)
        others = SharedWindows(shared, SlidingWindows(now), now) if shared else own
        rates = list_rates(settings).items()
        self._limits = MappingProxyType({name: read_limit(name, rate) for name, rate in rates})
        self._windows: Mapping[str, Windows] = MappingProxyType(
            {name: own if name in OWN else others for name in self._limits}
        )

    async def exchange(self) -> None:
        """Tell other edges what this one has counted by itself, and hear what they have.

        Raises Problem `unavailable`.
        """
        if self._shared is not None:
            await self._own.exchange(self._shared)

    async def hit(self, name: str, key: str) -> Quota | None:
        """Count a hit and return what is left; `None` where the limit is switched off.

        Raises Problem `too_many_requests`, and counts nothing, when it is used up.
        """
        limit = self._limits[name]
        if limit is None:
            return None
        return _admit(limit, await self._windows[name].hit(limit, key))

    def count(self, name: str, key: str) -> Quota | None:
        """Do as `hit` does for a limit of `OWN`, without waiting for anything."""
        limit = self._limits[name]
        return None if limit is None else _admit(limit, self._own.count(limit, key))

    async def look(self, name: str, key: str) -> Quota | None:
        """Return what is left, without counting anything."""
        limit = self._limits[name]
        return None if limit is None else _quota(limit, await self._windows[name].look(limit, key))

    async def refund(self, name: str, key: str) -> None:
        """Uncount a hit whose purpose was not reached."""
        limit = self._limits[name]
        if limit is not None:
            await self._windows[name].refund(limit, key)


def _admit(limit: Limit, tally: LimitDecision) -> Quota:
    """Return what is left. Raises Problem `too_many_requests` for a hit that was not taken."""
    quota = _quota(limit, tally)
    if not tally.taken:
        raise _refusal(quota)
    return quota


def _quota(limit: Limit, tally: LimitDecision) -> Quota:
    return Quota(limit, tuple([(left, max(1, ceil(wait))) for left, wait in tally.windows]))


def _refusal(quota: Quota) -> Problem:
    """Return the problem of a limit that is used up (RFC 6585, section 4)."""
    seconds = max(1, quota.retry_after)  # it may have room again since it was asked
    return Problem(
        "too_many_requests",
        f"Too many requests: try again in {seconds} second{'s' if seconds > 1 else ''}",
        headers={"Retry-After": str(seconds), **quota.headers},
    )
