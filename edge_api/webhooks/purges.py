"""Purges of a CDN: the addresses that a build changed, and for how long a CDN may keep pages."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from string import punctuation
from typing import Final
from urllib.parse import quote

from edge_api.db.internal_tables import WEBHOOK_DELIVERIES
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Query, Read, Store, read_all
from edge_api.health import Check
from edge_api.journal.builds import Build
from edge_api.schema.index import SITE_FOLDER
from edge_api.settings import Settings
from edge_api.webhooks.endpoints import PURGE_DELAYS, READ_ENABLED, SITE_CHANGED, queue_purge

UNPURGED_SECONDS: Final = 300
"""The seconds that a CDN may keep a page at most while purges are not known to work."""
REFRESH_SECONDS: Final = 5.0
"""The interval of looks whether purges work, and the longest time that one may take."""
MAX_URLS: Final = 1000
"""More changed addresses are reported as "everything"."""

FileStates = Mapping[str, tuple[int, int, int]]
"""Inode, time of change in nanoseconds and size of each public file, by URL path.

They are those of the build before for a file that did not change: a build links it.
"""


class Purges:
    """Says for how long a CDN may keep pages, and makes the events that purge them."""

    def __init__(self, settings: Settings, store: Store, wake: Callable[[], None]) -> None:
        """`wake` has due deliveries sent at once."""
        self._most, self._site_url = settings.cdn_seconds, settings.site_url
        self._store, self._wake = store, wake
        self.seconds = min(self._most, UNPURGED_SECONDS)
        """The seconds that a CDN may keep a page now; 0: it must ask each time."""

    async def refresh(self) -> None:
        """Find out whether purges work, and set `seconds` accordingly; a job of its own.

        While the store is away or slow, they do not: nobody can send purges.
        """
        is_working = self._most <= UNPURGED_SECONDS
        with suppress(Problem, TimeoutError):
            async with asyncio.timeout(REFRESH_SECONDS):
                is_working = is_working or await self._is_working()
        self.seconds = self._most if is_working else UNPURGED_SECONDS

    async def check(self) -> Check | None:
        """Warn if pages allow less than the setting, as `refresh` found out last."""
        if self._most <= UNPURGED_SECONDS:
            return None
        message = (
            f"CDN_SECONDS is {self._most}, and {UNPURGED_SECONDS} is used: no webhook for "
            f"{SITE_CHANGED} is enabled, one of its deliveries failed, or the store is slow or away"
        )
        return Check("pass") if self.seconds == self._most else Check("warn", message)

    async def _is_working(self) -> bool:
        """Return whether an endpoint hears of changes, and none of its deliveries has failed."""
        ids = await self._find_endpoints()
        failed = (
            Filter("event", "eq", SITE_CHANGED),
            Filter("endpoint_id", "in", ids),
            Filter("last_answer", "is", None, negated=True),
        )
        first = Read(WEBHOOK_DELIVERIES, ("id",), failed, limit=1)
        return bool(ids) and not await read_all(self._store, first)

    async def _find_endpoints(self) -> tuple[str, ...]:
        rows = await read_all(self._store, READ_ENABLED)
        return tuple(row["id"] for row in rows if SITE_CHANGED in row["events"].split())

    async def read_states(self, build: Build) -> FileStates | None:
        """Return the states of a build's files, without those that are gone. Raises Problem.

        They are `None` where no CDN keeps pages, or no endpoint hears of changes.
        """
        if self._most and await self._find_endpoints():
            return await asyncio.to_thread(_read_states, build)
        return None

    def queue(self, now: datetime, paths: Iterable[str] | None) -> tuple[Query, ...]:
        """Return the query that queues the purges of paths, to be run at once; `None`: of all."""
        urls = sorted(f"{self._site_url}{each}" for path in paths or () for each in spell(path))
        if not self._most or not (urls or paths is None):
            return ()
        asyncio.get_running_loop().call_later(PURGE_DELAYS[0].total_seconds(), self._wake)
        return (queue_purge(now, urls if len(urls) <= MAX_URLS else ()),)


def spell(path: str) -> set[str]:
    """Return the spellings of a path that the site links; at no other may a CDN keep it."""
    return {quote(path), quote(path, safe=punctuation)}


def _read_states(build: Build) -> FileStates:
    states = {}
    for path, file in build.files.items():
        with suppress(OSError):
            found = (build.folder / SITE_FOLDER / file.name).stat()
            states[path] = found.st_ino, found.st_mtime_ns, found.st_size
    return states
