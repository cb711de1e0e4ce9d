"""The caller of the MCP endpoint, and the limit of open streams."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem

MAX_STREAMS: Final = 200
"""Open streams of all clients together."""
MAX_STREAMS_PER_KEY: Final = 8
"""Open streams of one credential."""
RETRY_SECONDS: Final = 30
"""The `Retry-After` of a client that gets no stream."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of an admitted request."""

    actor: Actor
    is_valid: Callable[[], Awaitable[bool]]
    """Returns whether the credential is still valid; called while a stream is open."""
    count: Callable[[], None]
    """Counts one more message that came with the request. Raises Problem `too_many_requests`."""


class StreamLimit:
    """Limits the number of open streams."""

    def __init__(self, limit: int = MAX_STREAMS, per_key: int = MAX_STREAMS_PER_KEY) -> None:
        self._limit = limit
        self._per_key = per_key
        self._open: Counter[str] = Counter()

    @property
    def open_count(self) -> int:
        """The number of open streams."""
        return self._open.total()

    @contextmanager
    def acquire(self, key: str) -> Iterator[None]:
        """Count one stream of `key` until the context ends.

        Raises Problem `too_many_requests` if the key has too many, `unavailable` if all
        streams are taken.
        """
        headers = {"Retry-After": str(RETRY_SECONDS)}
        if self._open[key] >= self._per_key:
            message = f"{self._per_key} streams are open with this credential: close one first"
            raise Problem("too_many_requests", message, headers=headers)
        if self.open_count >= self._limit:
            raise Problem("unavailable", "All streams are taken: try again later", headers=headers)
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
