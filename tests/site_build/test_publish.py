"""Publishing: the served build follows the content and the clock."""

import fcntl
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edge_api.schema.heartbeat import Heartbeat
from edge_api.schema.index import BUILD_LOCK, HELD_FILE
from edge_api.schema.installed_code import InstalledCode
from site_build.content import library
from site_build.errors import BuildError, ContentError
from site_build.progress import Report
from site_build.releases import watcher
from site_build.releases.release import build
from site_build.releases.watcher import (
    HeartbeatThread,
    ReleaseEvent,
    Watcher,
    follow,
    watch_and_publish,
)
from tests.patience import patience
from tests.site_build.workbench import ROOT, SITE_URL, FleetingPath, Workbench, run, take
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

DAWN = datetime(2026, 5, 1, tzinfo=UTC)
DUE = datetime(2026, 6, 1, 12, tzinfo=UTC)
"""The instant at which the small journal's scheduled post appears."""
SECOND = timedelta(seconds=1)


class Watchman:
    """A publisher whose clock the test sets, and the events that it has sent."""

    def __init__(self, bench: Workbench, *, strict: bool = False) -> None:
        self.bench = bench
        self.news: list[ReleaseEvent] = []
        self.publisher = Watcher(bench.order(strict=strict), self.news.append)
        self._seen = self._look()

    def _look(self) -> set[tuple[str, int]]:
        """Return every file of the content with the instant of its last change."""
        files = self.bench.content.absolute().rglob("*")
        return {(str(path), path.lstat().st_ctime_ns) for path in files}

    def act(self, now: datetime, times: int = 3) -> list[str]:
        """Let the publisher look at the clock a few times; return what it tells of."""
        before = len(self.news)
        for _ in range(times):
            self.publisher.act(now)
        return [each.kind for each in self.news[before:]]

    def settle(self, now: datetime) -> list[str]:
        """Act, and once more when it is quiet enough for a build ahead."""
        return self.act(now) + self.act(now + 60 * SECOND)

    def edit(self) -> None:
        """Report what has changed in the content, as the watch does."""
        seen, self._seen = self._seen, self._look()
        self.publisher.note_changes(path for path, _ in seen ^ self._seen)

    @property
    def served(self) -> Path:
        """The build that is served."""
        return (self.bench.output / "current").resolve()

    def shows(self, slug: str) -> bool:
        """Return whether a post is public."""
        return (self.served / "site" / "journal" / slug / "index.html").is_file()


@pytest.fixture
def watchman(bench: Workbench) -> Watchman:
    """Return a publisher of the small journal."""
    return Watchman(bench)


def test_the_next_build_is_made_ahead(watchman: Watchman) -> None:
    """The scheduled post's build is ready long before, and nothing of it is served."""
    assert watchman.settle(DAWN) == ["served", "prepared"]

    prepared = watchman.news[-1]
    assert prepared.report
    assert prepared.report.built_for == DUE
    assert (watchman.bench.output / "next").resolve().name == prepared.report.build_id
    assert not watchman.shows("veiled-later")


def test_the_build_is_swapped_in_at_its_instant(watchman: Watchman) -> None:
    """A moment before nothing happens; at the instant the prepared build is served as it is."""
    watchman.settle(DAWN)
    ahead = (watchman.bench.output / "next").resolve()
    made = take(ahead)

    assert watchman.act(DUE - timedelta(microseconds=1)) == []
    assert watchman.act(DUE) == ["served"]
    assert watchman.served == ahead
    assert take(watchman.served) == made
    assert watchman.shows("veiled-later")
    assert not (watchman.bench.output / "next").is_symlink()


@pytest.mark.size("ci")
def test_each_scheduled_post_has_its_build(watchman: Watchman) -> None:
    """After one instant the next one is prepared for."""
    watchman.bench.post("even-later", "2026-07-01")
    watchman.settle(DAWN)

    assert watchman.settle(DUE) == ["served", "prepared"]
    assert not watchman.shows("even-later")
    assert watchman.act(datetime(2026, 7, 1, tzinfo=UTC)) == ["served"]
    assert watchman.shows("even-later")


@pytest.mark.size("ci")
def test_instants_that_were_slept_through_are_caught_up(watchman: Watchman) -> None:
    """After several instants have passed, all their posts are served."""
    watchman.bench.post("even-later", "2026-07-01")
    watchman.settle(DAWN)

    watchman.act(datetime(2026, 8, 1, tzinfo=UTC))

    assert watchman.shows("veiled-later")
    assert watchman.shows("even-later")


