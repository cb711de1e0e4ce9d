"""Kept search indexes: what a start and a swap take from them, and what of them is not believed."""

import asyncio
import errno
import fcntl
import logging
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from edge_api.db.fts.index import Search
from edge_api.db.problems import Problem
from edge_api.journal import search_index_files
from edge_api.journal.builds import BuildManager
from edge_api.journal.search_index_files import (
    MIN_POSTS_FOR_INDEX_FILE,
    IndexFiles,
    PendingSearch,
    SearchOpener,
    search_prefix,
)
from edge_api.settings import read_settings
from tests.edge.edge_process import until
from tests.edge.small_builds import SITE_URL, make_post, point_at, write_build

pytestmark = pytest.mark.size("test")

SLUGS = ("ink", "paper", "thread", "glue")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """Return what the paths of kept indexes begin with, in a folder that has other files too."""
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "edge.db").write_text("the store")
    return tmp_path / "var" / "edge.db-search"


def kept(prefix: Path) -> list[Path]:
    """Return all files but the store."""
    return [path for path in prefix.parent.iterdir() if path.name != "edge.db"]


def publish(tmp_path: Path, build_id: str, *slugs: str) -> None:
    """Write a build with these posts, newest first, and make it current."""
    posts = [make_post(slug, 100 - day) for day, slug in enumerate(slugs)]
    point_at(tmp_path, write_build(tmp_path, build_id, posts))


def held_open(prefix: Path) -> set[str]:
    """Return the names of such files that this process has open, also of deleted ones."""
    names = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            names.add(each.readlink().name)
    return {name for name in names if name.startswith(prefix.name)}


@asynccontextmanager
async def serving(tmp_path: Path, prefix: Path, kept_from: int = 1) -> AsyncIterator[BuildManager]:
    """Yield a build manager that has taken the current build in."""
    builds = BuildManager(tmp_path, SITE_URL, SearchOpener(prefix, kept_from))
    try:
        await builds.refresh()
        if builds.current:
            await builds.current.search.find("", 1)  # waits for an index that is being made
        yield builds
    finally:
        await builds.close()


async def found(builds: BuildManager, words: str = "words") -> list[str]:
    """Return what the current build has with these words."""
    return await builds.build().search.find(words, 10)


