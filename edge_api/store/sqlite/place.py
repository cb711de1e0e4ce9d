"""Where the store's files lie: whether their names still lead to the files that are open.

SQLite goes on writing to a file that was deleted or replaced, and what is committed there is lost.
"""

import os
from contextlib import suppress
from pathlib import Path


class Displaced(Exception):  # noqa: N818  a state of the world, not a fault of the code
    """A file of the store is gone, or another one has taken its place."""


class Place:
    """The files of an open store, as they were when it was opened."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(f"{path.name}-wal")
        self._files = {str(file): _identity(str(file)) for file in (path, self._log)}

    def check(self) -> None:
        """Return when every file is where it was (two microseconds). Raises Displaced."""
        for file, identity in self._files.items():
            if _identity(file) != identity:
                raise Displaced(f"{file} is another file than the one that was opened")

    def is_lost(self) -> bool:
        """Tell whether a file is not where it was."""
        try:
            self.check()
        except Displaced:
            return True
        return False

    def log_bytes(self) -> int:
        """Return the size of the log's file, 0 where that is gone."""
        with suppress(OSError):
            return self._log.stat().st_size
        return 0


def _identity(file: str) -> tuple[int, int]:
    try:
        status = os.stat(file)  # noqa: PTH116  twice as fast as by Path, and done for each commit
    except OSError:
        raise Displaced(f"{file} is missing") from None
    return status.st_dev, status.st_ino
