"""Savings of a build: rows of ledgers, work in other processes, no garbage collector."""

import gc
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from site_build.build.manifest import (
    EMPTY,
    MANIFEST_FILE,
    Entry,
    Line,
    Manifest,
    OutputStamp,
    parse_rows,
    read_manifest,
    read_rows,
    write_manifest,
)
from site_build.errors import BuildError
from site_build.parallel import in_background
from site_build.pelican_plugin.plugin import quiet_pelican
from tests.patience import patience
from tests.site_build.workbench import ROOT


class ContentlessError(Exception):
    """An error that stops a build."""


ENTRY = Entry('a, [b"].html', "key", "digest", (3, 2, 0), (5, 7, 0), "x\ny", "", retained=True)
LINE = Line("a", "key", "digest", 0, 9)


def test_a_ledger_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """As a whole, or its rows alone, whatever is in the names of files."""
    ledger = Manifest({ENTRY.path: ENTRY}, {LINE.slug: LINE}, OutputStamp("", 1, 2))
    write_manifest(tmp_path, ledger)

    (read,) = read_manifest(tmp_path).entries.values()
    assert read == ENTRY._replace(sizes=list(ENTRY.sizes), mtimes=list(ENTRY.mtimes))
    assert read_manifest(tmp_path).lines == ledger.lines
    assert parse_rows(read_rows(tmp_path)) == {ENTRY.path: read}


def test_a_ledger_without_entries_has_no_rows(tmp_path: Path) -> None:
    """And is read like any other."""
    write_manifest(tmp_path, Manifest({}, {LINE.slug: LINE}, OutputStamp("", 1, 2)))

    assert read_rows(tmp_path) == frozenset()
    assert read_manifest(tmp_path).lines == {LINE.slug: LINE}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole.replace(b"[3,2,0]", b"[3,3,0]"),
        lambda whole: whole.replace(b'["a","key"', b'["b","key"'),
        lambda whole: whole.replace(b'["a","key"', b"\0\0\0\0\0\0\0\0\0\0"),
        lambda whole: whole.replace(b'["",1,2]', b'["",1,3]'),
    ],
)
def test_of_a_damaged_ledger_no_row_is_believed(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    """A spare that it speaks of is made anew."""
    write_manifest(
        tmp_path, Manifest({ENTRY.path: ENTRY}, {LINE.slug: LINE}, OutputStamp("", 1, 2))
    )
    file = tmp_path / MANIFEST_FILE
    whole = file.read_bytes()
    file.write_bytes(spoil(whole))
    assert file.read_bytes() != whole

    assert (read_rows(tmp_path), read_manifest(tmp_path)) == (frozenset(), EMPTY)
    file.unlink()
    assert (read_rows(tmp_path), read_manifest(tmp_path)) == (frozenset(), EMPTY)


def test_a_manifest_of_another_version_is_not_read(tmp_path: Path) -> None:
    """Its rows may mean something else."""
    write_manifest(tmp_path, Manifest({ENTRY.path: ENTRY}, {}, OutputStamp("", 1, 2)))
    with closing(sqlite3.connect(tmp_path / MANIFEST_FILE)) as opened, opened:
        opened.execute("UPDATE head SET format = 9")

    assert (read_rows(tmp_path), read_manifest(tmp_path)) == (frozenset(), EMPTY)


def test_a_manifest_is_written_from_the_one_before(tmp_path: Path) -> None:
    """Changed rows are written, removed ones are deleted, and the one before stays as it was."""
    folders = [tmp_path / name for name in ("first", "second", "third")]
    other = ENTRY._replace(path="b.html")
    kept, changed = ENTRY._replace(path="c.html"), ENTRY._replace(path="b.html", digest="new")
    first = Manifest({each.path: each for each in (ENTRY, other, kept)}, {}, OutputStamp("", 1, 2))
    second = Manifest({each.path: each for each in (changed, kept)}, {}, OutputStamp("", 3, 4))
    for folder in folders:
        folder.mkdir()
    write_manifest(folders[0], first)
    rows = read_rows(folders[0])

    write_manifest(folders[1], second, first, folders[0])
    write_manifest(folders[2], second)

    assert read_rows(folders[1]) == read_rows(folders[2])
    assert read_manifest(folders[1]) == read_manifest(folders[2])
    assert (len(rows), read_rows(folders[0])) == (3, rows)


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_goes_on_beside(jobs: int) -> None:
    """In a process of its own where more than one may be at work; its fault is raised here."""
    with in_background(os.getpid, jobs) as wait:
        assert (wait() == os.getpid()) == (jobs == 1)
    assert multiprocessing.active_children() == []

    def fail() -> Any:
        raise BuildError("no")

    with pytest.raises(BuildError, match="no"), in_background(fail, jobs) as wait:
        wait()


def test_the_body_goes_on_while_the_work_is_done(tmp_path: Path) -> None:
    """The work waits here for what only the body gives."""

    def look() -> bool:
        for _ in range(1000):
            if (tmp_path / "given").exists():
                return True
            time.sleep(0.01)
        return False

    with in_background(look, 2) as wait:
        (tmp_path / "given").touch()
        assert wait()


def test_work_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    """Every end of the body ends the process, too, without waiting until it is done."""

    def work() -> None:
        time.sleep(5)
        (tmp_path / "done").touch()

    with pytest.raises(ContentlessError), in_background(work, 2):
        raise ContentlessError
    assert multiprocessing.active_children() == []
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("instant", ["before", "after_in_parent"])
def test_a_signal_while_a_process_is_started_is_answered(instant: str) -> None:
    """Python loses what a handler raises in a hook of fork; a publisher that lost it went on."""
    script = f"""
import os, signal
from site_build.parallel import map_unordered

def hear(*_):
    raise SystemExit(7)

signal.signal(signal.SIGTERM, hear)
os.register_at_fork({instant}=lambda: signal.raise_signal(signal.SIGTERM))
list(map_unordered(str, range(99), 2))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience(),
    )

    assert (done.returncode, done.stderr) == (7, "")


def test_a_build_leaves_the_collector_as_it_was() -> None:
    """If it was switched off, it stays off."""
    for switch, is_on in ((gc.disable, False), (gc.enable, True)):
        switch()
        with quiet_pelican():
            assert not gc.isenabled()
        assert gc.isenabled() == is_on
