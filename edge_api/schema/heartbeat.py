"""What the watcher reports of itself while it runs, in a file that the edge reads."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import AwareDatetime, BaseModel, ConfigDict

HEARTBEAT_FILE = ".watcher"
"""In BUILD_DIR, beside the builds."""
BEAT_SECONDS = 20.0
"""How often the watcher writes it."""


class Heartbeat(BaseModel):
    """The whole file, a JSON object. Members that a later version adds are ignored."""

    model_config = ConfigDict(frozen=True)

    at: AwareDatetime
    """When it was written, UTC."""
    active_at: AwareDatetime
    """When the watcher last was between two builds, UTC: far before `at` where one hangs."""
    pid: int
    code_changed: bool
    """Other code is installed than the watcher was started with."""
    failure: str
    """Why the last build failed, in one line that may name paths; empty where it did not."""

    @classmethod
    def read(cls, build_dir: Path) -> Self | None:
        """Return what was reported last; None where no watcher runs, or it has ended as it should.

        Raises OSError where the file cannot be read, and ValueError where it is damaged.
        """
        try:
            return cls.model_validate_json((build_dir / HEARTBEAT_FILE).read_bytes())
        except FileNotFoundError:
            return None

    def write(self, build_dir: Path) -> None:
        """Replace the file in one step, so that nobody reads half of it. Raises OSError."""
        build_dir.mkdir(parents=True, exist_ok=True)
        partial = build_dir / f"{HEARTBEAT_FILE}-{self.pid}"
        partial.write_text(self.model_dump_json(), "utf-8")
        partial.replace(build_dir / HEARTBEAT_FILE)


def remove_heartbeat(build_dir: Path) -> None:
    """Remove the file, if it is this process that has written it."""
    with suppress(OSError, ValueError):
        found = Heartbeat.read(build_dir)
        if found and found.pid == os.getpid():
            (build_dir / HEARTBEAT_FILE).unlink()
