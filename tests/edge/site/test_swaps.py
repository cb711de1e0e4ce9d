"""Editions that follow one another under load: each answer is of one build, none is missing."""

import asyncio
import re
import shutil
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge_api import background
from edge_api.background import watch_folder
from edge_api.journal.builds import BuildManager
from edge_api.journal.search_index_files import SearchOpener
from edge_api.schema.index import CURRENT_LINK
from edge_api.schema.page_templates import (
    CONTENT_PLACEHOLDER,
    DESCRIPTION_PLACEHOLDER,
    DOCS_BASE_TEMPLATE,
    DOCS_TEMPLATE,
    PATH_PLACEHOLDER,
    TEMPLATES_FOLDER,
    TITLE_PLACEHOLDER,
)
from tests.edge.edge_process import until
from tests.edge.small_builds import SITE_URL, make_post, point_at, write_build, write_site
from tests.patience import patience

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

POSTS = "/api/public/v1/posts"
SWAPS = 40
READERS = 8
BUILD = re.compile(r"build-[0-9]{4}")
PATHS = ["/", "/journal/p-1/", "/journal/p-2/index.md", "/feed.xml", POSTS, f"{POSTS}/p-1"]
PATHS += [f"{POSTS}?q=words&limit=5", f"{POSTS}?tag=all"]


def publish(build_dir: Path, number: int) -> Path:
    """Write a build in which every file and every post says which one it is."""
    name = f"build-{number:04}"
    posts = [
        make_post(f"p-{post}", 99 - post, title=name, content=f"Words of {name}.")
        for post in range(30)
    ]
    pages = {
        f"journal/p-{post}/index{end}": name * 20 for post in (1, 2) for end in (".html", ".md")
    }
    folder = write_build(
        build_dir, name, posts, {"index.html": name, "feed.xml": name * 500, **pages}
    )
    frame = (
        f"{TITLE_PLACEHOLDER} {PATH_PLACEHOLDER} {DESCRIPTION_PLACEHOLDER} "
        f"{CONTENT_PLACEHOLDER} {name}"
    )
    write_site(
        folder / TEMPLATES_FOLDER, {DOCS_BASE_TEMPLATE: frame, DOCS_TEMPLATE: "{{ page.title }}"}
    )
    point_at(build_dir, folder)
    return folder


async def read_on(edge: Any, key: str, done: asyncio.Event) -> list[list[str]]:
    """Read every path again and again; return the builds that each path showed, in order."""
    shown: list[list[str]] = [[] for _ in PATHS]
    while not done.is_set():
        for number, path in enumerate(PATHS):
            async with edge.ask("GET", path, key) as answer:
                text = await answer.text()
            builds = set(BUILD.findall(text))
            assert (answer.status, len(builds)) == (200, 1), (path, answer.status, text[:200])
            shown[number] += builds
    return shown


async def test_no_answer_mixes_builds(make_edge: Any, tmp_path: Path) -> None:
    """Each answer is of one build, and no reader sees an older one again.

    Meanwhile builds are swapped, and the replaced ones are cleared away at once.
    """
    builds = tmp_path / "builds"
    old = publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        key, done = await edge.key(), asyncio.Event()
        readers = [asyncio.create_task(read_on(edge, key, done)) for _ in range(READERS)]
        for number in range(2, SWAPS + 2):
            new = publish(builds, number)
            await edge.service[BuildManager].refresh()
            shutil.rmtree(old)
            old = new
            await asyncio.sleep(0.01)
        done.set()
        shown = [path for reader in await asyncio.gather(*readers) for path in reader]

    assert all(path == sorted(path) for path in shown)
    assert len({build for path in shown for build in path}) > SWAPS // 4


@pytest.mark.parametrize("path", ["/feed.xml", "/docs/"])
async def test_a_file_cleared_away_meanwhile_comes_from_the_new_build(
    make_edge: Any, tmp_path: Path, path: str
) -> None:
    """A request whose build goes away before its file was read is answered from the next one.

    So is one for a page of the reference, which is made with what a build hands over.
    """
    builds, loop, gate = tmp_path / "builds", asyncio.get_running_loop(), threading.Event()
    old = publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge, manager_of(builds) as ahead:
        publish(builds, 2)
        await ahead.refresh()
        thread = ThreadPoolExecutor(max_workers=1)
        waiting = thread._work_queue.qsize  # noqa: SLF001  there is no public count
        loop.set_default_executor(thread)
        busy = loop.run_in_executor(None, gate.wait)
        await until(lambda: waiting() == 0)
        asked = asyncio.create_task(edge.ask("GET", path).__aenter__())
        await until(lambda: waiting() > 0)  # the request waits for the one thread that reads
        replaced, edge.service[BuildManager].current = (
            edge.service[BuildManager].current,
            ahead.current,
        )
        shutil.rmtree(old)
        gate.set()
        answer = await asked
        text = await answer.text()
        await busy
        edge.service[BuildManager].current = replaced  # each build manager closes its own

    assert (answer.status, set(BUILD.findall(text))) == (200, {"build-0002"})