def test_a_change_is_built_and_prepared_for(watchman: Watchman) -> None:
    """An edit shows in what is served and in what is served next."""
    watchman.settle(DAWN)
    watchman.bench.post("fresh")
    watchman.edit()

    assert watchman.settle(DAWN) == ["served", "prepared"]
    assert watchman.shows("fresh")
    watchman.act(DUE)
    assert watchman.shows("fresh")


def test_no_change_waits_for_a_build_ahead(watchman: Watchman) -> None:
    """It is made after five seconds without a build, in the folder of one before."""
    output = watchman.bench.output
    watchman.settle(DAWN)
    withdrawn = (output / "next").resolve()
    for second in (0, 4, 8):
        watchman.bench.post(f"fresh-{second}")
        watchman.edit()
        assert watchman.act(DAWN + second * SECOND) == ["served"]
        assert not (output / "next").is_symlink()
        assert not withdrawn.exists()
        spares = {each.stat().st_ino for each in output.glob(".spare*")}
        assert len(spares) == 2

    assert watchman.act(DAWN + 12 * SECOND) == []
    assert watchman.act(DAWN + 60 * SECOND) == ["prepared"]
    assert not (output / ".spare-ahead").exists()
    assert {(output / each).stat().st_ino for each in (".spare", "next")} == spares
    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("veiled-later")
    assert watchman.shows("fresh-8")


def test_the_last_minute_before_an_instant_makes_its_build_at_once(watchman: Watchman) -> None:
    """Also after a change; and if the clock is set back."""
    assert watchman.act(DUE - 61 * SECOND) == ["served"]
    assert watchman.act(DUE - 60 * SECOND) == ["prepared"]
    watchman.edit()
    assert watchman.act(DUE - 30 * SECOND) == ["served", "prepared"]
    watchman.edit()
    assert watchman.act(DAWN) == ["served"]
    assert watchman.act(DAWN - SECOND) == ["prepared"]


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_withdrawn_build_is_deleted_if_none_follows(watchman: Watchman, *, by_hand: bool) -> None:
    """When nothing is scheduled any more, and by a build without a watcher."""
    watchman.settle(DAWN)
    watchman.bench.post("fresh")
    watchman.edit()
    watchman.act(DAWN)
    assert (watchman.bench.output / ".spare-ahead").is_dir()

    if by_hand:
        watchman.bench.build("2026-05-02T00:00:00Z")
    else:
        (watchman.bench.content / "posts" / "later.md").unlink()
        watchman.edit()
        assert watchman.settle(DAWN) == ["served"]
    assert not (watchman.bench.output / ".spare-ahead").exists()


def test_a_second_spare_ends_with_the_last_instant(watchman: Watchman) -> None:
    """When the last scheduled post appears, nothing of removed texts is kept for a build ahead."""
    watchman.bench.post("removed", text="Words that are taken back.")
    watchman.edit()
    watchman.settle(DAWN)
    (watchman.bench.content / "posts" / "removed.md").unlink()
    watchman.edit()
    watchman.settle(DAWN + 120 * SECOND)

    assert watchman.act(DUE) == ["served"]
    assert not (watchman.bench.output / ".spare-ahead").exists()


