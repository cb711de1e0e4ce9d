"""Webhook events of posts: what differs between the current build and what was announced."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import orjson

from edge_api.auth.actor import Clock
from edge_api.db.internal_tables import ANNOUNCED_POSTS
from edge_api.db.query import Filter, Insert, InsertFromRead, Query, Read, Store, Update
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildManager
from edge_api.journal.posts import Posts, compare
from edge_api.outbox import log_errors, run_unless_conflict
from edge_api.webhooks.endpoints import READ_ENABLED, format_event, make_deliveries

ANNOUNCE_SECONDS: Final = 1.0
_DERIVED: Final = ("content_html", "readingMinutes")
"""Members of a post that may change with its neighbours or the program's version."""
_log: Final = logging.getLogger(__name__)


class PostAnnouncer:
    """Queues events for changed posts; the row of what was announced lets one edge alone do it."""

    def __init__(
        self, store: Store, clock: Clock, builds: BuildManager, wake: Callable[[], None]
    ) -> None:
        """Take what wakes the dispatcher of the queued events."""
        self._store, self._clock, self._builds, self._wake = store, clock, builds, wake
        self._compared = ""  # the digest of the index that was compared last

    async def run(self) -> None:
        """Announce each new build until cancelled."""
        while True:
            with log_errors(_log, "webhooks of posts wait", "webhooks of posts: trying again"):
                await self.announce()
            await asyncio.sleep(ANNOUNCE_SECONDS)

    async def announce(self) -> None:
        """Queue events for what the current build changes. Raises Problem."""
        build = self._builds.current
        if build is None or build.posts.digest == self._compared:
            return
        if build.site_url != self._builds.site_url:  # by mistake, and every URL differs
            return
        (found,) = await self._store.run(Read(ANNOUNCED_POSTS))
        row = found.rows[0] if found.rows else None
        after = {
            "index_digest": build.posts.digest,
            "built_for": format_instant(build.head.built_for),
        }
        if row is None or self._is_news(row, after):
            # Another edge may be first: then compare with what it has announced.
            queries = await asyncio.to_thread(_announce, row, after, build.posts, self._clock())
            if not await run_unless_conflict(self._store, *queries):
                return
            self._wake()
        self._compared = build.posts.digest

    def _is_news(self, row: Row, after: Row) -> bool:
        """Return whether to announce an index: another edge may have announced a newer one.

        An older one is a rollback if this edge has served what was announced last.
        """
        is_rollback = bool(row["index_digest"] == self._compared)
        return row["index_digest"] != after["index_digest"] and (
            is_rollback or row["built_for"] <= after["built_for"]
        )


def _announce(row: Row | None, after: Row, posts: Posts, now: datetime) -> tuple[Query, ...]:
    """Return the queries that announce posts, which conflict where `row` has changed."""
    described = {entry.cursor.slug: _describe(entry.document.body) for entry in posts.entries}
    after = {**after, "posts": orjson.dumps(described).decode()}
    if row is None:  # at its first start an edge announces nothing of what was there before
        return (Insert(ANNOUNCED_POSTS, [{"id": 1, **after}]),)
    before, events = orjson.loads(row["posts"]), []
    for slug, change in compare(before, described).items():
        url = (described.get(slug) or before[slug])[1]
        data = {"slug": slug, "url": url} if change == "removed" else posts.summary(slug)
        event, subject = f"post.{change}", str(uuid5(NAMESPACE_URL, url))
        body = format_event(event, format_instant(now), data)
        events.append({"event": event, "subject_id": subject, "body": body})
    same = Filter("index_digest", "eq", row["index_digest"])
    return (
        Update(ANNOUNCED_POSTS, after, (same,), at_least=1),
        InsertFromRead(READ_ENABLED, partial(make_deliveries, events, now)),
    )


def _describe(body: bytes) -> list[str]:
    """Return the digest of a post's content, and its URL."""
    post = orjson.loads(body)
    content = {name: value for name, value in post.items() if name not in _DERIVED}
    return [sha256(orjson.dumps(content)).hexdigest(), post["url"]]
