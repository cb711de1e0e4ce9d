"""Signs of running processes: the watcher's heartbeat file, and the lock of a store's edge."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import AwareDatetime, BaseModel

HEARTBEAT_FILE = ".watcher"
"""The name of the file in BUILD_DIR, beside the builds."""
BEAT_SECONDS = 20.0  # the interval at which the watcher writes the file


class Heartbeat(BaseModel, frozen=True):
    """The content of the heartbeat file, as JSON. Members that a later version adds are ignored."""

    at: AwareDatetime
    """The instant at which it was written, UTC."""
    active_at: AwareDatetime
    """The last instant between two builds, UTC: long before `at` if a build hangs."""
    pid: int
    code_changed: bool
    """Whether the installed code has changed since the watcher started."""
    failure: str
    """The failure of the last build, in one line that may name paths; empty without a failure."""

    @classmethod
    def read(cls, build_dir: Path) -> Self | None:
        """Return the last heartbeat; None if no watcher runs, or it has ended normally.

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
    """Remove the file if this process wrote it."""
    with suppress(OSError, ValueError):
        found = Heartbeat.read(build_dir)
        if found and found.pid == os.getpid():
            (build_dir / HEARTBEAT_FILE).unlink()


def find_edge(store: Path) -> list[str] | None:
    """Return the process id and the digest of the code of the edge that serves a SQLite store.

    None: no edge does. Raises OSError.
    """
    file = store.with_name(f"{store.name}-lock")
    if not file.exists():
        return None
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 100).decode().split(" ")
    finally:
        os.close(descriptor)
    return None


def name_edge(store: Path, edge: list[str] | None) -> str:
    """Return an error that names the edge that `find_edge` has found."""
    return (
        f"{store} is served by another edge (process {(edge and edge[0]) or 'unknown'}): "
        "end that one, or set DATABASE_URL to another file"
    )
