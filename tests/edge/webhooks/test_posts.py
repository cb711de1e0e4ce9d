"""Posts that are published, updated and removed: real receivers get each event once."""

import asyncio
import json
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from edge_api.db.internal_tables import ANNOUNCED_POSTS
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.tables import AUDIT_LOG
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildManager
from edge_api.webhooks.announcer import Announcer
from edge_api.webhooks.endpoints import EVENTS, LEAD_CREATED
from tests.edge.domain.conftest import WatchedStore
from tests.edge.engines import Opener
from tests.edge.small_builds import SITE_URL, START, make_post, point_at, write_build
from tests.edge.webhooks.conftest import Office, Receiver, ReceiverMaker, follow_builds

POSTS = EVENTS[1:-1]
PAGE = "journal/{}/index.html"


class Journal:
    """A BUILD_DIR, and edges that follow it."""

    def __init__(self, folder: Path, office: Office) -> None:
        self.folder, self._office, self._numbers = folder, office, count(1)

    def build(self, *posts: dict[str, Any], **more: Any) -> Path:
        """Make the current build of these posts, newest first; each is later than the last."""
        number = next(self._numbers)
        more.setdefault("built_for", START.replace(year=2027, day=number).isoformat())
        folder = write_build(self.folder, f"build-{number:04}", posts, **more)
        point_at(self.folder, folder)
        return folder

    def edge(self, store: Store | None = None, site_url: str = SITE_URL) -> "Edge":
        """Return an edge that has just started, with a store if it is not that of the office."""
        builds = follow_builds(self.folder, site_url)
        return Edge(builds, Announcer(store or self._office.store, self._office.clock, builds))


class Edge:
    """The part of an edge that handles a new build."""

    def __init__(self, builds: BuildManager, announcer: Announcer) -> None:
        self.builds, self.announcer = builds, announcer

    async def follow(self) -> None:
        """Serve the current build, and announce it."""
        await self.builds.refresh()
        await self.announcer.announce()


@pytest.fixture
def journal(tmp_path: Path, office: Office) -> Journal:
    """Return a journal without a build."""
    return Journal(tmp_path / "builds", office)


async def take_events(office: Office, receiver: Receiver) -> list[tuple[str, str]]:
    """Send what waits; return event and slug of all that has come, sorted, and forget it."""
    while await office.deliveries():
        await office.dispatcher.run_once()
    events = [json.loads(each.body) for each in receiver.received]
    receiver.received.clear()
    return sorted((event["type"], event["data"]["slug"]) for event in events)


async def test_each_change_is_sent_as_lists_of_posts_have_it(
    office: Office, receiver: Receiver, journal: Journal
) -> None:
    """Signed, with the post as in `GET /posts`; of a removed one slug and URL."""
    office.clock.now = datetime.now(UTC)  # or the library takes the message for an old one
    added = await office.endpoints.add(receiver.url, POSTS)
    edge = journal.edge()
    journal.build(make_post("gone", 3), make_post("same", 2), make_post("edited", 1))
    await edge.follow()
    assert await take_events(office, receiver) == []

    edited = make_post("edited", 1, content="Other words.")
    journal.build(make_post("new", 4), make_post("same", 2), edited)
    await edge.follow()
    await office.dispatcher.run_once()

    found = {}
    for received in receiver.received:
        event = Webhook(added["secret"]).verify(received.body, received.headers)
        found[event.pop("type")] = event
    now = format_instant(office.clock())
    lists = [dict(edge.builds.build().posts.summary(slug)) for slug in ("new", "edited")]
    assert found == {
        "post.published": {"timestamp": now, "data": lists[0]},
        "post.updated": {"timestamp": now, "data": lists[1]},
        "post.removed": {
            "timestamp": now,
            "data": {"slug": "gone", "url": f"{SITE_URL}/journal/gone/"},
        },
    }
    assert "content" not in lists[0]
    assert {"slug", "title", "url", "publishedAt", "updatedAt", "tags"} <= lists[0].keys()