def test_a_prepared_build_is_withdrawn_when_another_build_has_ended(
    watchman: Watchman, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that takes the lock in between only delays it."""
    watchman.settle(DAWN)
    (watchman.bench.content / "posts" / "later.md").unlink()
    watchman.edit()

    with ExitStack() as others, monkeypatch.context() as patched:

        def build_and_lock(*args: Any, **options: Any) -> Report:
            report = build(*args, **options)
            lock = others.enter_context((watchman.bench.output / BUILD_LOCK).open("ab"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            return report

        patched.setattr(watcher, "build", build_and_lock)
        assert watchman.act(DAWN, times=1) == []
        assert (watchman.bench.output / "next").is_symlink()

    assert watchman.act(DAWN) == ["served"]
    assert not (watchman.bench.output / "next").is_symlink()


def test_a_long_build_counts_from_its_end(
    watchman: Watchman, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build ahead waits for five seconds of quiet after it."""
    watchman.settle(DAWN)
    watchman.edit()
    clock = count(0, 6)
    with monkeypatch.context() as patched:
        patched.setattr(watcher, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        assert watchman.act(DAWN) == ["served"]

    assert watchman.act(DAWN + 10 * SECOND) == []
    assert watchman.act(DAWN + 11 * SECOND) == ["prepared"]


def test_nothing_is_built_without_a_change(watchman: Watchman) -> None:
    """Between changes and instants no build is made."""
    watchman.settle(DAWN)

    assert watchman.act(DAWN + timedelta(days=1), times=9) == []


def test_bad_content_leaves_what_a_strict_watcher_serves(bench: Workbench) -> None:
    """The findings are reported once, the old build stays, and the fixed content is built."""
    watchman = Watchman(bench, strict=True)
    watchman.settle(DAWN)
    served = watchman.served
    bad = watchman.bench.write("posts/bad.md", "no front matter")
    watchman.edit()

    assert watchman.act(DAWN) == ["refused"]
    refused = watchman.news[-1]
    assert refused.error
    assert isinstance(refused.error, ContentError)
    assert watchman.served == served
    bad.unlink()
    watchman.edit()
    assert watchman.settle(DAWN) == ["served", "prepared"]


def test_an_error_nobody_foresaw_leaves_the_watcher_running(
    watchman: Watchman, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The build stays, the error is reported with its trace, and a change is built again."""
    watchman.settle(DAWN)
    served = watchman.served
    watchman.bench.post("fresh")
    watchman.edit()

    def fail(*_args: object, **_options: object) -> None:
        raise KeyError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(watcher, "build", fail)
        assert watchman.act(DAWN) == ["refused"]
    assert watchman.served == served
    assert "KeyError('a fault of ours')" in watchman.publisher.failure
    assert "Traceback" in capfd.readouterr().err
    assert watchman.settle(DAWN + 31 * SECOND) == ["served", "prepared"]
    assert watchman.shows("fresh")


@pytest.mark.parametrize("strict", [False, True])
def test_a_prepared_build_is_withdrawn_when_content_is_bad(
    bench: Workbench, *, strict: bool
) -> None:
    """An author who reschedules a post amid other faults does not see it published."""
    watchman = Watchman(bench, strict=strict)
    watchman.settle(DAWN)
    watchman.bench.write("posts/bad.md", "no front matter")
    (watchman.bench.content / "posts" / "later.md").unlink()
    watchman.edit()
    watchman.settle(DAWN)

    assert watchman.act(DUE) == []
    assert not watchman.shows("veiled-later")
    assert not (watchman.bench.output / "next").is_symlink()


def test_a_prepared_build_that_is_gone_is_made_again(watchman: Watchman) -> None:
    """After it was removed, the post still appears at its instant."""
    watchman.settle(DAWN)
    (watchman.bench.output / "next").unlink()

    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("veiled-later")


def test_a_build_that_another_publisher_prepared_is_not_served(watchman: Watchman) -> None:
    """Not even for the moment until this one has built its own."""
    watchman.settle(DAWN)
    served = watchman.served
    order = replace(watchman.bench.order(), now=DUE, site_url="https://other.test")
    other = build(order, is_ahead=True)

    assert watchman.act(DUE) == ["served"]
    assert watchman.served.name != other.build_id
    assert (watchman.bench.output / "previous").resolve() == served


def test_a_build_by_hand_only_delays(watchman: Watchman) -> None:
    """While another build holds the folder nothing is lost, neither a change nor an instant."""
    watchman.settle(DAWN)
    watchman.bench.post("fresh")
    watchman.edit()
    with (watchman.bench.output / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert watchman.act(DUE) == []

    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("fresh")
    assert watchman.shows("veiled-later")


@pytest.mark.size("ci")
def test_a_build_by_hand_keeps_what_is_prepared(watchman: Watchman) -> None:
    """Clearing up after a build does not take the build that waits."""
    watchman.settle(DAWN)
    for day in (2, 3, 4):
        watchman.bench.build(f"2026-05-0{day}T00:00:00Z")

    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("veiled-later")


@pytest.mark.size("ci")
def test_bad_content_is_tried_again_at_the_known_instant(bench: Workbench) -> None:
    """At that instant broken content is refused again, which is not reported a second time."""
    watchman = Watchman(bench, strict=True)
    watchman.settle(DAWN)
    bad = watchman.bench.write("posts/bad.md", "no front matter")
    watchman.edit()
    assert watchman.act(DAWN) == ["refused"]
    assert watchman.act(DUE) == []

    watchman.edit()
    assert watchman.act(DUE) == []
    bad.unlink()
    watchman.edit()
    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("veiled-later")


def test_a_refusal_that_time_cures_is_tried_again_at_that_instant(empty_bench: Workbench) -> None:
    """A first build too, of a post that links to one which is to appear after it."""
    empty_bench.post("first", "2026-06-01", "See [the second](second.md).")
    empty_bench.post("second", "2026-07-01")
    watchman = Watchman(empty_bench, strict=True)

    assert watchman.act(DAWN) == ["refused"]
    assert watchman.act(DUE) == []
    assert watchman.act(datetime(2026, 7, 1, tzinfo=UTC)) == ["served"]
    assert watchman.shows("first")


@pytest.mark.size("ci")
def test_a_change_that_no_watch_has_seen_is_found_by_a_look(watchman: Watchman) -> None:
    """Every ten minutes; what is scheduled is prepared for then, and appears at its instant."""
    watchman.settle(DAWN)
    bad = watchman.bench.write("posts/bad.md", "no front matter")
    watchman.edit()
    watchman.settle(DAWN)
    bad.unlink()

    assert watchman.act(DAWN + 599 * SECOND) == []
    assert watchman.settle(DAWN + 600 * SECOND) == ["served", "prepared"]
    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("veiled-later")


@pytest.mark.parametrize("part", ["current", "build", "site"])
def test_a_served_build_that_is_gone_is_made_again(watchman: Watchman, part: str) -> None:
    """At the next glance, beside bad content too."""
    watchman.settle(DAWN)
    if part == "current":
        (watchman.bench.output / "current").unlink()
    else:
        shutil.rmtree(watchman.served / ("site" if part == "site" else ""))

    assert watchman.act(DAWN + SECOND, times=1) == ["served"]
    assert (watchman.served / "site" / "index.html").is_file()
    assert watchman.shows("ink") or any(watchman.served.glob("site/journal/*/index.html"))

    watchman.bench.write("posts/bad.md", "no front matter")
    watchman.edit()
    assert watchman.settle(DAWN + SECOND) == ["served", "prepared"]
    shutil.rmtree(watchman.served)
    assert watchman.act(DAWN + 2 * SECOND)[0] == "served"


def test_a_link_that_leads_out_of_the_content_is_not_published(watchman: Watchman) -> None:
    """Readers keep the file that such a link replaces."""
    (secret := watchman.bench.output.with_name("secret.txt")).write_text("secret")
    notes = watchman.bench.write("images/notes.txt", "public")
    watchman.settle(DAWN)
    notes.unlink()
    notes.symlink_to(secret)
    watchman.publisher.note_changes([str(notes.absolute())])

    assert watchman.act(DAWN)[0] == "served"
    assert watchman.publisher.failure == ""
    report = watchman.news[-1].report
    assert report
    assert [(each.path, each.is_shown) for each in report.held] == [("images/notes.txt", True)]
    assert (watchman.served / "site" / "images" / "notes.txt").read_text() == "public"


def test_content_that_a_look_cannot_read_is_refused(
    watchman: Watchman, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build after the look meets the same error, and is tried again."""

    def fail(*_: object) -> None:
        raise BuildError("Input/output error")

    watchman.settle(DAWN)
    with monkeypatch.context() as patch:
        patch.setattr(library, "list_folder", fail)
        assert watchman.act(DAWN + 600 * SECOND) == ["refused"]
        assert "Input/output error" in watchman.publisher.failure

    assert watchman.settle(DAWN + 630 * SECOND) == ["served", "prepared"]


def block(watchman: Watchman, link: str) -> Path:
    """Put a folder where a build makes its link, which stops it as a full disk does."""
    place = watchman.bench.output / link
    place.unlink(missing_ok=True)
    place.mkdir(parents=True)
    return place


@pytest.mark.size("ci")
def test_failures_not_caused_by_content_are_tried_again(watchman: Watchman) -> None:
    """A build that fails is reported once and tried again without any change."""
    place = block(watchman, "current")

    assert watchman.act(DAWN) == ["refused"]
    refused = watchman.news[-1]
    assert refused.error
    assert type(refused.error) is BuildError
    assert watchman.act(DAWN + 30 * SECOND) == []
    place.rmdir()
    assert watchman.act(DAWN + 59 * SECOND) == []
    assert watchman.settle(DAWN + 60 * SECOND) == ["served", "prepared"]


def test_a_full_disk_at_the_manifest_is_reported_and_tried_again(watchman: Watchman) -> None:
    """A limit of the process lets every file be written but that one, which grows by each page."""
    watchman.settle(DAWN)
    size = (watchman.served / "manifest.sqlite").stat().st_size
    for number in range(60):
        watchman.bench.post(f"p-{number}", tags="[many]")
    watchman.edit()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        assert watchman.act(DAWN) == ["refused"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert f"{watchman.bench.output}; free some space" in watchman.publisher.failure
    refused = watchman.news[-1]
    assert refused.error
    assert isinstance(refused.error.__cause__, sqlite3.Error)
    assert watchman.settle(DAWN + 30 * SECOND) == ["served", "prepared"]
    assert watchman.shows("p-59")


def test_a_scheduled_post_outlives_a_build_that_was_stopped(watchman: Watchman) -> None:
    """A build that cannot be made ahead is made at its instant, in the midst of a pause."""
    place = block(watchman, "next")

    assert watchman.act(DUE - SECOND) == ["served", "refused"]
    place.rmdir()
    assert watchman.act(DUE - SECOND / 2) == []
    assert watchman.act(DUE) == ["served"]
    assert watchman.shows("veiled-later")


@pytest.mark.size("ci")
def test_a_change_ends_the_pause(watchman: Watchman) -> None:
    """After a change the build is tried at once."""
    place = block(watchman, "current")
    watchman.settle(DAWN)
    place.rmdir()
    watchman.edit()
    assert watchman.settle(DAWN) == ["served", "prepared"]


@pytest.mark.size("ci")
def test_each_error_is_reported_once_until_a_build_succeeds(bench: Workbench) -> None:
    """A change that leaves an error as it was adds nothing to the log; another error does.

    So does one that brings back the error of before.
    """
    watchman = Watchman(bench, strict=True)
    place = block(watchman, "current")
    assert watchman.act(DAWN) == ["refused"]
    for _ in range(3):
        watchman.edit()
        assert watchman.act(DAWN) == []

    bad = watchman.bench.write("posts/bad.md", "no front matter")
    watchman.edit()
    assert watchman.act(DAWN) == ["refused"]
    watchman.edit()
    assert watchman.act(DAWN) == []
    bad.write_text("---\ntitle: Bad\n---\n", "utf-8")
    watchman.edit()
    assert watchman.act(DAWN) == ["refused"]
    assert watchman.publisher.failure.startswith("nothing was built: ")

    bad.unlink()
    watchman.edit()
    assert watchman.act(DAWN) == ["refused"]
    assert "current is a folder" in watchman.publisher.failure
    place.rmdir()
    watchman.edit()
    assert watchman.settle(DAWN) == ["served", "prepared"]
    assert watchman.publisher.failure == ""
    block(watchman, "current")
    watchman.edit()
    assert watchman.act(DAWN) == ["refused"]


def test_nothing_taken_back_appears_while_builds_are_stopped(watchman: Watchman) -> None:
    """A build prepared before a change is not served while the change cannot be built."""
    watchman.settle(DAWN)
    block(watchman, "current")
    (watchman.bench.content / "posts" / "later.md").unlink()
    watchman.edit()

    assert watchman.act(DAWN) == ["refused"]
    assert not (watchman.bench.output / "next").is_symlink()
    (watchman.bench.output / "current").rmdir()
    assert watchman.act(DUE) == ["served"]
    assert not watchman.shows("veiled-later")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, and fail when it does not come."""
    deadline = time.monotonic() + patience()
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_command_follows_files_and_clock_and_ends_at_sigterm(bench: Workbench) -> None:
    """An edit is served, a scheduled post appears by itself, and SIGTERM ends it with 0."""
    words = [
        "publish",
        "--content",
        bench.content,
        "--output",
        bench.output,
        "--site-url",
        SITE_URL,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "site_build", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    journal = bench.output / "current" / "site" / "journal"
    try:
        wait_until((journal / "first-light" / "index.html").is_file)
        bench.post("edited")
        wait_until((journal / "edited" / "index.html").is_file)
        due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=5)
        bench.post("soon", due.isoformat().replace("+00:00", "Z"))
        wait_until((journal / "soon" / "index.html").is_file)
        assert datetime.now(UTC) >= due
        beat = Heartbeat.read(bench.output)
        assert beat is not None
        assert (beat.pid, beat.failure, beat.code_changed) == (process.pid, "", False)
        bench.write("posts/bad.md", "no front matter")
        held = bench.output / "current" / HELD_FILE
        wait_until(lambda: "posts/bad.md:1: " in held.read_text("utf-8"))
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=patience())
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 0
    assert Heartbeat.read(bench.output) is None
    assert "Traceback" not in said
    assert f"is ready for {due:%Y-%m-%dT%H:%M:%SZ}" in said


class Deadline(HeartbeatThread):
    """A heartbeat that ends a publisher after so many glances at the clock."""

    glances = 300

    @property
    def is_outdated(self) -> bool:
        """Count the glances."""
        self.glances -= 1
        return self.glances < 0


def test_settings_are_followed_through_saves_that_replace_the_file(bench: Workbench) -> None:
    """Editors write a new file and rename it over the old one, again and again."""
    settings, draft = (bench.output.with_name(name) for name in ("settings.py", "draft.py"))
    settings.touch()
    saves = iter("abc")

    def save(news: ReleaseEvent) -> None:
        if news.kind == "served":
            draft.write_text(next(saves))
            draft.replace(settings)

    heart = Deadline(bench.output, InstalledCode(bench.content))
    with pytest.raises(StopIteration):  # which the fourth release raises
        watch_and_publish(
            bench.order(), [bench.content, settings], save, heart, keeps_running=False
        )


def move_new_content_in(content: Path) -> None:
    """Rename a new folder to the place of the old one."""
    shutil.copytree(content, new := content.with_name("new"))
    content.rename(content.with_name("old"))
    new.rename(content)


def lead_the_link_elsewhere(content: Path) -> None:
    """Have the symbolic link that is the content folder name another folder."""
    shutil.copytree(content, new := content.with_name("new"))
    (link := content.with_name("link")).symlink_to(new)
    link.replace(content)


def delete_and_make_anew(content: Path) -> None:
    """Delete the folder and copy it back, which some file systems do under the same number."""
    shutil.copytree(content, new := content.with_name("new"))
    shutil.rmtree(content)
    time.sleep(0.3)
    shutil.copytree(new, content)


@pytest.mark.parametrize(
    "change", [move_new_content_in, lead_the_link_elsewhere, *in_ci(delete_and_make_anew)]
)
def test_a_content_folder_that_is_replaced_is_followed(
    bench: Workbench, change: Callable[[Path], None]
) -> None:
    """Content of the new folder is served within seconds, and later edits in it are, too."""
    if change is lead_the_link_elsewhere:
        bench.content.rename(real := bench.content.with_name("real"))
        bench.content.symlink_to(real)
    slugs = iter(("fresh", "edited"))
    served = bench.output / "current" / "site" / "journal"

    def edit(news: ReleaseEvent) -> None:
        if news.kind != "served":
            return
        if not (bench.content / "posts" / "fresh.md").exists():
            change(bench.content)
            bench.post(next(slugs))
        elif (served / "fresh").exists():
            bench.post(next(slugs))

    heart = Deadline(bench.output, InstalledCode(bench.content))
    with pytest.raises(StopIteration):  # once both are served
        watch_and_publish(bench.order(), [bench.content], edit, heart, keeps_running=False)
    assert (served / "edited").exists()


def test_a_folder_that_goes_as_the_watch_begins_is_watched_when_it_is_back(tmp_path: Path) -> None:
    """Until then the clock goes on."""
    folder = FleetingPath(tmp_path / "content")
    with closing(follow([folder])) as glances:
        assert next(glances) == []
        folder.mkdir()
        while next(glances) is not None:
            continue
        (folder / "a.md").touch()
        while str(folder / "a.md") not in (next(glances) or ()):
            continue


@pytest.mark.parametrize("name", [b"posts/\xff.md", b".caf\xe9.md.swp"])
def test_a_name_that_is_not_utf8_ends_no_watch(bench: Workbench, name: bytes) -> None:
    """After it any file may have changed, and later changes are reported by their names."""
    with closing(follow([bench.content])) as glances:
        assert next(glances) is None
        (bench.content / os.fsdecode(name)).touch()
        while next(glances) is not None:
            continue
        (bench.content / "a.md").touch()
        while str(bench.content / "a.md") not in (next(glances) or ()):
            continue


FOLLOWER = """
import resource, sys
from pathlib import Path
from site_build.releases.watcher import follow
with open("/dev/null") as last:  # two more files may be open, and a watch needs three
    limits = last.fileno() + 2, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
folder = Path(sys.argv[1])
for changes in follow([folder]):
    if changes is None:
        (folder / "a.md").touch()
    if str(folder / "a.md") in (changes or ()):
        print("seen")
        break
"""


def test_a_limit_of_watches_ends_no_watch(tmp_path: Path) -> None:
    """One sentence names the limits, and every few seconds the files are looked at."""
    done = run(sys.executable, "-c", FOLLOWER, tmp_path)

    assert (done.returncode, done.stdout) == (0, "seen\n")
    assert done.stderr.startswith("warning: files are looked at every 3 s")
    assert "fs.inotify.max_user_watches" in done.stderr
    assert done.stderr.count("\n") == 1


class Beats:
    """A heartbeat thread that beats often, over a folder of code that the test changes."""

    def __init__(self, folder: Path) -> None:
        self.code = folder / "code"
        self.code.mkdir()
        self.output = folder / "build"
        self.heart = HeartbeatThread(self.output, InstalledCode(self.code), beat_seconds=0.05)

    def read(self) -> Heartbeat | None:
        """Return the heartbeat."""
        return Heartbeat.read(self.output)

    def shows(self, condition: Callable[[Heartbeat], bool]) -> None:
        """Wait until the heartbeat fulfils a condition."""

        def is_fulfilled() -> bool:
            beat = self.read()
            return beat is not None and condition(beat)

        wait_until(is_fulfilled)


@pytest.fixture
def beats(tmp_path: Path) -> Beats:
    """Return a heartbeat that has not begun."""
    return Beats(tmp_path)


def test_a_long_build_does_not_stop_the_heartbeat(beats: Beats) -> None:
    """It goes on while the watcher is at work, and says since when it is."""
    with beats.heart:
        beats.heart.note("")
        beats.shows(lambda beat: beat.pid == os.getpid())
        first = beats.read()
        assert first is not None
        beats.shows(lambda beat: beat.at > first.at and beat.active_at == first.active_at)
        beats.heart.note("")
        beats.shows(lambda beat: beat.active_at > first.active_at)


def test_a_failure_is_in_the_heartbeat_until_a_build_succeeds(beats: Beats) -> None:
    """It is written at once, not after the usual pause."""
    heart = HeartbeatThread(beats.output, InstalledCode(beats.code), beat_seconds=3600)
    with heart:
        heart.note("no room: \udcff.md")
        beats.shows(lambda beat: beat.failure == "no room: ?.md")
        heart.note("")
        beats.shows(lambda beat: beat.failure == "")


@pytest.mark.parametrize(
    ("error", "stays"), [(KeyboardInterrupt, False), (ValueError, True), (None, True)]
)
def test_a_watcher_ended_by_a_signal_removes_its_heartbeat(
    beats: Beats, error: type[BaseException] | None, *, stays: bool
) -> None:
    """One that fails, or ends for the sake of new code, leaves it to grow old."""
    with suppress(KeyboardInterrupt, ValueError), beats.heart:
        beats.shows(lambda _: True)
        if error:
            raise error

    assert (beats.read() is not None) is stays
    assert not beats.heart.is_alive()


def test_changed_code_is_noticed_once_it_is_complete(beats: Beats) -> None:
    """The watcher is outdated once two looks have found the same new files."""
    with beats.heart:
        beats.shows(lambda beat: not beat.code_changed)
        assert not beats.heart.is_outdated
        (beats.code / "module.py").touch()
        beats.shows(lambda beat: beat.code_changed)
        wait_until(lambda: beats.heart.is_outdated)


def test_a_disk_that_takes_nothing_does_not_end_the_heartbeat(beats: Beats) -> None:
    """It goes on as soon as there is room again."""
    beats.output.touch()
    with beats.heart:
        beats.heart.note("")
        beats.heart.join(0.2)
        beats.output.unlink()
        beats.shows(lambda _: True)
