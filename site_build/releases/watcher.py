"""Watches the content, builds and publishes every change, and writes a heartbeat.

The release of the next scheduled instant is prepared in advance and served at that instant. If a
build fails, as by an error with `--strict`, the served release stays, and the build is tried again.
"""

import os
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple, Self

from watchfiles import Change, watch

from edge_api.schema.heartbeat import BEAT_SECONDS, Heartbeat, remove_heartbeat
from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.installed_code import InstalledCode
from site_build.build.memory import BuildMemory
from site_build.content.sources import stamp
from site_build.errors import BuildError, BusyError, ContentError
from site_build.pelican_plugin.settings import warn
from site_build.progress import Report
from site_build.releases.release import BuildOptions, build, serve_prepared, withdraw


class HeartbeatThread(threading.Thread):
    """Writes the heartbeat every 20 seconds, and when builds start or stop failing.

    Use it as a context. A signal's KeyboardInterrupt removes the file; after another end it stays,
    and the edge reports that it is old. The first heartbeat is written after a build or 20 seconds,
    so that a watcher that dies at each start never seems alive.
    """

    def __init__(
        self, build_dir: Path, code: InstalledCode, beat_seconds: float = BEAT_SECONDS
    ) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._build_dir = build_dir
        self._code = code
        self._beat_seconds = beat_seconds
        self._active_at = datetime.now(UTC)
        self._failure: str | None = None
        self._wake = threading.Event()
        self._is_over = False

    @property
    def is_outdated(self) -> bool:
        """Whether the installed code is no longer that of this process, and completely written."""
        return self._code.has_changed and self._code.is_stable

    def note(self, failure: str) -> None:
        """Note that no build is under way, and why the last one failed ("" if it did not)."""
        self._active_at = datetime.now(UTC)
        if failure != self._failure:
            self._failure = failure
            self._wake.set()

    def run(self) -> None:
        """Write heartbeats until the context is left."""
        while not self._is_over:
            was_woken = self._wake.wait(self._beat_seconds)
            self._wake.clear()
            if not self._is_over:
                with suppress(OSError):  # on a full disk the heartbeat grows old
                    if not was_woken:
                        self._code.check()
                    Heartbeat(
                        at=datetime.now(UTC),
                        active_at=self._active_at,
                        pid=os.getpid(),
                        code_changed=self._code.has_changed,
                        # A failure may contain names of files, which may be invalid UTF-8.
                        failure=(self._failure or "").encode("utf-8", "replace").decode(),
                    ).write(self._build_dir)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        self._is_over = True
        self._wake.set()
        self.join()
        if kind is KeyboardInterrupt:
            remove_heartbeat(self._build_dir)


_STEP_MS = 200
"""The most milliseconds between two steps of the watcher."""

