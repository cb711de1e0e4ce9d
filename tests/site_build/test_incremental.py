"""What spares a build its work: digests by looks, rows of ledgers, work in other processes."""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from site_build.bridge.plugin import contained
from site_build.faults import BuildError
from site_build.incremental.cache import Cache
from site_build.incremental.ledger import (
    EMPTY,
    LEDGER_FILE,
    Entry,
    Ledger,
    Line,
    Stamp,
    read_ledger,
    read_looks,
    read_rows,
    write_ledger,
)
from site_build.incremental.spread import beside
from site_build.reading import digests
from site_build.reading.digests import digest_sources
from site_build.reading.folder import digest_file


class ContentlessError(Exception):
    """Stands for what stops a build."""


ENTRY = Entry('a, [b"].html', "key", "digest", (3, 2, 0), (5, 7, 0), "x\ny", "", carried=True)
LINE = Line("a", "key", "digest", 0, 9)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of the files that have been read, as they are."""
    paths: list[str] = []

    def spy(content: Path, path: str) -> str:
        paths.append(path)
        return digest_file(content, path)

    monkeypatch.setattr(digests, "digest_file", spy)
    return paths


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what lets the time pass in which a file may change unseen."""

    def pass_time() -> None:
        later = time.time_ns() + 3_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda: later)

    return pass_time


def test_a_file_that_looks_the_same_is_read_once(
    tmp_path: Path, read: list[str], settle: Callable[[], None]
) -> None:
    """Until it is changed, replaced or gone; also by a hand that keeps its time and size."""
    file = tmp_path / "a.md"
    file.write_text("one")
    settle()
    with Cache(tmp_path / "cache") as cache:

        def digest() -> str:
            return digest_sources(tmp_path, ["a.md"], cache)["a.md"]

        first = digest()
        assert (digest(), read) == (first, ["a.md"])

        before = file.stat()
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (digest() != first, len(read)) == (True, 2)

        other = tmp_path / "b.md"
        other.write_text("one")
        other.replace(file)
        assert (digest() == first, len(read)) == (True, 3)

        file.unlink()
        assert (digest(), len(read)) == ("", 4)


def test_a_file_that_was_changed_a_moment_ago_is_read_again(
    tmp_path: Path, read: list[str], settle: Callable[[], None]
) -> None:
    """It may be changed once more in the instant that its time shows."""
    (tmp_path / "a.md").write_text("one")
    with Cache(tmp_path / "cache") as cache:
        for _ in range(2):
            digest_sources(tmp_path, ["a.md"], cache)
        assert len(read) == 2
        settle()
        for _ in range(3):
            digest_sources(tmp_path, ["a.md"], cache)
    assert len(read) == 3


def test_a_ledger_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Whole, or the looks of a few of its rows, whatever stands in the names of files."""
    ledger = Ledger({ENTRY.path: ENTRY}, {LINE.slug: LINE}, Stamp("", 1, 2))
    write_ledger(tmp_path, ledger)

    (read,) = read_ledger(tmp_path).entries.values()
    assert read == ENTRY._replace(sizes=list(ENTRY.sizes), mtimes=list(ENTRY.mtimes))
    assert read_ledger(tmp_path).lines == ledger.lines
    assert read_looks(read_rows(tmp_path)) == {ENTRY.path: ([3, 2, 0], [5, 7, 0])}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole.replace(b"[3,2,0]", b"[3,3,0]"),
        lambda whole: whole.replace(b'{"format":3', b'{"format":9'),
    ],
)
def test_of_a_damaged_ledger_no_row_is_believed(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    """A spare that it speaks of is made anew."""
    write_ledger(tmp_path, Ledger({ENTRY.path: ENTRY}, {}, Stamp("", 1, 2)))
    file = tmp_path / LEDGER_FILE
    file.write_bytes(spoil(file.read_bytes()))

    assert read_rows(tmp_path) == frozenset()
    file.unlink()
    assert (read_rows(tmp_path), read_ledger(tmp_path)) == (frozenset(), EMPTY)


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_goes_on_beside(jobs: int) -> None:
    """In a process of its own where more than one may be at work; its fault is raised here."""
    with beside(os.getpid, jobs) as wait:
        assert (wait() == os.getpid()) == (jobs == 1)

    def fail() -> Any:
        raise BuildError("no")

    with pytest.raises(BuildError, match="no"), beside(fail, jobs) as wait:
        wait()


def test_work_that_nobody_waits_for_is_ended() -> None:
    """Whatever ends the body ends the process, too."""
    with pytest.raises(ContentlessError), beside(lambda: time.sleep(60), 2):
        raise ContentlessError
    assert multiprocessing.active_children() == []


def test_a_build_leaves_the_collector_as_it_was() -> None:
    """Whoever has switched it off finds it so."""
    for switch, is_on in ((gc.disable, False), (gc.enable, True)):
        switch()
        with contained():
            assert not gc.isenabled()
        assert gc.isenabled() == is_on