async def test_a_restart_opens_what_was_made(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file beside the store, for its owner alone; with it no process is started."""
    publish(tmp_path, "build-0001", *SLUGS)
    async with serving(tmp_path, prefix) as builds:
        assert await found(builds) == [*SLUGS]
    (file,) = kept(prefix)
    assert file.name.startswith("edge.db-search-build-0001-")
    assert file.stat().st_mode & 0o777 == 0o600

    monkeypatch.setattr(sys, "executable", "/missing")
    monkeypatch.setattr(search_index_files, "open_search", None)
    async with serving(tmp_path, prefix) as builds:
        assert await found(builds) == [*SLUGS]
    assert kept(prefix) == [file]


async def test_a_start_does_not_wait_for_the_index(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts are there before it is made; a search waits, and what failed is tried again."""
    gate, make = asyncio.Event(), search_index_files.make_file
    faults = [OSError("the disk is full")]

    async def make_slowly(files: IndexFiles, index: Path) -> None:
        await gate.wait()
        if faults:
            raise faults.pop()
        await make(files, index)

    monkeypatch.setattr(search_index_files, "make_file", make_slowly)
    publish(tmp_path, "build-0001", *SLUGS)
    builds = BuildManager(tmp_path, SITE_URL, SearchOpener(prefix, 1))
    await builds.refresh()
    assert builds.build().head.count == len(SLUGS)
    asking = asyncio.create_task(found(builds))
    await asyncio.sleep(0)
    assert not asking.done()

    gate.set()
    with pytest.raises(OSError, match="the disk is full"):
        await asking
    assert await found(builds) == [*SLUGS]
    await builds.close()


async def test_a_pending_search_that_is_closed_is_unavailable() -> None:
    """For whoever waits for it, and for whoever asks later."""

    async def open_slowly() -> Search:
        await asyncio.Event().wait()
        raise AssertionError

    search = PendingSearch(open_slowly)
    asking = asyncio.create_task(search.find("words", 1))
    await asyncio.sleep(0)
    await search.close()

    for each in (asking, search.find("words", 1)):
        with pytest.raises(Problem) as caught:
            await each
        assert caught.value.code == "unavailable"


async def test_the_next_build_is_made_from_the_last(tmp_path: Path, prefix: Path) -> None:
    """New posts are found, removed ones are not, and only one file is kept, whatever was left."""
    publish(tmp_path, "build-0001", *SLUGS)
    async with serving(tmp_path, prefix) as builds:
        prefix.with_name(f"{prefix.name}-draft").write_text("of a process that was killed")
        publish(tmp_path, "build-0002", "linen", "ink", "paper", "glue", "board")
        await builds.refresh()

        assert await found(builds) == ["linen", "ink", "paper", "glue", "board"]
        assert await found(builds, "thread") == []
        (file,) = kept(prefix)
        assert file.name.startswith("edge.db-search-build-0002-")


async def test_a_replaced_index_is_closed(tmp_path: Path, prefix: Path) -> None:
    """Nothing holds its file, which is deleted, so that its room on the disk is free."""
    publish(tmp_path, "build-0001", *SLUGS)
    async with serving(tmp_path, prefix) as builds:
        for number in range(2, 5):
            publish(tmp_path, f"build-000{number}", *SLUGS[:number])
            await builds.refresh()
        await builds.refresh()
        (file,) = kept(prefix)
        assert held_open(prefix) == {file.name}
    assert held_open(prefix) == set()


def test_leftovers_are_removed_when_the_index_file_exists(tmp_path: Path, prefix: Path) -> None:
    """Another process has made the file meanwhile."""
    publish(tmp_path, "build-0001", *SLUGS)
    files, index = IndexFiles(prefix), tmp_path / "current" / "posts.json"
    files.make(index)
    made = kept(prefix)
    prefix.with_name(f"{prefix.name}-draft").write_text("of a process that was killed")

    files.make(index)

    assert kept(prefix) == made


def truncate(file: Path) -> None:
    """Cut the last byte off."""
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    """Change one bit in the middle."""
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)


def empty(file: Path) -> None:
    """Leave nothing but the name."""
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip, empty])
async def test_a_damaged_file_is_made_again(
    tmp_path: Path, prefix: Path, damage: Callable[[Path], None]
) -> None:
    """It is neither served nor copied."""
    publish(tmp_path, "build-0001", *SLUGS)
    async with serving(tmp_path, prefix):
        pass
    (file,) = kept(prefix)
    damage(file)
    async with serving(tmp_path, prefix) as builds:
        assert (await found(builds), builds.error) == ([*SLUGS], "")
    damage(*kept(prefix))
    publish(tmp_path, "build-0002", "ink", "paper")
    async with serving(tmp_path, prefix) as builds:
        assert (await found(builds), builds.error) == (["ink", "paper"], "")


async def test_a_file_under_the_name_of_another_is_made_again(tmp_path: Path, prefix: Path) -> None:
    """Be it of another build, or of one with the same id and other posts."""
    publish(tmp_path, "build-0001", "ink", "paper")
    async with serving(tmp_path, prefix):
        pass
    (first,) = kept(prefix)
    raw = first.read_bytes()
    publish(tmp_path, "build-0002", "ink", "glue")
    async with serving(tmp_path, prefix):
        pass
    (second,) = kept(prefix)
    second.write_bytes(raw)
    async with serving(tmp_path, prefix) as builds:
        assert await found(builds) == ["ink", "glue"]

    publish(tmp_path / "other", "build-0002", "ink", "thread")
    async with serving(tmp_path / "other", prefix) as builds:
        assert await found(builds) == ["ink", "thread"]
        assert len(kept(prefix)) == 1


