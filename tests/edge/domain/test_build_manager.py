"""The build manager: which build is served, when the next one comes, and when that is bad."""

import asyncio
import gc
import logging
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.problems import Problem
from edge_api.journal.builds import LOST, NO_BUILD, BuildManager, IndexContents, PostSearch
from edge_api.journal.search_index_files import SearchOpener
from edge_api.schema.index import CURRENT_LINK, INDEX_FILE, PREVIOUS_LINK
from tests.edge.small_builds import (
    SITE_URL,
    encode_index,
    make_head,
    make_post,
    point_at,
    write_build,
)


@pytest.fixture
async def builds(tmp_path: Path) -> AsyncIterator[BuildManager]:
    """Return a build manager over an empty folder of builds."""
    made = BuildManager(tmp_path, SITE_URL, SearchOpener())
    try:
        yield made
    finally:
        await made.close()


def publish(build_dir: Path, build_id: str, *slugs: str, **head: Any) -> Path:
    """Write a build with these posts and make it current."""
    posts = [make_post(slug, 100 - day) for day, slug in enumerate(slugs)]
    folder = write_build(build_dir, build_id, posts, **head)
    point_at(build_dir, folder)
    return folder


async def test_nothing_is_served_before_the_first_build(builds: BuildManager) -> None:
    """Without one in the folder, requests for it are refused as unavailable."""
    await builds.refresh()

    assert (builds.current, builds.error) == (None, NO_BUILD)
    with pytest.raises(Problem) as caught:
        builds.build()
    assert caught.value.code == "unavailable"
    assert int(caught.value.headers["Retry-After"]) > 0


async def test_a_build_is_taken_in_whole(builds: BuildManager, tmp_path: Path) -> None:
    """Posts, search and files of the current build are there together."""
    folder = publish(tmp_path, "build-0001", "ink", "paper")
    await builds.refresh()
    build = builds.build()

    assert builds.error == ""
    assert (build.head.build_id, build.head.site_url) == ("build-0001", SITE_URL)
    assert (build.head.count, build.newest_slug) == (2, "ink")
    assert await build.search.find("paper", 10) == ["paper"]
    assert sorted(build.files) == ["/", "/journal/ink/", "/journal/paper/"]
    assert build.folder == folder.resolve()


async def test_a_journal_may_be_empty(builds: BuildManager, tmp_path: Path) -> None:
    """A build without posts is served; it has no newest one."""
    publish(tmp_path, "build-0001")
    await builds.refresh()

    assert (builds.build().head.count, builds.build().newest_slug) == (0, None)


async def test_the_next_build_takes_the_place_of_the_last(
    builds: BuildManager, tmp_path: Path
) -> None:
    """A swap is followed, and one look without a swap changes nothing."""
    publish(tmp_path, "build-0001", "ink")
    await builds.refresh()
    first = builds.build()
    await builds.refresh()
    assert builds.build() is first

    publish(tmp_path, "build-0002", "paper")
    await builds.refresh()

    assert builds.build().head.build_id == "build-0002"
    assert await builds.build().search.find("paper", 10) == ["paper"]


async def test_a_build_stays_open_while_it_is_used(builds: BuildManager, tmp_path: Path) -> None:
    """A request that began in a build ends in it; then its search is closed."""
    publish(tmp_path, "build-0001", "ink")
    await builds.refresh()
    used, search = builds.build(), builds.build().search
    publish(tmp_path, "build-0002", "paper")
    await builds.refresh()
    await builds.refresh()
    assert await used.search.find("ink", 10) == ["ink"]

    del used
    gc.collect()
    await builds.refresh()

    with pytest.raises(Problem) as caught:
        await search.find("ink", 10)
    assert caught.value.code == "unavailable"


@pytest.mark.parametrize(
    "damage", ["cut", "empty", "count", "format", "gone", "site", "hollow", "page"]
)
async def test_a_bad_build_leaves_the_old_one(
    builds: BuildManager, tmp_path: Path, damage: str
) -> None:
    """A build that cannot be served is reported without its path, and the old one stays."""
    publish(tmp_path, "build-0001", "ink")
    await builds.refresh()
    bad = write_build(tmp_path, "build-0002", [make_post("paper")])
    spoil(bad, damage)
    point_at(tmp_path, bad)
    await builds.refresh()

    assert builds.build().head.build_id == "build-0001"
    assert await builds.build().search.find("ink", 10) == ["ink"]
    assert builds.error.startswith("the newest build is not served: ")
    assert str(tmp_path) not in builds.error

    publish(tmp_path, "build-0003", "thread")
    await builds.refresh()
    assert (builds.build().head.build_id, builds.error) == ("build-0003", "")


