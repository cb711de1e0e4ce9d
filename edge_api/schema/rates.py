"""What a rate limit is, as a value, and what counting its hits tells."""

from dataclasses import dataclass

import limits


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: the windows that must all have room, and how headers call them."""

    name: str
    items: tuple[limits.RateLimitItem, ...]
    labels: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class Tally:
    """What counting has found."""

    taken: bool
    """Whether every window had room; a hit that one has no room for is counted in none."""
    windows: tuple[tuple[int, float], ...]
    """For each window the hits that are left, and the seconds until one more is."""


@dataclass(frozen=True, slots=True)
class Share:
    """The hits of one edge within one moving window, where each counts by itself."""

    seconds: int
    """How long the window is."""
    ages: tuple[float, ...]
    """How many seconds ago each hit was, oldest first."""


def read_limit(name: str, rate: str) -> Limit | None:
    """Return the limit that a checked setting describes; `None` where it is switched off."""
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
