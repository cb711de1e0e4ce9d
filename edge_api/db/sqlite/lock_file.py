"""The lock file that lets one edge at a time serve a SQLite store."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edge_api.db.errors import StoreRefusal
from edge_api.schema.installed_code import PACKAGE, InstalledCode


@contextmanager
def lock_store(path: Path) -> Iterator[None]:
    """Lock the store at `path`, by a file beside it. Raises StoreRefusal where another edge has it.

    Closing another handle of the store's own file would release SQLite's locks (POSIX, fcntl).
    """
    file = _lock_path(path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreRefusal(
            f"{file} cannot be written ({error.strerror}): let this user write its folder"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(descriptor)[0] or "unknown"
            raise StoreRefusal(
                f"{path} is served by another edge (process {holder}): "
                "end that one, or set DATABASE_URL to another file"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()} {InstalledCode(PACKAGE).digest.hex()}".encode())
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether an edge serves the store at `path`. Raises OSError."""
    return _find_holder(path) is not None


def is_outdated(path: Path) -> bool:
    """Return whether an edge serves the store with code that is not installed. Raises OSError."""
    holder = _find_holder(path)
    return holder is not None and holder[1:] != [InstalledCode(PACKAGE).digest.hex()]


def _find_holder(path: Path) -> list[str] | None:
    file = _lock_path(path)
    if not file.exists():
        return None
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _read_holder(descriptor: int) -> list[str]:
    return os.read(descriptor, 100).decode().split(" ")


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-lock")