def spoil(folder: Path, damage: str) -> None:
    """Do a build some harm."""
    index, raw = folder / INDEX_FILE, (folder / INDEX_FILE).read_bytes()
    match damage:
        case "cut":
            index.write_bytes(raw[: len(raw) // 2])
        case "empty":
            index.write_bytes(b"")
        case "count":
            index.write_bytes(encode_index(make_head("build-0002", 5), [make_post("paper")]))
        case "format":
            index.write_bytes(encode_index({"format": 7}, []))
        case "gone":
            index.unlink()
        case "site":
            shutil.rmtree(folder / "site")
        case "hollow":
            (folder / "site" / "index.html").unlink()
        case "page":
            shutil.rmtree(folder / "site" / "journal" / "paper")


async def test_a_bad_first_build_is_reported(builds: BuildManager, tmp_path: Path) -> None:
    """Without an old build nothing is served, and the reason is more than that."""
    spoil(publish(tmp_path, "build-0001", "ink"), "cut")
    await builds.refresh()

    assert builds.current is None
    assert "damaged" in builds.error


async def test_a_build_fixed_in_its_place_is_taken(builds: BuildManager, tmp_path: Path) -> None:
    """A bad build of which index or site is replaced is checked again."""
    for damage in ("cut", "site"):
        folder = publish(tmp_path, f"build-{damage}", "ink")
        whole = tmp_path / "whole"
        shutil.copytree(folder, whole)
        spoil(folder, damage)
        await builds.refresh()
        assert builds.error

        shutil.rmtree(folder)
        whole.rename(folder)
        await builds.refresh()
        assert (builds.build().head.build_id, builds.error) == (f"build-{damage}", "")


async def test_a_vanished_link_leaves_the_build(builds: BuildManager, tmp_path: Path) -> None:
    """Without `current` the build stays and an error is reported, until it is back."""
    folder = publish(tmp_path, "build-0001", "ink")
    await builds.refresh()
    (tmp_path / CURRENT_LINK).unlink()
    await builds.refresh()
    assert (builds.build().head.build_id, builds.error) == ("build-0001", NO_BUILD)

    point_at(tmp_path, folder)
    await builds.refresh()
    assert (builds.build().head.build_id, builds.error) == ("build-0001", "")


@pytest.mark.parametrize("part", ["", "site"])
@pytest.mark.parametrize("is_running", [True, False])
async def test_a_lost_build_gives_way_to_the_one_before(
    builds: BuildManager,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    part: str,
    *,
    is_running: bool,
) -> None:
    """One line says so, also where an edge starts without it; the next build is taken as ever."""
    former = write_build(tmp_path, "build-0001", [make_post("ink")])
    (tmp_path / PREVIOUS_LINK).symlink_to(former.name)
    served = publish(tmp_path, "build-0002", "paper")
    if is_running:
        await builds.refresh()
    shutil.rmtree(served / part)
    for _ in range(3):
        await builds.refresh()

    assert builds.build().head.build_id == "build-0001"
    assert builds.error.startswith("the newest build is not served: " if part else LOST)
    messages = [line.message for line in caplog.records if line.levelno > logging.INFO]
    assert messages == [builds.error]

    publish(tmp_path, "build-0003", "thread")
    await builds.refresh()
    assert (builds.build().head.build_id, builds.error) == ("build-0003", "")


async def test_a_lost_build_without_another_is_no_build(
    builds: BuildManager, tmp_path: Path
) -> None:
    """Pages would be missing, so readiness must not say that all is well."""
    served = publish(tmp_path, "build-0001", "ink")
    await builds.refresh()
    shutil.rmtree(served)
    await builds.refresh()

    assert (builds.current, builds.error) == (None, NO_BUILD)


async def test_current_may_be_a_folder(builds: BuildManager, tmp_path: Path) -> None:
    """A copy of a build that lost the link, as in a container's image, is served as well."""
    write_build(tmp_path, "build-0001", [make_post("ink")]).rename(tmp_path / CURRENT_LINK)
    await builds.refresh()

    assert builds.build().head.build_id == "build-0001"


async def test_a_build_for_another_site_is_reported(builds: BuildManager, tmp_path: Path) -> None:
    """A build with another SITE_URL is served, and said to be the wrong one."""
    publish(tmp_path, "build-0001", "ink", site_url="https://other.test")
    await builds.refresh()

    assert builds.build().head.site_url == "https://other.test"
    assert builds.error == (
        f"the build was made for https://other.test, and the settings name {builds.site_url}: set "
        "the same PORT or SITE_URL here (in .env), or build it for that one: "
        "python -m site_build build"
    )


class BrokenOnce:
    """Opens searches, but for the first time it is asked."""

    def __init__(self, fault: Exception) -> None:
        self.fault: Exception | None = fault

    async def __call__(self, folder: Path, reading: asyncio.Future[IndexContents]) -> PostSearch:
        """Raise the fault, once."""
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        return await SearchOpener()(folder, reading)


FAULTS = [
    (Problem("unavailable", "The disk is full"), "The disk is full"),
    (RuntimeError("of a kind that nobody foresaw"), "the log says more"),
]


@pytest.mark.parametrize(("fault", "sentence"), FAULTS)
async def test_a_fault_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Exception, sentence: str
) -> None:
    """The error is reported and logged once; with its trace, if it is unexpected."""
    publish(tmp_path, "build-0001", "ink")
    builds = BuildManager(tmp_path, SITE_URL, BrokenOnce(fault))
    with caplog.at_level(logging.ERROR):
        await builds.refresh()
        await builds.refresh()
    await builds.close()

    assert builds.current is None
    assert sentence in builds.error
    assert [bool(record.exc_info) for record in caplog.records] == [sentence == FAULTS[1][1]]


@pytest.mark.parametrize(("fault", "sentence"), FAULTS)
async def test_a_build_is_tried_again(tmp_path: Path, fault: Exception, sentence: str) -> None:
    """After a passing fault, such as a full disk, it is tried again after a while."""
    publish(tmp_path, "build-0001", "ink")
    builds = BuildManager(tmp_path, SITE_URL, BrokenOnce(fault), retry_seconds=0.0)
    await builds.refresh()
    assert sentence in builds.error
    await builds.refresh()

    assert (builds.build().head.build_id, builds.error) == ("build-0001", "")
    await builds.close()


async def test_a_slow_build_never_replaces_a_newer_one(tmp_path: Path) -> None:
    """Two looks at once take turns, so that the later build is the one that stays."""
    gate = asyncio.Event()

    async def open_slowly(folder: Path, reading: asyncio.Future[IndexContents]) -> PostSearch:
        await gate.wait()
        return await SearchOpener()(folder, reading)

    builds = BuildManager(tmp_path, SITE_URL, open_slowly)
    publish(tmp_path, "build-0001", "ink")
    first = asyncio.create_task(builds.refresh())
    await asyncio.sleep(0)
    publish(tmp_path, "build-0002", "paper")
    second = asyncio.create_task(builds.refresh())
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, second)

    assert builds.build().head.build_id == "build-0002"
    await builds.close()


async def test_the_loop_goes_on_while_a_build_is_read(builds: BuildManager, tmp_path: Path) -> None:
    """Reading a build waits in a thread: here for bytes that only the loop itself provides."""
    folder = publish(tmp_path, "build-0001", "ink")
    raw = (folder / INDEX_FILE).read_bytes()
    (folder / INDEX_FILE).unlink()
    os.mkfifo(folder / INDEX_FILE)
    reading = asyncio.create_task(builds.refresh())
    # Opening waits for the reader, so it happens in a thread as well; the writing is the loop's.
    with await asyncio.to_thread((folder / INDEX_FILE).open, "wb") as pipe:
        pipe.write(raw)
    await reading

    assert builds.build().head.build_id == "build-0001"


async def test_closing_lets_go_of_everything(tmp_path: Path) -> None:
    """A closed build manager has no build, and none of its searches is open."""
    builds = BuildManager(tmp_path, SITE_URL, SearchOpener())
    searches = []
    for build_id in ("build-0001", "build-0002"):
        publish(tmp_path, build_id, "ink")
        await builds.refresh()
        searches.append(builds.build().search)
    await builds.close()

    assert builds.current is None
    for search in searches:
        with pytest.raises(Problem):
            await search.find("ink", 1)
