"""Webhook events of posts that differ between the current build and the announced state."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import orjson

from edge_api.auth.actor import Clock
from edge_api.db.internal_tables import ANNOUNCED_POSTS
from edge_api.db.query import Filter, Insert, InsertFromRead, Query, Read, Store, Update, read_first
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.posts import Posts, find_changes
from edge_api.outbox import run_unless_conflict
from edge_api.webhooks.endpoints import READ_ENABLED, format_event, make_deliveries
from edge_api.webhooks.purges import FileStates, Purges

_DERIVED_MEMBERS: Final = ("content_html", "readingMinutes")
"""Members of a post that may change with its neighbours or the program's version."""


PostListener = Callable[[Build, Row | None, datetime], tuple[str, tuple[Query, ...]]]
"""Returns what to store as `texts`, and queries for the transaction that announces a build; the row
is what was announced before."""


class Announcer:
    """Queues events for changed posts; of several edges, only one changes the row and succeeds."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        builds: BuildManager,
        listener: PostListener = lambda *_: ("", ()),
        purges: Purges | None = None,
    ) -> None:
        """Queue purges of a CDN too, if `purges` are given."""
        self._store, self._clock, self._builds = store, clock, builds
        self._listener, self._purges = listener, purges
        self._compared_digest = ""  # the index that was compared last
        self._compared_files: FileStates | None = None  # the files of its build
        self._described: Mapping[bytes, list[str]] = {}  # its posts, by the digests of their lines

    async def announce(self) -> None:
        """Queue events for the posts that the current build changes. Raises Problem."""
        build = self._builds.current
        if build is None or build.posts.digest == self._compared_digest:
            return
        if build.head.site_url != self._builds.site_url:  # a mistake: every URL would differ
            return
        purges, before = self._purges, self._compared_files
        files = await purges.read_states(build) if purges else None
        row, now = await read_first(self._store, Read(ANNOUNCED_POSTS)), self._clock()
        is_known = row is not None and row["index_digest"] == self._compared_digest
        is_announced = row is not None and row["index_digest"] == build.posts.digest
        # An older build is a rollback only if this edge compared the announced index last.
        is_older = row is not None and row["built_for"] > format_instant(build.head.built_for)
        queries: tuple[Query, ...] = ()
        if is_known or not (is_announced or is_older):
            others = await asyncio.to_thread(self._listener, build, row, now)
            self._described = await asyncio.to_thread(_describe, build.posts, self._described)
            queries = await asyncio.to_thread(
                _make_queries, row, build, self._described, now, others
            )
            before = before if is_known else None
        # An edge that is late has given the CDN pages of its build before, whoever announced this.
        if purges and row and files is not None and (self._compared_digest or not is_announced):
            changed = (
                None if before is None else {path for path, _ in before.items() ^ files.items()}
            )
            queries = (*queries, *purges.queue(now, changed))
        if not queries or await run_unless_conflict(self._store, *queries):
            self._compared_digest, self._compared_files = build.posts.digest, files


def _describe(posts: Posts, known: Mapping[bytes, list[str]]) -> Mapping[bytes, list[str]]:
    """Return the digest of each post's content, and its URL; only new posts are read."""
    return {
        entry.digest: known.get(entry.digest) or _digest_and_url(entry.document.body)
        for entry in posts.entries
    }


def _make_queries(
    row: Row | None,
    build: Build,
    content: Mapping[bytes, list[str]],
    now: datetime,
    others: tuple[str, tuple[Query, ...]],
) -> tuple[Query, ...]:
    """Return the queries that announce a build, which conflict where `row` has changed."""
    posts, built_for = build.posts, format_instant(build.head.built_for)
    texts, more = others
    described = {entry.cursor.slug: content[entry.digest] for entry in posts.entries}
    text = orjson.dumps(described).decode()
    after = {"index_digest": posts.digest, "built_for": built_for, "posts": text, "texts": texts}
    if row is None:  # the posts at the first start count as announced
        return Insert(ANNOUNCED_POSTS, [{"id": 1, **after}]), *more
    before, events = orjson.loads(row["posts"]), []
    for slug, change in find_changes(before, described).items():
        url = (described.get(slug) or before[slug])[1]
        data = {"slug": slug, "url": url} if change == "removed" else posts.summary(slug)
        body = format_event(f"post.{change}", format_instant(now), data)
        subject = str(uuid5(NAMESPACE_URL, url))
        events.append({"event": f"post.{change}", "subject_id": subject, "body": body})
    same = Filter("index_digest", "eq", row["index_digest"])
    replace = Update(ANNOUNCED_POSTS, after, (same,), at_least=1)
    return replace, InsertFromRead(READ_ENABLED, partial(make_deliveries, events, now)), *more


def _digest_and_url(body: bytes) -> list[str]:
    """Return the digest of a post's content, and its URL."""
    post = orjson.loads(body)
    content = {name: value for name, value in post.items() if name not in _DERIVED_MEMBERS}
    return [sha256(orjson.dumps(content)).hexdigest(), post["url"]]
