"""A folder of backups: their names, the one who writes there, and how many are kept.

It knows names and files, and nothing of what is in them.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.swap_file import REPLACED

_NAME: Final = re.compile(r"edge-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z\.db")
"""What this folder has named, and may remove."""
_PARTIAL: Final = ".edge-*.partial*"
_LOCK: Final = ".backup-lock"


def key_beside(backup: Path) -> Path:
    """Return where the secret key of a backup lies, if it was kept.

    A store that a restore has put aside is one as well; its key was put aside at the same instant.
    """
    store, aside, instant = backup.name.partition(REPLACED)
    return backup.with_name(f"{Path(store).with_suffix('.key')}{aside}{instant}")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_beside(backup: Path) -> Path:
    """Return where the SHA-256 of a backup is kept, in a line that `sha256sum -c` reads."""
    return backup.with_name(f"{backup.name}.sha256")


def read_checksum(backup: Path) -> str | None:
    """Return the SHA-256 that was kept of a backup; `None` where none was. Raises OSError.

    A checksum that is damaged is returned as it is: it is equal to none.
    """
    kept = checksum_beside(backup)
    return kept.read_text("utf-8", "replace").partition(" ")[0] if kept.exists() else None


class BackupFolder:
    """Backups side by side, each with the instant at which it was made for a name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Be the only one who writes here, in a folder for its owner's eyes only.

        What one that was killed has left half-written is removed. Raises StoreRefusal.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreRefusal(
                f"{self.path} cannot take a backup ({error.strerror}): name another folder by --to"
            ) from None
        try:
            _take(lock, self.path)
            self._remove_partials()
            try:
                yield
            finally:
                self._remove_partials()
        finally:
            os.close(lock)

    def partial(self, now: datetime) -> Path:
        """Return where a backup is written until it is whole."""
        return self.path / f".{self._stem(now)}.partial"

    def place(self, now: datetime) -> Path:
        """Return where a whole backup of an instant stands."""
        return self.path / f"{self._stem(now)}.db"

    def backups(self) -> Sequence[Path]:
        """Return what stands here, the latest name first; nothing that others have put here."""
        found = (path for path in self.path.iterdir() if _NAME.fullmatch(path.name))
        return sorted(found, key=lambda path: path.name, reverse=True)

    def rotate(self, keep: int, made: Path) -> Sequence[Path]:
        """Remove all but the one just made and the newest of the others; return what was removed.

        What has a name from a later instant was made while the clock ran ahead: it goes first.
        Each goes with its key and its checksum.
        """
        found = self.backups()
        at = found.index(made)
        old = [*found[at:], *found[:at]][keep:]
        for backup in old:
            backup.unlink(missing_ok=True)
            for beside in (key_beside(backup), checksum_beside(backup)):
                beside.unlink(missing_ok=True)
        return old

    def _remove_partials(self) -> None:
        for path in self.path.glob(_PARTIAL):
            path.unlink(missing_ok=True)

    @staticmethod
    def _stem(now: datetime) -> str:
        return f"edge-{now:%Y%m%dT%H%M%S.%f}Z"


def _take(lock: int, folder: Path) -> None:
    """Lock the folder for this process. Raises StoreRefusal where another one has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreRefusal(f"another backup into {folder} is under way: wait for it") from None
