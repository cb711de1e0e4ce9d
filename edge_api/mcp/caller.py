"""Who calls the MCP endpoint, how many streams they have open, and from where they may call."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.http.request import Callers, Request
from edge_api.http.response import tell_limits
from edge_api.operation.service import Service
from edge_api.settings import is_loopback

STREAMS_MOST: Final = 200
"""At once, whoever has opened them."""
STREAMS_EACH: Final = 8
"""At once with one credential."""
RETRY_SECONDS: Final = 30
"""When a client that found all streams taken may come again."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request that was let in."""

    actor: Actor
    holds: Callable[[], Awaitable[bool]]
    """Tells whether the credential is still good; asked while a stream is open."""
    count: Callable[[], Awaitable[None]]
    """Counts one more message that came with the request. Raises Problem `too_many_requests`."""


Admit = Callable[[Request], Awaitable[Caller]]
"""Lets a request in. Raises Problem."""


class Admission:
    """Lets in who holds an access token for this endpoint, as often as the limit allows."""

    def __init__(self, service: Service, callers: Callers) -> None:
        self._access = service.access
        self._limiter = service.limiter
        self._callers = callers

    async def __call__(self, request: Request) -> Caller:
        """Return who calls. Raises Problem for a bad credential, one time too many, no scope."""
        secret, actor = await self._callers.identify(request, "mcp")

        async def count() -> None:
            quota = await self._limiter.hit("authenticated", actor.holder)
            tell_limits(request, quota.headers if quota else {})

        await count()
        self._access.authorise(actor, "mcp", "mcp")

        async def holds() -> bool:
            try:
                return "mcp" in (await self._access.actor_for(secret, "mcp")).scopes
            except Problem:
                return False

        return Caller(actor, holds, count)


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
            sentence = f"{self._each} streams are open with this credential: close one first"
            raise Problem("too_many_requests", sentence, headers=headers)
        if self.taken >= self._most:
            raise Problem("unavailable", "All streams are taken: try again later", headers=headers)
        self._taken[key] += 1
        try:
            yield
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]


def check_origin(request: Request, site_url: str) -> None:
    """Raise Problem `forbidden` for a page of another origin, which a browser would let ask.

    Our own pages and those of this machine may; programs send no origin (2026-07-28, transports,
    security).
    """
    for origin in request.headers.getall("Origin", ()):
        if origin != site_url and not _is_local(origin):
            raise Problem("forbidden", "Pages of this origin may not call the MCP endpoint")


def _is_local(origin: str) -> bool:
    try:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and is_loopback(parts.hostname or "")
    except ValueError:
        return False
