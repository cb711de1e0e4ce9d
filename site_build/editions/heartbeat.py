"""The watcher's heartbeat: a thread writes it, so that a long build does not stop it.

A build forks, so the thread takes no lock that a build takes too.
"""

import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from edge_api.schema.heartbeat import BEAT_SECONDS, Heartbeat, remove_heartbeat
from edge_api.schema.installed_code import InstalledCode


class HeartbeatThread(threading.Thread):
    """Writes the heartbeat every 20 seconds, and when builds start or stop failing.

    Use it as a context. A signal's KeyboardInterrupt removes the file; any other end leaves it to
    grow old, which the edge reports. The first one is written after a build or 20 seconds, so that
    a watcher that dies at each start never looks alive.
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
        """Whether other code is installed than this process runs, and nobody is writing it now."""
        return self._code.has_changed and self._code.is_settled

    def note(self, failure: str) -> None:
        """Note that no build is under way, and why the last one failed ("" where it did not)."""
        self._active_at = datetime.now(UTC)
        if failure != self._failure:
            self._failure = failure
            self._wake.set()

    def run(self) -> None:
        """Beat until the context is left."""
        while not self._is_over:
            was_woken = self._wake.wait(self._beat_seconds)
            self._wake.clear()
            if not self._is_over:
                with suppress(OSError):  # a full disk: the heartbeat just grows old
                    self._beat(looks=not was_woken)

    def _beat(self, *, looks: bool) -> None:
        if looks:
            self._code.look()
        Heartbeat(
            at=datetime.now(UTC),
            active_at=self._active_at,
            pid=os.getpid(),
            code_changed=self._code.has_changed,
            failure=(self._failure or "").encode("utf-8", "replace").decode(),  # names of files
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