async def test_a_file_of_other_code_is_made_again(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version may make other words of the same text."""
    publish(tmp_path, "build-0001", *SLUGS)
    with monkeypatch.context() as patch:
        patch.setattr(search_index_files, "PACKAGE", tmp_path / "current")
        search_index_files.IndexFiles(prefix).make(tmp_path / "current" / "posts.json")
    (file,) = kept(prefix)
    async with serving(tmp_path, prefix) as builds:
        assert await found(builds) == [*SLUGS]
    assert kept(prefix) != [file]


async def test_edges_share_a_file(tmp_path: Path, prefix: Path) -> None:
    """Several at once make it once."""
    publish(tmp_path, "build-0001", *SLUGS)

    async def serve() -> list[str]:
        async with serving(tmp_path, prefix) as builds:
            return await found(builds)

    assert await asyncio.gather(*(serve() for _ in range(4))) == [[*SLUGS]] * 4
    assert len(kept(prefix)) == 1


async def test_a_process_that_fails_is_made_up_for(
    tmp_path: Path, prefix: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a place for the file, the index is made in a thread, and the log has the reason."""
    publish(tmp_path, "build-0001", *SLUGS)
    prefix.with_name(f"{prefix.name}-draft").mkdir()
    with caplog.at_level(logging.WARNING):
        async with serving(tmp_path, prefix) as builds:
            assert (await found(builds), builds.error) == ([*SLUGS], "")
    (message,) = caplog.messages
    assert message.startswith("no search index is kept: status 1, IsADirectoryError")


def test_a_file_that_cannot_be_completed_is_removed(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: the file of the build before stays."""
    publish(tmp_path, "build-0001", *SLUGS)
    files = IndexFiles(prefix)
    files.make(tmp_path / "current" / "posts.json")
    before = kept(prefix)

    def fail(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(search_index_files, "update_index", fail)
    with pytest.raises(OSError, match="No space left"):
        files.update("build-0002", [], lambda _wanted: iter(()))
    assert kept(prefix) == before


async def test_the_process_ends_with_the_edge(tmp_path: Path, prefix: Path) -> None:
    """One that is at work is ended; so is one whose edge was killed."""
    publish(tmp_path, "build-0001", *SLUGS)
    turn = os.open(prefix.parent, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)  # so that it waits
    builds = BuildManager(tmp_path, SITE_URL, SearchOpener(prefix, 1))
    await builds.refresh()
    await until(lambda: bool(makers()))
    (maker,) = makers()
    await builds.close()
    await until(lambda: not maker.is_running() or maker.status() == psutil.STATUS_ZOMBIE)

    command = (sys.executable, "-m", search_index_files.__name__, "posts.json", str(prefix))
    orphan = await asyncio.create_subprocess_exec(*command, stdin=PIPE)
    await orphan.communicate(b"")
    assert orphan.returncode == 1
    os.close(turn)


def makers() -> list[psutil.Process]:
    """Return the processes of this one that make an index."""
    children = psutil.Process().children()
    return [each for each in children if search_index_files.__name__ in each.cmdline()]


async def test_a_small_journal_keeps_none(tmp_path: Path, prefix: Path) -> None:
    """Its index is made sooner than a process starts."""
    publish(tmp_path, "build-0001", *SLUGS)
    async with serving(tmp_path, prefix, MIN_POSTS_FOR_INDEX_FILE) as builds:
        assert await found(builds) == [*SLUGS]
    assert kept(prefix) == []


def test_where_files_are_kept() -> None:
    """Beside a store in a file, otherwise beside the builds."""
    beside = read_settings({"DATABASE_URL": "sqlite:///var/edge.db"}, None)
    shared = {"DATABASE_URL": "postgresql://host/name", "SECRET_KEY": "k" * 40}

    assert search_prefix(beside) == Path("var/edge.db-search")
    assert search_prefix(read_settings(shared, None)) == Path("build/.search")
