"""Watches the content, builds and publishes every change, and writes a heartbeat.

The release of the next scheduled instant is made ahead and served when its time has come. If a
build fails, as by an error with `--strict`, the served release stays, and the build is tried again.
"""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple, Self

from watchfiles import Change, watch

from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.installed_code import BEAT_SECONDS, Heartbeat, InstalledCode, remove_heartbeat
from site_build.build.memory import BuildMemory
from site_build.content.sources import stamp
from site_build.errors import BuildError, BusyError, ContentError
from site_build.pelican_plugin.settings import warn
from site_build.progress import Report
from site_build.releases.release import BuildOptions, build, serve_prepared, withdraw


class HeartbeatThread(threading.Thread):
    """Writes the heartbeat every 20 seconds, and when builds start or stop failing.

    Use it as a context. A signal's KeyboardInterrupt removes the file; any other end leaves it, and
    the edge reports that it is old. The first one is written after a build or 20 seconds, so that a
    watcher that dies at each start never seems alive.
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
        """Whether the installed code is another than this process runs, and completely written."""
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
                        # A failure may have names of files, which may be no valid text.
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


_GLANCE = 200
"""Milliseconds between two steps of the watcher."""

_LOOK_INTERVAL = timedelta(minutes=10)
_NEVER = datetime.max.replace(tzinfo=UTC)


class ReleaseEvent(NamedTuple):
    """A release is served from now on, waits for its instant, or was refused by an error.

    `outdated` has neither report nor error: the installed code is another than this process runs.
    """

    kind: Literal["served", "prepared", "refused", "outdated"]
    report: Report | None = None
    error: BuildError | None = None


class Watcher:
    """Makes releases at changes and at scheduled instants.

    `tell` is called with each release, and once with each error.
    """

    def __init__(self, order: BuildOptions, tell: Callable[[ReleaseEvent], None]) -> None:
        self._order = order
        self._tell = tell
        self._memory = BuildMemory()
        self._look_at = _NEVER
        self._stale = True
        self._due: datetime | None = None
        """The instant at which the next scheduled post or page appears."""
        self._ahead: Report | None = None
        """The release that was made for that instant."""
        self._resume_at: datetime | None = None
        """The end of the pause after a refused attempt; a change ends it at once."""
        self._told: object = None
        """The error that was reported last, if no release came after it."""
        self.failure = ""
        """The reason why the last build failed, in one line; empty if it did not."""

    def note_changes(self, paths: Iterable[str] | None) -> None:
        """Note that these absolute paths changed (None: any may have), and end a pause."""
        self._memory.note(paths)
        self._stale = True
        self._resume_at = None

    def act(self, now: datetime) -> None:
        """Do the next thing that is due at `now` (UTC), if any."""
        if not self._look_at - _LOOK_INTERVAL <= now < self._look_at:  # a clock may be set back
            # Check every file, since a file system may miss a change; that ends a pause, too.
            self._look_at, self._resume_at = now + _LOOK_INTERVAL, None
            try:
                is_changed = self._memory.look()
            except (BuildError, OSError):
                is_changed = True  # The build will report the reason.
            if is_changed:
                self.note_changes(())
        if self._resume_at and now < self._resume_at:
            return
        try:
            news = self._step(now)
        except BusyError:
            return  # Somebody builds by hand; that may be over at the next step.
        except BuildError as error:
            if self._stale:
                self._withdraw()
            # The pause ends by the next scheduled instant: then a strict build may succeed.
            due = self._due if self._due and self._due > now else _NEVER
            self._resume_at = min(due, now + timedelta(seconds=30))
            self.failure = str(error).partition("\n")[0]
            subject = error.findings if isinstance(error, ContentError) else str(error)
            if subject != self._told:
                self._told = subject
                self._tell(ReleaseEvent("refused", error=error))
        else:
            if news:
                self._resume_at = None
                self._told = None
                self.failure = ""
                self._tell(news)

    def _step(self, now: datetime) -> ReleaseEvent | None:
        if self._stale or not (self._order.output / CURRENT_LINK / SITE_FOLDER).is_dir():
            return self._build(now)  # The served build may have been deleted.
        if self._due and self._due <= now:
            if self._ahead and serve_prepared(self._order.output, self._ahead.build_id):
                report, self._ahead = self._ahead, None
                self._due = report.next_instant
                return ReleaseEvent("served", report)
            return self._build(now)  # Somebody has removed the release that was made ahead.
        if self._due and self._ahead is None:
            self._ahead = build(replace(self._order, now=self._due), self._memory, is_ahead=True)
            return ReleaseEvent("prepared", self._ahead)
        return None

    def _build(self, now: datetime) -> ReleaseEvent:
        report = build(replace(self._order, now=now), self._memory)
        self._stale = False
        self._withdraw()
        self._due = report.next_instant
        return ReleaseEvent("served", report)

    def _withdraw(self) -> None:
        """Remove the release that was made ahead: it may have texts that were withdrawn."""
        self._ahead = None
        with suppress(BuildError):
            withdraw(self._order.output)


def publish(
    order: BuildOptions,
    watched: Sequence[Path],
    tell: Callable[[ReleaseEvent], None],
    heart: HeartbeatThread,
    *,
    stays: bool,
) -> None:
    """Publish until interrupted, or until other code is installed; with `stays`, only report that.

    The instant of the order is ignored; `watched` are the files and folders that a release is made
    from. Raises KeyboardInterrupt when a signal ends it.
    """
    publisher = Watcher(order, tell)
    is_told = False
    # Files are compared: a watch of a file ends when an editor renames another over it.
    files = [path for path in watched if path.is_file()]
    stamps = [*map(stamp, files)]
    # The watch goes on while a build is made, so no change is missed.
    for changes in follow([path for path in watched if path not in files]):
        if changes != []:
            publisher.note_changes(changes)
        if stamps != (stamps := [*map(stamp, files)]):
            publisher.note_changes(map(str, files))
        publisher.act(datetime.now(UTC))
        heart.note(publisher.failure)
        if heart.is_outdated and not is_told:
            is_told = True
            tell(ReleaseEvent("outdated"))
            if not stays:
                return


def follow(folders: Sequence[Path]) -> Generator[list[str] | None, None, None]:
    """Yield absolute paths that changed, at least every 200 ms; None: any may have.

    A watch is bound to one folder: if another replaces it, that one is watched anew.
    """
    polls = False
    while True:
        known, is_new = [*map(_identify, folders)], True
        try:
            for changes in watch(
                *(each.absolute() for each in folders if each.exists()),
                # A burst of changes is over after so many ms, or after a step without one.
                debounce=1000,
                step=50,
                rust_timeout=_GLANCE,
                yield_on_timeout=True,
                force_polling=polls or None,
                poll_delay_ms=3000,
            ):
                yield None if is_new else [path for _, path in changes]
                is_new = False
                gone = {Path(path) for change, path in changes if change == Change.deleted}
                if gone & {*map(Path.absolute, folders)} or known != [*map(_identify, folders)]:
                    break
        except (OSError, RuntimeError) as error:  # moved away as it began; a name is not UTF-8
            limits = ("OS file watch limit reached", "(os error 24)")
            if polls := polls or any(each in str(error) for each in limits):
                warn(
                    "files are looked at every 3 s; raise fs.inotify.max_user_watches, "
                    "max_user_instances"
                )
        time.sleep(_GLANCE / 1000)
        yield []


def _identify(folder: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = folder.stat()
        return found.st_dev, found.st_ino
    return None
