"""Purges of a CDN: the addresses that a build changed, and for how long a CDN may keep pages."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from edge_api.db.internal_tables import WEBHOOK_DELIVERIES
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, InsertFromRead, Query, Read, Store, read_all
from edge_api.db.types import format_instant
from edge_api.health import Check
from edge_api.journal.builds import Build
from edge_api.schema.index import SITE_FOLDER
from edge_api.settings import Settings
from edge_api.webhooks.endpoints import (
    READ_ENABLED,
    SITE_CHANGED,
    format_event,
    make_deliveries,
)

UNPURGED_SECONDS: Final = 300
"""The longest time that a CDN may keep a page unless purges are known to work."""
MAX_URLS: Final = 1000
"""More changed addresses are reported as "everything"."""
DELAYS: Final = (timedelta(seconds=1), timedelta(seconds=15))
"""A purge is sent twice: meanwhile another process or machine may serve the build before, and the
CDN would keep a page of that."""

FileStates = Mapping[str, tuple[int, int, int]]
"""Inode, time of change in nanoseconds and size of each public file, by URL path: a build takes a
file that did not change from the build before, as a hard link."""


class Purges:
    """Says for how long a CDN may keep pages, and makes the events that purge them."""

    def __init__(self, settings: Settings, store: Store, wake: Callable[[], None]) -> None:
        """`wake` has due deliveries sent at once."""
        self._most, self._store, self.wake = settings.cdn_seconds, store, wake
        self.seconds = min(self._most, UNPURGED_SECONDS)
        """The seconds that a CDN may keep a page now; 0: it must ask each time."""

    async def check(self) -> Check | None:
        """Find out whether purges work, and set `seconds` accordingly; warn if they do not."""
        if self._most <= UNPURGED_SECONDS:
            return None
        is_working = False
        with suppress(Problem):  # while the store is away, nobody can send purges
            is_working = await self._is_working()
        self.seconds = self._most if is_working else UNPURGED_SECONDS
        message = (
            f"CDN_SECONDS is {self._most}, and {UNPURGED_SECONDS} is used: no webhook for "
            f"{SITE_CHANGED} is enabled, or one of its deliveries failed"
        )
        return Check("pass") if is_working else Check("warn", message)

    async def _is_working(self) -> bool:
        """Return whether an endpoint hears of changes, and none of its deliveries has failed."""
        rows = await read_all(self._store, READ_ENABLED)
        ids = tuple(row["id"] for row in rows if SITE_CHANGED in row["events"].split())
        failed = (
            Filter("event", "eq", SITE_CHANGED),
            Filter("endpoint_id", "in", ids),
            Filter("last_answer", "is", None, negated=True),
        )
        first = Read(WEBHOOK_DELIVERIES, ("id",), failed, limit=1)
        return bool(ids) and not await read_all(self._store, first)

    def read_states(self, build: Build) -> FileStates | None:
        """Return the states of a build's files, without those that are gone; called in a thread.

        They are `None` where no CDN keeps pages.
        """
        if not self._most:
            return None
        states = {}
        for path, file in build.files.items():
            try:
                found = (build.folder / SITE_FOLDER / file.name).stat()
            except OSError:
                continue
            states[path] = found.st_ino, found.st_mtime_ns, found.st_size
        return states


def queue_purges(
    before: FileStates | None, after: FileStates, site_url: str, now: datetime
) -> tuple[Query, ...]:
    """Return the query that queues the purges of the addresses that changed, if any did.

    `before` is `None` where the build before is not known: then everything may have changed.
    """
    paths = sorted({*(before or ()), *after})
    changed = [each for each in paths if before is None or before.get(each) != after.get(each)]
    if before is not None and not changed:
        return ()
    is_everything = before is None or len(changed) > MAX_URLS
    urls = [] if is_everything else [f"{site_url}{quote(path)}" for path in changed]
    data = {"everything": is_everything, "urls": urls}
    event = {
        "event": SITE_CHANGED,
        "subject_id": str(uuid5(NAMESPACE_URL, site_url)),
        "body": format_event(SITE_CHANGED, format_instant(now), data),
    }
    events = [{**event, "due_at": format_instant(now + delay)} for delay in DELAYS]
    return (InsertFromRead(READ_ENABLED, partial(make_deliveries, events, now)),)
