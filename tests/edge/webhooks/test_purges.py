"""Purges of a CDN: each edge sends the addresses that its new build changed, twice."""

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from edge_api.db.query import Store
from edge_api.db.table import Row
from edge_api.settings import read_settings
from edge_api.webhooks.announcer import Announcer
from edge_api.webhooks.endpoints import PURGE_DELAYS, SITE_CHANGED
from edge_api.webhooks.purges import MAX_URLS, UNPURGED_SECONDS, Purges
from tests.edge.engines import Opener
from tests.edge.small_builds import SITE_URL, START, make_post, point_at, write_build
from tests.edge.webhooks.conftest import Office, Receiver, follow_builds

EVERYTHING = {"everything": True, "urls": []}
FILES = {
    "feed.xml": "<feed/>",
    "about/index.html": "<p>about</p>",
    "a b/index.html": "<p>space</p>",
}


class Edge:
    """An edge that follows a BUILD_DIR and announces its builds."""

    def __init__(self, folder: Path, store: Store, office: Office, cdn_seconds: str) -> None:
        settings = read_settings({"CDN_SECONDS": cdn_seconds, "SITE_URL": SITE_URL}, dotenv=None)
        self.woken = asyncio.Event()
        self.builds = follow_builds(folder)
        self.purges = Purges(settings, store, self.woken.set)
        self.announcer = Announcer(store, office.clock, self.builds, purges=self.purges)

    async def follow(self) -> None:
        """Serve the current build, and announce it."""
        await self.builds.refresh()
        await self.announcer.announce()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a BUILD_DIR whose current build has one post."""
    made = tmp_path / "builds"
    at = START.replace(year=2027).isoformat()
    point_at(made, write_build(made, "build-0001", [make_post("one")], FILES, built_for=at))
    return made


def build_next(folder: Path, number: int, posts: Sequence[Any], **changed: str) -> None:
    """Make the next build current: like the one before, but for its posts and changed files.

    As a build of ours does, it has a hard link to each file that did not change.
    """
    before = (folder / "current").resolve() / "site"
    at = START.replace(year=2027, day=number).isoformat()
    made = write_build(folder, f"build-{number:04}", posts, {**FILES, **changed}, built_for=at)
    for path in (made / "site").rglob("*.*"):
        name = path.relative_to(made / "site")
        if str(name) not in changed and (before / name).is_file() and name.name != "feed.xml":
            path.unlink()
            os.link(before / name, path)
    point_at(folder, made)


async def take_events(office: Office, receiver: Receiver) -> list[dict[str, Any]]:
    """Send what is due now; return the data of all that has come, and forget it."""
    await office.dispatcher.run_once()
    events = [json.loads(each.body)["data"] for each in receiver.received]
    receiver.received.clear()
    return events


async def add_endpoint(office: Office, receiver: Receiver) -> Row:
    """Add an endpoint that hears of changes, to which all that it missed is sent."""
    added = await office.endpoints.add(receiver.url, [SITE_CHANGED])
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == [EVERYTHING] * 2
    return added


async def test_changed_new_and_removed_addresses_are_sent_twice(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """Signed, once every process serves the new build, and again for the slowest machine."""
    office.clock.now = datetime.now(UTC)  # or the library takes the message for an old one
    added = await add_endpoint(office, receiver)
    edge = Edge(folder, office.store, office, "60")
    await edge.follow()
    build_next(folder, 2, [make_post("two", 1), make_post("one")], **{"a b/index.html": "x"})
    await edge.follow()
    assert await take_events(office, receiver) == []

    office.clock.now += PURGE_DELAYS[0]
    await office.dispatcher.run_once()
    (first,) = receiver.received
    event = Webhook(added["secret"]).verify(first.body, first.headers)
    assert (event["type"], event["data"]["everything"]) == (SITE_CHANGED, False)
    paths = ("/a%20b/", "/feed.xml", "/journal/two/")
    assert event["data"]["urls"] == [f"{SITE_URL}{path}" for path in paths]
    await asyncio.wait_for(edge.woken.wait(), 60)

    receiver.received.clear()
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == [event["data"]]

    build_next(folder, 3, [make_post("one")], **{"a b/index.html": "x"})
    await edge.follow()
    office.clock.now += PURGE_DELAYS[0]
    (data,) = await take_events(office, receiver)
    assert data["urls"] == [f"{SITE_URL}{path}" for path in ("/a%20b/", "/feed.xml", paths[-1])]


async def test_of_several_edges_each_sends_what_it_replaced(
    office: Office, receiver: Receiver, folder: Path, open_another: Opener
) -> None:
    """Also a late one: until then it gave the CDN pages of its build before."""
    await add_endpoint(office, receiver)
    edges = [Edge(folder, await open_another(), office, "60") for _ in range(4)]
    for number in range(2, 5):
        for edge in edges:
            await edge.follow()
        build_next(folder, number, [make_post("one")], **{"about/index.html": f"{number}"})
        first, late = edges[:3], edges[3]
        await asyncio.gather(*(each.follow() for each in first))
        for edge in first:  # one that lost notes the build at its next turn
            await edge.follow()
        office.clock.now += PURGE_DELAYS[1]
        changed = {"everything": False, "urls": [f"{SITE_URL}/about/", f"{SITE_URL}/feed.xml"]}
        assert await take_events(office, receiver) == [changed] * 6
        office.clock.now += timedelta(hours=1)
        await late.follow()
        office.clock.now += PURGE_DELAYS[1]
        assert await take_events(office, receiver) == [changed] * 2


async def test_where_the_build_before_is_unknown_everything_is_purged(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """It was replaced while no edge ran; likewise, too many addresses are not listed."""
    await add_endpoint(office, receiver)
    await Edge(folder, office.store, office, "60").follow()
    build_next(folder, 2, [make_post("one")])
    edge = Edge(folder, office.store, office, "60")
    await edge.follow()
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == [EVERYTHING] * 2

    many = {f"page-{number}/index.html": "" for number in range(MAX_URLS)}
    build_next(folder, 3, [make_post("one")], **many)
    await edge.follow()
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == [EVERYTHING] * 2


async def test_nothing_is_sent_without_a_change_or_without_a_cdn(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """A build of the same files purges nothing, and none does where pages are not kept."""
    await add_endpoint(office, receiver)
    edge, without = (Edge(folder, office.store, office, seconds) for seconds in ("60", "0"))
    await edge.follow()
    made = write_build(folder, "build-0002", [make_post("one")], built_for="2027-01-02T00:00:00Z")
    shutil.rmtree(made / "site")
    shutil.copytree(folder / "build-0001" / "site", made / "site", copy_function=os.link)
    point_at(folder, made)
    await edge.follow()
    await without.follow()
    build_next(folder, 3, [make_post("one")])
    await without.follow()
    office.clock.now += timedelta(hours=1)
    assert await take_events(office, receiver) == []


async def test_an_older_build_at_a_restart_purges_everything(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """A rollback while no edge ran: posts have no event, but the CDN has pages of the newer one."""
    await office.endpoints.add(receiver.url, [SITE_CHANGED, "post.removed"])
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == [EVERYTHING] * 2
    build_next(folder, 2, [make_post("two", 1), make_post("one")])
    await Edge(folder, office.store, office, "60").follow()
    point_at(folder, folder / "build-0001")
    back = Edge(folder, office.store, office, "60")
    await back.follow()
    await back.follow()
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == [EVERYTHING] * 2
    await Edge(folder, office.store, office, "0").follow()
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == []


async def test_an_endpoint_gets_what_it_missed(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """While it was off, did not choose these events, or was given up: everything is purged."""
    row = await add_endpoint(office, receiver)
    edge = Edge(folder, office.store, office, "60")
    await edge.follow()
    await office.endpoints.pause(row["id"])
    build_next(folder, 2, [make_post("one")], **{"about/index.html": "2"})
    await edge.follow()
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == []
    for change in (
        office.endpoints.enable(row["id"]),
        office.endpoints.set_events(row["id"], [SITE_CHANGED, "post.updated"]),
        office.endpoints.discard(row["id"]),
    ):
        await change
        office.clock.now += PURGE_DELAYS[1]
        assert await take_events(office, receiver) == [EVERYTHING] * 2
    await office.endpoints.set_events(row["id"], ["post.updated"])
    office.clock.now += PURGE_DELAYS[1]
    assert await take_events(office, receiver) == []


async def test_files_are_looked_at_only_where_somebody_hears_of_them(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """A large build has thousands of them."""
    edge, without = (Edge(folder, office.store, office, seconds) for seconds in ("60", "0"))
    for each in (edge, without):
        await each.follow()
    build = edge.builds.build()
    assert await edge.purges.read_states(build) is None
    await add_endpoint(office, receiver)
    states = await edge.purges.read_states(build)
    assert states is not None
    assert "/about/" in states
    assert await without.purges.read_states(build) is None


async def test_each_spelling_that_the_site_links_is_purged(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """Structured data leaves more signs as they are than templates do."""
    await add_endpoint(office, receiver)
    edge = Edge(folder, office.store, office, "60")
    await edge.follow()
    build_next(folder, 2, [make_post("one")], **{"tags/c++/index.html": "c"})
    await edge.follow()
    office.clock.now += PURGE_DELAYS[1]
    urls = [f"{SITE_URL}{path}" for path in ("/feed.xml", "/tags/c%2B%2B/", "/tags/c++/")]
    assert await take_events(office, receiver) == [{"everything": False, "urls": urls}] * 2


async def test_without_a_store_pages_are_kept_for_five_minutes(
    office: Office, receiver: Receiver, folder: Path, open_another: Opener
) -> None:
    """Nobody can send purges then, and no readiness need be asked for."""
    await add_endpoint(office, receiver)
    store = await open_another()
    purges = Edge(folder, store, office, "3600").purges
    await purges.refresh()
    assert purges.seconds == 3600
    await store.close()
    check = await purges.check()
    assert check is not None
    assert (check.state, purges.seconds) == ("pass", 3600)
    await purges.refresh()
    check = await purges.check()
    assert check is not None
    assert (check.state, purges.seconds) == ("warn", UNPURGED_SECONDS)
