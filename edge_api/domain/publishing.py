"""Whether what is written gets published, and whether this edge runs the code that is installed."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.health import Check
from edge_api.schema.heartbeat import BEAT_SECONDS, Heartbeat
from edge_api.schema.index import BUILD_LOCK, CURRENT_LINK, INDEX_FILE
from edge_api.schema.installed_code import InstalledCode, list_files

LATE_SECONDS: Final = 3 * BEAT_SECONDS
"""Age of a heartbeat after which the watcher is taken for dead."""
HANGING_SECONDS: Final = 600
"""Length of a build after which it is taken to hang."""


@dataclass(slots=True)
class Publishing:
    """Looks at the disk now and then; readiness gets what was seen last."""

    build_dir: Path
    content_dir: Path
    clock: Clock
    installed: InstalledCode
    failure: str = ""
    """Why the watcher's last build failed, for the operator alone: it may name paths."""
    _watcher: Check = field(default_factory=lambda: Check("pass"))
    _code: Check = field(default_factory=lambda: Check("pass"))

    async def look(self) -> None:
        """Look at the watcher's heartbeat, at the content and at the installed code."""
        await asyncio.to_thread(self._look)

    async def watcher(self) -> Check:
        """Return whether the watcher does its work, and the content is published without one."""
        return self._watcher

    async def code(self) -> Check:
        """Return whether this process runs what is installed."""
        return self._code

    def _look(self) -> None:
        self._code, self._watcher = _warn(self._judge_code()), self._judge_watcher()

    def _judge_code(self) -> Iterator[str]:
        try:
            self.installed.look()
        except OSError as error:
            yield f"the installed code cannot be read ({error.strerror})"
        if self.installed.has_changed:
            yield "the installed code has changed since this edge started: restart it"

    def _judge_watcher(self) -> Check:
        try:
            beat = Heartbeat.read(self.build_dir)
        except (OSError, ValueError):
            return _warn(["the watcher's heartbeat cannot be read: restart the watcher"])
        self.failure = beat.failure if beat else ""
        try:
            return _warn(self._judge(beat) if beat else self._judge_content())
        except OSError as error:
            return _warn([f"CONTENT_DIR cannot be read ({error.strerror})"])

    def _judge(self, beat: Heartbeat) -> Iterator[str]:
        # Absolute: a clock that was set back makes a dead watcher's heartbeat come from the future.
        if abs((self.clock() - beat.at).total_seconds()) > LATE_SECONDS:
            yield "the watcher has not reported for more than a minute: start it again"
        elif (beat.at - beat.active_at).total_seconds() > HANGING_SECONDS:
            yield "the watcher's build has run for more than ten minutes: restart the watcher"
        if beat.failure:
            yield "the watcher's builds fail: its log and doctor say why"
        if beat.code_changed:
            yield "the installed code has changed since the watcher started: restart the watcher"

    def _judge_content(self) -> Iterator[str]:
        """Say so where content waits to be built, as beside a watcher that writes no heartbeat."""
        if not (self.build_dir / BUILD_LOCK).exists():
            return
        try:
            built = (self.build_dir / CURRENT_LINK / INDEX_FILE).stat().st_mtime_ns
        except OSError:  # readiness says so of the build itself
            return
        if any(found.st_mtime_ns > built for _, found in list_files(self.content_dir)):
            yield (
                "the content has changed since the served build was made: "
                "restart the watcher, or build again"
            )


def _warn(sentences: Iterator[str] | list[str]) -> Check:
    sentence = "; ".join(sentences)
    return Check("warn" if sentence else "pass", sentence)