_CHECK_INTERVAL = timedelta(minutes=10)
"""The time between two checks of every file."""
_QUIET, _SOON = timedelta(seconds=5), timedelta(minutes=1)
"""The time from a build after a change to the build ahead, which the next change would wait for,
and the time before an instant in which its build is made at once."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class ReleaseEvent(NamedTuple):
    """An event: a release is served from now on or was prepared, or a build failed (`refused`).

    `outdated` has neither report nor error: the installed code is no longer that of this process.
    """

    kind: Literal["served", "prepared", "refused", "outdated"]
    report: Report | None = None
    error: BuildError | None = None


class Watcher:
    """Makes releases at changes and at scheduled instants.

    `notify` is called with each release, and once with each error. Each call of `act` does one step
    of the work.
    """

    def __init__(self, options: BuildOptions, notify: Callable[[ReleaseEvent], None]) -> None:
        self._options = options
        self._notify = notify
        self._memory = BuildMemory()
        self._check_at = _NEVER
        self._is_stale = True
        self._next_instant: datetime | None = None
        """The instant at which the next scheduled post or page appears."""
        self._built_at = datetime.min.replace(tzinfo=UTC)
        """The instant of the last build after a change."""
        self._prepared: Report | None = None
        """The release that was prepared for that instant."""
        self._resume_at: datetime | None = None
        """The end of the pause after a failed build; a change ends it at once."""
        self._last_refusal: object = None
        """The findings or the message of the last reported error, until a release is made."""
        self.failure = ""
        """The reason why the last build failed, in one line; empty if it did not."""

    def note_changes(self, paths: Iterable[str] | None) -> None:
        """Note that these absolute paths changed (None: any may have), and end a pause."""
        self._memory.note(paths)
        self._is_stale = True
        self._resume_at = None

    def act(self, now: datetime) -> None:
        """Do the next thing that is due at `now` (UTC), if any."""
        if not self._check_at - _CHECK_INTERVAL <= now < self._check_at:  # a clock may be set back
            # Check every file, since a file system may not report a change; that also ends a pause.
            self._check_at, self._resume_at = now + _CHECK_INTERVAL, None
            try:
                is_changed = self._memory.check_sources()
            except (BuildError, OSError):
                is_changed = True  # The build will report the reason.
            if is_changed:
                self.note_changes(())
        if self._resume_at and now < self._resume_at:
            return
        try:
            event = self._step(now)
        except BusyError:
            return  # Somebody else builds; that may be over at the next step.
        except Exception as failure:  # noqa: BLE001  a fault of ours must not end the watcher
            error = failure
            if not isinstance(error, BuildError):
                traceback.print_exception(failure)
                error = BuildError(f"an unexpected error, which is ours: {failure!r}")
                self._memory = BuildMemory()  # it may hold half of a build
            if self._is_stale:
                self._withdraw()
            # The pause ends at the next scheduled instant at the latest: then a build may succeed.
            due = self._next_instant if self._next_instant and self._next_instant > now else _NEVER
            self._resume_at = min(due, now + timedelta(seconds=30))
            self.failure = str(error).partition("\n")[0]
            subject = error.findings if isinstance(error, ContentError) else str(error)
            if subject != self._last_refusal:
                self._last_refusal = subject
                self._notify(ReleaseEvent("refused", error=error))
        else:
            if event:
                self._resume_at = None
                self._last_refusal = None
                self.failure = ""
                self._notify(event)

    def _step(self, now: datetime) -> ReleaseEvent | None:
        """Build, serve the prepared release, or prepare one; None: none of these is due."""
        if self._is_stale or not (self._options.output / CURRENT_LINK / SITE_FOLDER).is_dir():
            return self._build(now)  # The served build may have been deleted.
        if self._next_instant and self._next_instant <= now:
            if self._prepared and serve_prepared(self._options.output, self._prepared.build_id):
                report, self._prepared = self._prepared, None
                self._next_instant = report.next_instant
                return ReleaseEvent("served", report)
            return self._build(now)  # Somebody has removed the prepared release.
        if (
            self._next_instant
            and self._prepared is None
            # A clock may be set back to before `_built_at`.
            and not self._built_at <= now < min(self._built_at + _QUIET, self._next_instant - _SOON)
        ):
            self._prepared = build(
                replace(self._options, now=self._next_instant), self._memory, is_ahead=True
            )
            return ReleaseEvent("prepared", self._prepared)
        return None

    def _build(self, now: datetime) -> ReleaseEvent:
        report = build(replace(self._options, now=now), self._memory)
        self._is_stale = False
        self._built_at, self._next_instant = now, report.next_instant
        self._withdraw()
        return ReleaseEvent("served", report)

    def _withdraw(self) -> None:
        """Remove the prepared release: it may have texts that were removed since."""
        self._prepared = None
        with suppress(BuildError):
            withdraw(self._options.output, has_second_spare=bool(self._next_instant))


def watch_and_publish(
    options: BuildOptions,
    watched: Sequence[Path],
    notify: Callable[[ReleaseEvent], None],
    heartbeat: HeartbeatThread,
    *,
    keeps_running: bool,
) -> None:
    """Watch and publish until interrupted, or until other code is installed.

    With `keeps_running`, other code is only reported. The instant of `options` is ignored;
    `watched` are the files and folders that a release depends on. Raises KeyboardInterrupt when a
    signal ends it.
    """
    watcher = Watcher(options, notify)
    is_reported = False
    # Files are compared by their stamps, since a watch ends if an editor replaces the file.
    files = [path for path in watched if path.is_file()]
    stamps = [*map(stamp, files)]
    # The watch goes on while a build is made, so no change is missed.
    for changes in follow([path for path in watched if path not in files]):
        if changes != []:
            watcher.note_changes(changes)
        if stamps != (stamps := [*map(stamp, files)]):
            watcher.note_changes(map(str, files))
        watcher.act(datetime.now(UTC))
        heartbeat.note(watcher.failure)
        if heartbeat.is_outdated and not is_reported:
            is_reported = True
            notify(ReleaseEvent("outdated"))
            if not keeps_running:
                return


def follow(folders: Sequence[Path]) -> Generator[list[str] | None, None, None]:
    """Yield absolute paths that changed, at least every 200 ms; None: any may have.

    A watch is bound to one folder: if another folder replaces it, a new watch begins.
    """
    is_polling = False
    while True:
        known, is_new = [*map(_read_inode, folders)], True
        try:
            for changes in watch(
                *(each.absolute() for each in folders if each.exists()),
                # Changes are collected for 1000 ms at most, or until 50 ms pass without one.
                debounce=1000,
                step=50,
                rust_timeout=_STEP_MS,
                yield_on_timeout=True,
                force_polling=is_polling or None,
                poll_delay_ms=3000,
            ):
                yield None if is_new else [path for _, path in changes]
                is_new = False
                gone = {Path(path) for change, path in changes if change == Change.deleted}
                if gone & {*map(Path.absolute, folders)} or known != [*map(_read_inode, folders)]:
                    break
        except (OSError, RuntimeError) as error:  # a folder was moved; a name is not UTF-8
            limits = ("OS file watch limit reached", "(os error 24)")
            if is_polling := is_polling or any(each in str(error) for each in limits):
                warn(
                    "files are looked at every 3 s; raise fs.inotify.max_user_watches, "
                    "max_user_instances"
                )
        time.sleep(_STEP_MS / 1000)
        yield []


def _read_inode(folder: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = folder.stat()
        return found.st_dev, found.st_ino
    return None
