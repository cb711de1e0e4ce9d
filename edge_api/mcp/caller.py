"""The caller of the MCP endpoint, and the limit of open streams."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem

STREAMS_MOST: Final = 200
"""In all, by all clients together."""
STREAMS_EACH: Final = 8
"""At once with one credential."""
RETRY_SECONDS: Final = 30
"""When a client that found all streams taken may come again."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request that was admitted."""

    actor: Actor
    holds: Callable[[], Awaitable[bool]]
    """Returns whether the credential is still valid; called while a stream is open."""
    count: Callable[[], None]
    """Counts one more message that came with the request. Raises Problem `too_many_requests`."""


class Slots:
    """Counts the streams that are open."""

    def __init__(self, most: int = STREAMS_MOST, each: int = STREAMS_EACH) -> None:
        self._most = most
        self._each = each
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How many streams are open."""
        return self._taken.total()

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Count one stream of `key` for as long as it is held.

        Raises Problem `too_many_requests` where the key has its share, `unavailable` where all
        streams are taken.
        """
        headers = {"Retry-After": str(RETRY_SECONDS)}
        if self._taken[key] >= self._each:
            message = f"{self._each} streams are open with this credential: close one first"
            raise Problem("too_many_requests", message, headers=headers)
        if self.taken >= self._most:
            raise Problem("unavailable", "All streams are taken: try again later", headers=headers)
        self._taken[key] += 1
        try:
            yield
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]
