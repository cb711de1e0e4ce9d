"""`subscriptions/listen`: tells who listens that another edition has come, and what is new in it.

Editions are looked at while somebody listens, and only then.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import orjson
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from edge_api.api.mcp.context import Context, actor_of
from edge_api.api.mcp.journal import Journal
from edge_api.api.service import Service
from edge_api.domain.edition import Edition
from edge_api.domain.posts import Entry

LOOK_SECONDS: Final = 0.5
"""How often it is looked whether another edition is served."""

_log = logging.getLogger(__name__)


class Announcements:
    """Serves listeners, and tells them what changes."""

    def __init__(self, service: Service, journal: Journal) -> None:
        self._service = service
        self._journal = journal
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus)
        self._listeners = 0
        self._looking: asyncio.Task[None] | None = None

    async def listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one listener until either side ends it."""
        if not self._journal.is_open_to(actor_of(context)):
            params = _without_resources(params)
        async with self._looked_at():
            return await self._handler(context, params)

    @asynccontextmanager
    async def _looked_at(self) -> AsyncIterator[None]:
        """Look at editions as long as there is a listener."""
        self._listeners += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look(self) -> None:
        """Announce each edition that takes another's place; say farewell when the service ends."""
        before = self._service.shelf.current
        while not self._service.health.draining:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._service.shelf.current
            if now is not before:
                await self._announce(before, now)
                before = now
        self._handler.close()

    async def _announce(self, before: Edition | None, now: Edition | None) -> None:
        """Tell what differs; if that fails once, later editions are told of all the same."""
        try:
            for event in differences(before, now):
                await self._bus.publish(event)
        except Exception:  # noqa: BLE001  the next edition is another matter
            _log.exception("an edition could not be announced")


def differences(before: Edition | None, now: Edition | None) -> Iterator[ServerEvent]:
    """Yield what a reader of the one has to read again in the other."""
    old, new = _entries(before), _entries(now)
    if _listed(old) != _listed(new):
        yield ResourcesListChanged()
    for slug in old.keys() | new.keys():
        was, is_ = old.get(slug), new.get(slug)
        if was is None or is_ is None or was.document.etag != is_.document.etag:
            entry = is_ or was
            assert entry is not None  # noqa: S101  the slug is from one of both
            yield ResourceUpdated(uri=orjson.loads(entry.summary)["url"])


def _entries(edition: Edition | None) -> Mapping[str, Entry]:
    return {entry.place.slug: entry for entry in edition.posts.entries} if edition else {}


def _listed(entries: Mapping[str, Entry]) -> list[bytes]:
    return [entry.summary for entry in entries.values()]


def _without_resources(
    params: SubscriptionsListenRequestParams,
) -> SubscriptionsListenRequestParams:
    """Return a request with nothing in it about posts, which the caller may not read."""
    nothing = {"resources_list_changed": None, "resource_subscriptions": None}
    wanted = params.notifications.model_copy(update=nothing)
    return params.model_copy(update={"notifications": wanted})
