"""Rate limits: how often somebody may do something, as the settings say.

Counted over moving windows, in the memory of this process. What is counted, and by which key, is
decided by whoever counts.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final

import limits
from limits.strategies import MovingWindowRateLimiter

from edge_api.domain.moving_windows import MovingWindows
from edge_api.schema.problems import Problem
from edge_api.settings import Settings

COUNTED: Final[Mapping[str, str]] = MappingProxyType(
    {
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
)
"""Every limit, and what it counts by.

Each has a setting of that name in capitals behind `RATE_`; `0` switches it off.
"""


def list_rates(settings: Settings) -> Mapping[str, str]:
    """Return the rates by the names of their limits, as the settings spell them."""
    return MappingProxyType({name: getattr(settings, f"rate_{name}") for name in COUNTED})


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: the windows that must all have room, and how headers call them."""

    name: str
    items: tuple[limits.RateLimitItem, ...]
    labels: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a limit after a hit."""

    limit: Limit
    windows: tuple[tuple[int, int], ...]
    """For each item the hits that are left, and the whole seconds until one more is."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields of draft-ietf-httpapi-ratelimit-headers, sections 3 and 4."""
        left = (
            f'"{label}";r={remaining};t={seconds}'
            for label, (remaining, seconds) in zip(self.limit.labels, self.windows, strict=True)
        )
        return {"RateLimit-Policy": self.limit.policy, "RateLimit": ", ".join(left)}

    @property
    def retry_after(self) -> int:
        """The seconds after which a hit will be taken; 0 if it would be now."""
        return max((seconds for remaining, seconds in self.windows if remaining < 1), default=0)


class Limiter:
    """Counts hits; `now` gives seconds on a clock that never goes back."""

    def __init__(self, settings: Settings, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._windows = MovingWindows(now)
        self._strategy = MovingWindowRateLimiter(self._windows)
        rates = list_rates(settings).items()
        self._limits = MappingProxyType({name: _limit(name, rate) for name, rate in rates})

    def hit(self, name: str, key: str) -> Quota | None:
        """Count a hit and return what is left; `None` where the limit is switched off.

        Raises Problem `too_many_requests`, and counts nothing, when it is used up.
        """
        limit = self._limits[name]
        if limit is None:
            return None
        *others, last = limit.items
        fits = all(self._strategy.test(item, name, key) for item in others)
        if not fits or not self._strategy.hit(last, name, key):
            raise _refusal(self._quota(limit, key))
        for item in others:
            self._strategy.hit(item, name, key)
        return self._quota(limit, key)

    def look(self, name: str, key: str) -> Quota | None:
        """Return what is left, without counting anything."""
        limit = self._limits[name]
        return None if limit is None else self._quota(limit, key)

    def take_back(self, name: str, key: str) -> None:
        """Uncount a hit whose purpose was not reached."""
        limit = self._limits[name]
        for item in limit.items if limit else ():
            self._windows.take_back(item.key_for(name, key))

    def _quota(self, limit: Limit, key: str) -> Quota:
        now = self._now()
        stats = [self._strategy.get_window_stats(item, limit.name, key) for item in limit.items]
        return Quota(limit, tuple((left, max(1, ceil(reset - now))) for reset, left in stats))


def _limit(name: str, rate: str) -> Limit | None:
    if rate == "0":
        return None
    items = tuple(limits.parse_many(rate))
    labels = (name, *(f"{name}-{_window(item)}" for item in items[1:]))
    policies = (
        f'"{label}";q={item.amount};w={item.get_expiry()}'
        for label, item in zip(labels, items, strict=True)
    )
    return Limit(name, items, labels, ", ".join(policies))


def _window(item: limits.RateLimitItem) -> str:
    """Return how a window is called, such as `day` or `10minute`."""
    return f"{item.multiples if item.multiples > 1 else ''}{item.GRANULARITY.name}"


def _refusal(quota: Quota) -> Problem:
    """Return the problem of a limit that is used up (RFC 6585, section 4)."""
    seconds = quota.retry_after
    return Problem(
        "too_many_requests",
        f"Too many requests: try again in {seconds} second{'s' if seconds > 1 else ''}",
        headers={"Retry-After": str(seconds), **quota.headers},
    )
