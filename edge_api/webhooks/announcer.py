"""Webhook events of posts that differ between the current build and the announced state."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
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
        self._compared = Posts(())  # those that were compared last
        self._compared_files: FileStates | None = None  # the files of its build

    async def announce(self) -> None:
        """Queue events for the posts that the current build changes. Raises Problem."""
        build = self._builds.current
        if build is None or build.posts.digest == self._compared.digest:
            return
        if build.head.site_url != self._builds.site_url:  # a mistake: every URL would differ
            return
        purges, before = self._purges, self._compared_files
        files = await purges.read_states(build) if purges else None
        row, now = await read_first(self._store, Read(ANNOUNCED_POSTS)), self._clock()
        is_known = row is not None and row["index_digest"] == self._compared.digest
        is_announced = row is not None and row["index_digest"] == build.posts.digest
        # An older build is a rollback only if this edge compared the announced index last.
        is_older = row is not None and row["built_for"] > format_instant(build.head.built_for)
        queries: tuple[Query, ...] = ()
        if is_known or not (is_announced or is_older):
            others = await asyncio.to_thread(self._listener, build, row, now)
            known = self._compared if is_known else None
            queries = await asyncio.to_thread(_make_queries, row, known, build, now, others)
            before = before if is_known else None
        # An edge that is late has given the CDN pages of its build before, whoever announced this.
        if purges and row and files is not None and (self._compared.digest or not is_announced):
            changed = (
                None if before is None else {path for path, _ in before.items() ^ files.items()}
            )
            queries = (*queries, *purges.queue(now, changed))
        if not queries or await run_unless_conflict(self._store, *queries):
            self._compared, self._compared_files = build.posts, files


def _make_queries(
    row: Row | None,
    known: Posts | None,
    build: Build,
    now: datetime,
    others: tuple[str, tuple[Query, ...]],
) -> tuple[Query, ...]:
    """Return the queries that announce a build, which conflict where `row` has changed.

    `known` are the posts that `row` has, if this edge compared them itself.
    """
    posts, built_for = build.posts, format_instant(build.head.built_for)
    texts, more = others
    described = posts.describe()
    text = orjson.dumps(described).decode()
    after = {"index_digest": posts.digest, "built_for": built_for, "posts": text, "texts": texts}
    if row is None:  # the posts at the first start count as announced
        return Insert(ANNOUNCED_POSTS, [{"id": 1, **after}]), *more
    before, events = known.describe() if known else orjson.loads(row["posts"]), []
    for slug, change in find_changes(before, described).items():
        url = (described.get(slug) or before[slug])[1]
        data = {"slug": slug, "url": url} if change == "removed" else posts.summary(slug)
        body = format_event(f"post.{change}", format_instant(now), data)
        subject = str(uuid5(NAMESPACE_URL, url))
        events.append({"event": f"post.{change}", "subject_id": subject, "body": body})
    same = Filter("index_digest", "eq", row["index_digest"])
    replace = Update(ANNOUNCED_POSTS, after, (same,), at_least=1)
    return replace, InsertFromRead(READ_ENABLED, partial(make_deliveries, events, now)), *more