@pytest.mark.parametrize(
    "change",
    [{"content_html": "<p>Words of <a href='/journal/moved/'>one</a>.</p>"}, {"readingMinutes": 2}],
)
async def test_changes_by_neighbours_and_theme_are_no_update(
    office: Office, receiver: Receiver, journal: Journal, change: dict[str, Any]
) -> None:
    """Nor is a build with other pages and the same posts."""
    await office.endpoints.add(receiver.url, POSTS)
    edge = journal.edge()
    journal.build(make_post("one"))
    await edge.follow()
    journal.build(make_post("one"), files={PAGE.format("one"): "<p>Another theme</p>"})
    await edge.follow()
    journal.build(make_post("two", 1), make_post("one", **change))
    await edge.follow()

    assert await take_events(office, receiver) == [("post.published", "two")]


@pytest.mark.parametrize(
    "change", [{"title": "T"}, {"tags": ["x"]}, {"description": "D"}, {"url": f"{SITE_URL}/p/"}]
)
async def test_each_public_member_counts(
    office: Office, receiver: Receiver, journal: Journal, change: dict[str, Any]
) -> None:
    """A post as its author writes it, and its address."""
    await office.endpoints.add(receiver.url, POSTS)
    edge = journal.edge()
    journal.build(make_post("one"))
    await edge.follow()
    journal.build(make_post("one", **change), files={"p/index.html": ""})
    await edge.follow()

    assert await take_events(office, receiver) == [("post.updated", "one")]


async def test_changes_while_no_edge_ran_are_sent_once_at_the_start(
    office: Office, receiver: Receiver, journal: Journal, open_another: Opener
) -> None:
    """By one of several edges that start together, each with a connection of its own."""
    await office.endpoints.add(receiver.url, POSTS)
    journal.build()
    await journal.edge().follow()
    journal.build(make_post("two", 1), make_post("one"))

    edges = [journal.edge(await open_another()) for _ in range(4)]
    await asyncio.gather(*(each.follow() for each in edges))
    for each in edges:
        await each.follow()
    await journal.edge().follow()

    assert await take_events(office, receiver) == [
        ("post.published", "one"),
        ("post.published", "two"),
    ]


async def test_edges_that_start_first_together_announce_nothing(
    office: Office, receiver: Receiver, journal: Journal, open_another: Opener
) -> None:
    """All of a journal's posts are there before anybody asks."""
    await office.endpoints.add(receiver.url, POSTS)
    journal.build(make_post("two", 1), make_post("one"))
    edges = [journal.edge(await open_another()) for _ in range(4)]
    for _ in range(2):
        await asyncio.gather(*(each.follow() for each in edges))

    assert await take_events(office, receiver) == []
    assert len(await office.rows(ANNOUNCED_POSTS)) == 1


async def test_a_rollback_and_its_end_are_sent_once_each(
    office: Office, receiver: Receiver, journal: Journal, open_another: Opener
) -> None:
    """Posts that readers no longer find are removed, whichever edge sees it first."""
    await office.endpoints.add(receiver.url, POSTS)
    edges = [journal.edge(), journal.edge(await open_another())]
    first = journal.build(make_post("one"))
    for edge in edges:
        await edge.follow()
    second = journal.build(make_post("two", 1), make_post("one"))
    for folder, event in (
        (second, "post.published"),
        (first, "post.removed"),
        (second, "post.published"),
    ):
        point_at(journal.folder, folder)
        for edge in (*edges, *edges):
            await edge.follow()
        assert await take_events(office, receiver) == [(event, "two")]


async def test_an_edge_that_starts_with_an_older_build_takes_nothing_back(
    office: Office, receiver: Receiver, journal: Journal
) -> None:
    """As one of several machines does that the newest build has not reached yet."""
    await office.endpoints.add(receiver.url, POSTS)
    edge = journal.edge()
    older = journal.build(make_post("one"))
    await edge.follow()
    newer = journal.build(make_post("two", 1), make_post("one"))
    await edge.follow()
    point_at(journal.folder, older)
    late = journal.edge()
    await late.follow()
    point_at(journal.folder, newer)
    await late.follow()
    assert await take_events(office, receiver) == [("post.published", "two")]

    journal.build(make_post("three", 2), make_post("two", 1), make_post("one"))
    await late.follow()
    assert await take_events(office, receiver) == [("post.published", "three")]


