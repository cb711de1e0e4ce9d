"""Purges of a CDN: each build sends the addresses that it changed, twice, by one of all edges."""

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
from edge_api.journal.builds import BuildManager
from edge_api.journal.search_index_files import SearchOpener
from edge_api.settings import read_settings
from edge_api.webhooks.announcer import Announcer
from edge_api.webhooks.endpoints import SITE_CHANGED
from edge_api.webhooks.purges import DELAYS, MAX_URLS, Purges
from tests.edge.engines import Opener
from tests.edge.small_builds import SITE_URL, START, make_post, point_at, write_build
from tests.edge.webhooks.conftest import Office, Receiver

FILES = {
    "feed.xml": "<feed/>",
    "about/index.html": "<p>about</p>",
    "a b/index.html": "<p>space</p>",
}


class Edge:
    """An edge that follows a BUILD_DIR and announces its builds."""

    def __init__(self, folder: Path, store: Store, office: Office, cdn_seconds: str) -> None:
        settings = read_settings({"CDN_SECONDS": cdn_seconds}, dotenv=None)
        self.woken = asyncio.Event()
        self.builds = BuildManager(folder, SITE_URL, SearchOpener())
        purges = Purges(settings, store, self.woken.set)
        self.announcer = Announcer(store, office.clock, self.builds, purges=purges)

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


async def test_changed_new_and_removed_addresses_are_sent_twice(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """Signed, once every process serves the new build, and again for the slowest machine."""
    office.clock.now = datetime.now(UTC)  # or the library takes the message for an old one
    added = await office.endpoints.add(receiver.url, [SITE_CHANGED])
    edge = Edge(folder, office.store, office, "60")
    await edge.follow()
    build_next(folder, 2, [make_post("two", 1), make_post("one")], **{"a b/index.html": "x"})
    await edge.follow()
    assert await take_events(office, receiver) == []

    office.clock.now += DELAYS[0]
    await office.dispatcher.run_once()
    (first,) = receiver.received
    event = Webhook(added["secret"]).verify(first.body, first.headers)
    assert (event["type"], event["data"]["everything"]) == (SITE_CHANGED, False)
    paths = ("/a%20b/", "/feed.xml", "/journal/two/")
    assert event["data"]["urls"] == [f"{SITE_URL}{path}" for path in paths]
    await asyncio.wait_for(edge.woken.wait(), 60)

    receiver.received.clear()
    office.clock.now += DELAYS[1]
    assert await take_events(office, receiver) == [event["data"]]

    build_next(folder, 3, [make_post("one")], **{"a b/index.html": "x"})
    await edge.follow()
    office.clock.now += DELAYS[0]
    (data,) = await take_events(office, receiver)
    assert data["urls"] == [f"{SITE_URL}{path}" for path in ("/a%20b/", "/feed.xml", paths[-1])]


async def test_of_several_edges_one_sends(
    office: Office, receiver: Receiver, folder: Path, open_another: Opener
) -> None:
    """Each knows the build before, whoever announced that one."""
    await office.endpoints.add(receiver.url, [SITE_CHANGED])
    edges = [Edge(folder, await open_another(), office, "60") for _ in range(4)]
    for number in range(2, 5):
        for edge in edges:
            await edge.follow()
        build_next(folder, number, [make_post("one")], **{"about/index.html": f"{number}"})
        await asyncio.gather(*(each.follow() for each in edges))
        for edge in edges:  # one that lost notes the build at its next turn
            await edge.follow()
        office.clock.now += DELAYS[1]
        urls = [f"{SITE_URL}/about/", f"{SITE_URL}/feed.xml"]
        assert await take_events(office, receiver) == [{"everything": False, "urls": urls}] * 2


async def test_where_the_build_before_is_unknown_everything_is_purged(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """It was replaced while no edge ran; likewise, too many addresses are not listed."""
    await office.endpoints.add(receiver.url, [SITE_CHANGED])
    await Edge(folder, office.store, office, "60").follow()
    build_next(folder, 2, [make_post("one")])
    edge = Edge(folder, office.store, office, "60")
    await edge.follow()
    office.clock.now += DELAYS[1]
    everything = [{"everything": True, "urls": []}] * 2
    assert await take_events(office, receiver) == everything

    many = {f"page-{number}/index.html": "" for number in range(MAX_URLS)}
    build_next(folder, 3, [make_post("one")], **many)
    await edge.follow()
    office.clock.now += DELAYS[1]
    assert await take_events(office, receiver) == everything


async def test_nothing_is_sent_without_a_change_or_without_a_cdn(
    office: Office, receiver: Receiver, folder: Path
) -> None:
    """A build of the same files purges nothing, and none does where pages are not kept."""
    await office.endpoints.add(receiver.url, [SITE_CHANGED])
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
