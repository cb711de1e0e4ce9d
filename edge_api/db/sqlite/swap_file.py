"""Putting another file in the place of a store's, so that nothing of the former is lost."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import verify
from edge_api.db.sqlite.lock_file import LockFile
from edge_api.db.sqlite.opening import sync
from edge_api.db.sqlite.replicator import litestream_state_path

LOGS: Final = ("-shm", "-wal")
"""What SQLite keeps beside a file, in the order in which it removes them."""
REPLACED: Final = ".replaced-"
"""Between the name of a file that was put aside and the instant at which it was."""


@contextmanager
def claimed(store: Path) -> Iterator[None]:
    """Keep edges away from the store meanwhile. Raises StoreRefusal where one serves it."""
    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreRefusal(f"{store.parent} cannot be made ({error.strerror})") from None
    claim = LockFile(store)
    try:
        yield
    finally:
        claim.release()


def beside(store: Path, now: datetime) -> Path:
    """Return the name under which a store, or its key, is kept that is replaced at an instant."""
    return store.with_name(f"{store.name}{REPLACED}{now:%Y%m%dT%H%M%S.%f}Z")


def require_no_wal(draft: Path) -> None:
    """Raise StoreRefusal for a file that still has a log: moved, it would lose it."""
    log = _with_end(draft, "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreRefusal(
            f"{draft} cannot be written whole, since its disk is full, fails or is slow: "
            "make room, and restore again"
        )
    verify(draft)


def replace(store: Path, whole: Path, aside: Path) -> None:
    """Put the file `whole` in the store's place, and what was there, log and all, `aside`.

    A process killed meanwhile leaves the former store whole under its new name. Raises OSError.
    """
    for end in ("", "-wal"):
        with suppress(FileNotFoundError):
            os.link(_with_end(store, end), _with_end(aside, end))
    sync(store.parent)
    for end in LOGS:  # a log beside another file would be applied to it
        _with_end(store, end).unlink(missing_ok=True)
    sync(store.parent)
    whole.replace(store)
    # Replicated anew from its first page: what was known of the log holds no more.
    shutil.rmtree(litestream_state_path(store), ignore_errors=True)
    sync(store.parent)


def clear(draft: Path) -> None:
    """Remove a file that is to take a store's place, and what SQLite put beside it."""
    for end in ("", *LOGS):
        _with_end(draft, end).unlink(missing_ok=True)


def _with_end(store: Path, end: str) -> Path:
    return store.with_name(f"{store.name}{end}")