@asynccontextmanager
async def manager_of(folder: Path) -> AsyncIterator[BuildManager]:
    """Yield a build manager of the test's own."""
    builds = BuildManager(folder, SITE_URL, SearchOpener())
    try:
        yield builds
    finally:
        await builds.close()


async def test_validators_change_with_the_build(make_edge: Any, tmp_path: Path) -> None:
    """After a swap an old validator brings the new answer, and an unchanged one still 304."""
    builds = tmp_path / "builds"
    publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        key = await edge.key()
        etags = {}
        for path in PATHS:
            async with edge.ask("GET", path, key) as answer:
                etags[path] = answer.headers["ETag"]
        publish(builds, 2)
        await edge.service[BuildManager].refresh()
        for path in PATHS:
            headers = {"If-None-Match": etags[path]}
            async with edge.ask("GET", path, key, headers=headers) as answer:
                assert answer.status == 200
                assert "build-0002" in await answer.text()


async def test_a_swap_is_followed_by_itself(make_edge: Any, tmp_path: Path) -> None:
    """A running edge notices a new build by itself."""
    builds = tmp_path / "builds"
    publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        publish(builds, 2)
        for _ in range(200):
            async with edge.ask("GET", "/") as answer:
                if await answer.text() == "build-0002":
                    return
            await asyncio.sleep(0.05)
    pytest.fail("the edge went on serving the old build")


@pytest.fixture
def events_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an edge look for a build at events only."""
    monkeypatch.setattr(background, "REFRESH_SECONDS", 10 * patience())


@pytest.mark.usefixtures("events_alone")
async def test_the_file_system_tells_of_a_swap(make_edge: Any, tmp_path: Path) -> None:
    """Two swaps in a row end at the second; so does going back."""
    folders = [write_build(tmp_path, f"build-000{n}", [make_post("ink")]) for n in range(4)]
    point_at(tmp_path, folders[0])
    async with make_edge(BUILD_DIR=str(tmp_path), SITE_URL=SITE_URL) as edge:
        builds = edge.service[BuildManager]
        await until_watched(tmp_path, builds, folders[1])
        for targets in ((2, 3), (1,), (3, 0)):
            for target in targets:
                point_at(tmp_path, folders[target])
            await until(partial(is_served, builds, folders[target].name))


def is_served(builds: BuildManager, build_id: str) -> bool:
    """Return whether a build is served."""
    return builds.build().head.build_id == build_id


async def until_watched(build_dir: Path, builds: BuildManager, folder: Path) -> None:
    """Point at a build until an edge has seen it: its watch begins soon after its start."""
    for _ in range(1000):
        point_at(build_dir, folder)
        await asyncio.sleep(0.1)
        if is_served(builds, folder.name):
            return
    pytest.fail("no swap was seen")


async def test_a_lost_event_is_made_up_for(make_edge: Any, tmp_path: Path) -> None:
    """The watched folder is replaced by another, of which the watch knows nothing."""
    folder, other = tmp_path / "build", tmp_path / "other"
    point_at(folder, write_build(folder, "build-0001", [make_post("ink")]))
    point_at(other, write_build(other, "build-0002", [make_post("paper")]))
    async with make_edge(BUILD_DIR=str(folder), SITE_URL=SITE_URL) as edge:
        builds = edge.service[BuildManager]
        folder.rename(tmp_path / "former")
        other.rename(folder)
        await until(partial(is_served, builds, "build-0002"))
        point_at(folder, write_build(folder, "build-0003", [make_post("glue")]))
        await until(partial(is_served, builds, "build-0003"))


async def test_a_folder_that_comes_later_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is there, it is looked for at intervals."""
    monkeypatch.setattr(background, "REFRESH_SECONDS", 0.05)
    times = watch_folder(tmp_path / "build")
    await anext(times)
    (tmp_path / "build").mkdir()
    await anext(times)
    monkeypatch.setattr(background, "REFRESH_SECONDS", 10 * patience())
    for _ in range(2):
        await anext(times)
    (tmp_path / "build" / CURRENT_LINK).write_text("x")
    await asyncio.wait_for(anext(times), patience())
    await times.aclose()


@pytest.mark.parametrize(("damage", "status"), [("cut", 200), ("other", 503)])
async def test_readiness_reports_a_bad_build(
    make_edge: Any, tmp_path: Path, damage: str, status: int
) -> None:
    """A damaged build warns while the old one is served; one for another site is not ready."""
    builds = tmp_path / "builds"
    publish(builds, 1)
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        site_url = "https://other.test" if damage == "other" else SITE_URL
        bad = write_build(builds, "build-0002", [make_post("p-1")], site_url=site_url)
        if damage == "cut":
            index = bad / "posts.json"
            index.write_bytes(index.read_bytes()[:-40])
        point_at(builds, bad)
        await edge.service[BuildManager].refresh()
        async with edge.ask("GET", "/api/public/v1/readiness") as answer:
            report = await answer.json()

    assert answer.status == status
    assert report["checks"]["index"]["status"] == ("warn" if status == 200 else "fail")
    assert report["checks"]["index"]["error"]
    assert str(tmp_path) not in str(report)
