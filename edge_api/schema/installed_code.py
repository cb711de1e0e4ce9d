"""The watcher's heartbeat file, and the detection of changes in the installed code."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
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


PACKAGE = Path(__file__).resolve().parents[1]  # the folder of `edge_api`, this package's parent


class InstalledCode:
    """Detects whether the files of a program's packages have changed since it started.

    It compares contents: a file that is written again with the same content has not changed. It
    ignores libraries. Raises OSError if a file cannot be read.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._stamps = self._read_stamps()
        self.digest = _make_digest(*self._stamps.items())
        self.has_changed = False
        self.is_stable = True
        """Whether the last two checks found the same sizes and times: no upgrade is in progress."""

    def check(self) -> None:
        """Compare again; file contents are only read if a size or a time has changed."""
        stamps = self._read_stamps()
        self.is_stable = stamps == self._stamps
        if not self.is_stable:
            self.has_changed = _make_digest(*stamps.items()) != self.digest
            self._stamps = stamps

    def _read_stamps(self) -> dict[str, tuple[int, int]]:
        files = chain.from_iterable(map(list_files, self._folders))
        return {path: (found.st_size, found.st_mtime_ns) for path, found in files}


def list_files(top: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and `stat` of each file below a folder, except hidden and compiled ones.

    An editor's backup copies, `name~`, are left out too. Raises OSError if `stat` fails.
    """
    for folder, folders, names in os.walk(top):
        folders[:] = [each for each in folders if each[0] != "." and each != "__pycache__"]
        for name in names:
            if name[0] != "." and name[-1] != "~":
                path = os.path.join(folder, name)  # noqa: PTH118  faster, for many files
                with suppress(FileNotFoundError):  # the file is being replaced
                    yield path, os.stat(path)  # noqa: PTH116


def add_files(digest: hashlib.blake2b, top: Path, paths: Iterable[Path]) -> None:
    """Add the path of each file, relative to `top`, and its content to a digest. Raises OSError.

    A missing file is left out.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            content = path.read_bytes()
            digest.update(os.fsencode(f"{path.relative_to(top).as_posix()} {len(content)}\n"))
            digest.update(content)


@lru_cache(maxsize=2)
def _make_digest(*stamps: tuple[str, tuple[int, int]]) -> bytes:
    digest = hashlib.blake2b(digest_size=20)
    add_files(digest, Path("/"), (Path(path) for path, _ in sorted(stamps)))
    return digest.digest()
