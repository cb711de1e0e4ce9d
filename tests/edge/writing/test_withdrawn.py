"""A withdrawn post: its address answers 410 at once and from then on, whatever the builds have."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge_api.db.internal_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Read, Update, read_all, where_id
from edge_api.journal.builds import BuildManager
from edge_api.webhooks.endpoints import PURGE_DELAYS, SITE_CHANGED, Endpoints
from tests.edge.conftest import CONTENT, EdgeMaker, RunningEdge, run_build
from tests.edge.engines import ON_SQLITE
from tests.edge.writing_process import writing
from tests.patience import patience

pytestmark = [ON_SQLITE, pytest.mark.size("test")]
SLUG = "first-edge"
PAGE = f"/journal/{SLUG}/"
SOURCE = f"/api/public/v1/sources/{SLUG}"


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Return the settings of a built journal that can be written."""
    shutil.copytree(CONTENT, tmp_path / "content")
    run_build(tmp_path / "content", tmp_path / "build")
    return {
        "WRITING": "on",
        "CDN_SECONDS": "60",
        "CONTENT_DIR": str(tmp_path / "content"),
        "BUILD_DIR": str(tmp_path / "build"),
    }


@pytest.fixture
async def journal(
    make_edge: EdgeMaker, tmp_path: Path, folders: dict[str, str]
) -> AsyncIterator[RunningEdge]:
    """Return an edge with that journal, and run the process that writes."""
    async with make_edge(**folders) as running:
        with writing(tmp_path, Path(folders["CONTENT_DIR"]), Path(folders["BUILD_DIR"])):
            yield running


async def change(journal: RunningEdge, act: str) -> None:
    """Withdraw the post, or publish it."""
    key = await journal.key("posts:draft", "posts:publish")
    async with journal.ask("GET", SOURCE, key) as answer:
        version = answer.headers["ETag"]
    headers = {"If-Match": version}
    async with journal.ask("POST", f"{SOURCE}/{act}", key, json={}, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


async def status(journal: RunningEdge, path: str = PAGE, accept: str = "text/html") -> int:
    """Return the status of a page."""
    async with journal.ask("GET", path, headers={"Accept": accept}) as answer:
        return int(answer.status)


def publish_by_hand(file: Path) -> None:
    """Take the line that makes it a draft out, as with an editor."""
    text = file.read_text()
    assert "status: draft\n" in text
    file.write_text(text.replace("status: draft\n", ""))


async def wait_until_it_answers(journal: RunningEdge) -> None:
    """Wait until the page is there."""
    deadline = time.monotonic() + patience()
    while await status(journal) != 200:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_a_withdrawn_post_is_gone_at_once(journal: RunningEdge) -> None:
    """No build was made; each form of its address is gone, and other pages are as they were."""
    async with journal.ask("GET", "/journal/none/") as answer:
        missing = await answer.text()
    assert await status(journal) == 200
    await change(journal, "withdraw")

    for path in (PAGE, PAGE.rstrip("/"), f"{PAGE}index.html", f"{PAGE}index.md", f"/{PAGE}"):
        assert await status(journal, path) == 410, path
    assert await status(journal, accept="text/markdown") == 410
    async with journal.ask("GET", PAGE) as answer:
        assert await answer.text() == missing
        assert "max-age" not in answer.headers["Cache-Control"]
    async with journal.ask("HEAD", PAGE) as answer:
        assert answer.status == 410
    assert await status(journal, "/") == 200


async def test_a_cdn_forgets_it_at_once(journal: RunningEdge) -> None:
    """Its page and its Markdown, which it could keep until a later build; it keeps no 410."""
    store, endpoints = journal.service.store, journal.service[Endpoints]
    row = await endpoints.add("https://93.184.216.34/", ["post.removed"])
    chosen = {"events": SITE_CHANGED}  # by another way, or all that it missed would be purged
    await store.run(Update(WEBHOOK_ENDPOINTS, chosen, where_id(row["id"])))
    await change(journal, "withdraw")
    async with journal.ask("GET", PAGE) as answer:
        assert (answer.status, answer.headers["Cache-Control"]) == (410, "private, no-cache")

    base = journal.service.settings.site_url
    deliveries = await read_all(store, Read(WEBHOOK_DELIVERIES))
    assert len(deliveries) == len(PURGE_DELAYS)
    for delivery in deliveries:
        data = json.loads(delivery["body"])["data"]
        assert not data["everything"]
        assert {f"{base}{PAGE}", f"{base}{PAGE}index.md"} <= {*data["urls"]}


async def test_it_stays_gone_after_builds_and_restarts(
    journal: RunningEdge, make_edge: EdgeMaker, folders: dict[str, str]
) -> None:
    """A build without the page, and an edge that was started later, say the same."""
    await change(journal, "withdraw")
    run_build(Path(folders["CONTENT_DIR"]), Path(folders["BUILD_DIR"]))
    await journal.service[BuildManager].refresh()
    assert await status(journal) == 410
    async with make_edge(**folders) as another:
        assert await status(another) == 410


async def test_a_post_that_is_published_again_answers(journal: RunningEdge) -> None:
    """The build that has it is served as before, without another build."""
    await change(journal, "withdraw")
    assert await status(journal) == 410
    await change(journal, "publish")
    await wait_until_it_answers(journal)


async def test_a_post_that_is_published_by_hand_answers(
    journal: RunningEdge, folders: dict[str, str]
) -> None:
    """The owner needs neither desk nor API for it."""
    await change(journal, "withdraw")
    assert await status(journal) == 410
    publish_by_hand(Path(folders["CONTENT_DIR"], "posts/first.md"))
    await wait_until_it_answers(journal)


async def test_where_nobody_writes_any_more_pages_answer(
    journal: RunningEdge, make_edge: EdgeMaker, folders: dict[str, str]
) -> None:
    """Without the process that would see that a post is published again, builds alone count."""
    await change(journal, "withdraw")
    async with make_edge(**{**folders, "WRITING": "off"}) as another:
        assert await status(another) == 200