async def test_a_build_for_another_address_is_not_announced(
    office: Office, receiver: Receiver, journal: Journal
) -> None:
    """A build made with a wrong SITE_URL would change every post, and back again."""
    await office.endpoints.add(receiver.url, POSTS)
    edge = journal.edge()
    journal.build(make_post("one"))
    await edge.follow()
    journal.build(
        make_post("one", url="https://wrong.test/journal/one/"), site_url="https://w.test"
    )
    await edge.follow()
    journal.build(make_post("one"))
    await edge.follow()

    assert await take_events(office, receiver) == []


async def test_an_endpoint_gets_what_it_chose(
    office: Office, make_receiver: ReceiverMaker, journal: Journal
) -> None:
    """Leads alone, unless it says otherwise, so that nobody is surprised; it may choose anew."""
    leads, posts = await make_receiver(), await make_receiver()
    await office.endpoints.add(leads.url)
    chosen = await office.endpoints.add(posts.url, ["post.published"])
    edge = journal.edge()
    journal.build(make_post("one"))
    await edge.follow()
    journal.build(make_post("two"))
    await edge.follow()
    await office.lead()
    await office.dispatcher.run_once()
    assert [json.loads(each.body)["type"] for each in leads.received] == [LEAD_CREATED]
    assert await take_events(office, posts) == [("post.published", "two")]

    await office.endpoints.set_events(chosen["id"], ["post.removed"])
    journal.build(make_post("three"))
    await edge.follow()
    assert await take_events(office, posts) == [("post.removed", "two")]
    assert "choose" in [row["verb"] for row in await office.rows(AUDIT_LOG)]


async def test_an_endpoint_that_comes_later_gets_nothing_of_before(
    office: Office, receiver: Receiver, journal: Journal
) -> None:
    """The record of announced posts moves on without any endpoint."""
    edge = journal.edge()
    journal.build()
    await edge.follow()
    journal.build(make_post("one"))
    await edge.follow()
    await office.endpoints.add(receiver.url, POSTS)
    await edge.follow()
    await journal.edge().follow()

    assert await take_events(office, receiver) == []


async def test_an_outage_delays_and_loses_nothing(
    office: Office, receiver: Receiver, journal: Journal
) -> None:
    """Both if the store fails and if the process ends before the commit."""
    await office.endpoints.add(receiver.url, POSTS)
    watched = WatchedStore(office.store)
    edge = journal.edge(watched)
    journal.build()
    await edge.follow()
    journal.build(make_post("one"))
    watched.away = True
    with pytest.raises(Problem):
        await edge.follow()
    watched.away = False
    await edge.follow()

    assert await take_events(office, receiver) == [("post.published", "one")]


async def test_a_thousand_changes_hold_nothing_up(
    office: Office, receiver: Receiver, journal: Journal
) -> None:
    """They are queued once each in one transaction, and the loop goes on meanwhile."""
    await office.endpoints.add(receiver.url, POSTS)
    edge = journal.edge()
    journal.build()
    await edge.follow()
    words = "Many words. " * 1000
    posts = (make_post(f"post-{n:04}", 0, content=words, content_html=words) for n in range(1000))
    journal.build(*posts)
    await edge.builds.refresh()
    longest, announcing = 0.0, asyncio.create_task(edge.announcer.announce())
    while not announcing.done():
        before = time.thread_time()
        await asyncio.sleep(0.001)
        longest = max(longest, time.thread_time() - before)
    await announcing

    assert longest < 1.0  # tens of milliseconds of the processor's time
    queued = [json.loads(row["body"])["data"]["slug"] for row in await office.deliveries()]
    assert sorted(queued) == [f"post-{number:04}" for number in range(1000)]
