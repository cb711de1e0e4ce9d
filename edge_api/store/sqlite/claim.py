"""The claim of the one edge that serves a store; two on one file would wait for each other."""

import fcntl
import os
from pathlib import Path

from edge_api.store.faults import StoreRefusal


class Claim:
    """A lock on a file beside the store, held until it is released or the process ends.

    The store itself cannot be locked: closing another handle of its file would release the locks
    that SQLite holds on it (POSIX, fcntl).
    """

    def __init__(self, path: Path) -> None:
        """Take the claim on the store at `path`. Raises StoreRefusal where another edge has it."""
        file = _lock_of(path)
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreRefusal(
                f"{file} cannot be written ({error.strerror}): let this user write its folder"
            ) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 20).decode() or "unknown"
            self.release()
            raise StoreRefusal(
                f"{path} is served by another edge (process {holder}): "
                "end that one, or set DATABASE_URL to another file"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Let go of the claim."""
        os.close(self._descriptor)


def is_claimed(path: Path) -> bool:
    """Tell whether an edge serves the store at `path`. Raises OSError."""
    file = _lock_of(path)
    if not file.exists():
        return False
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-lock")
