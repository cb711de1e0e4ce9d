"""Replacement of a store's file, which keeps the former file."""

import os
import shutil
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import verify_copy
from edge_api.db.sqlite.opening import sync
from edge_api.db.sqlite.replicator import litestream_state_path

WAL_SUFFIXES: Final = ("-shm", "-wal")
"""The suffixes of SQLite's files beside a store, in the order in which it removes them."""
REPLACED_INFIX: Final = ".replaced-"
"""The infix between a replaced file's name and the instant of its replacement."""


def replaced_path(store: Path, now: datetime) -> Path:
    """Return the new path of a store, or its key, that is replaced at an instant."""
    return store.with_name(f"{store.name}{REPLACED_INFIX}{now:%Y%m%dT%H%M%S.%f}Z")


def require_no_wal(draft: Path) -> None:
    """Raise StoreRefusal for a file that still has a log: moved, it would lose it."""
    log = _with_suffix(draft, "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreRefusal(
            f"{draft} cannot be written whole, since its disk is full, fails or is slow: "
            "make room, and restore again"
        )
    verify_copy(draft)


def replace(store: Path, new: Path, aside: Path) -> None:
    """Replace the store by the file `new`, and move the former one with its log to `aside`.

    A process killed meanwhile leaves the former store complete at its new path. Raises OSError.
    """
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            os.link(_with_suffix(store, suffix), _with_suffix(aside, suffix))
    sync(store.parent)
    for suffix in WAL_SUFFIXES:  # a log beside another file would be applied to it
        _with_suffix(store, suffix).unlink(missing_ok=True)
    sync(store.parent)
    new.replace(store)
    # Replicated anew from its first page: what was known of the log is no longer valid.
    shutil.rmtree(litestream_state_path(store), ignore_errors=True)
    sync(store.parent)


def remove_draft(draft: Path) -> None:
    """Remove the draft of a store with SQLite's files beside it."""
    for suffix in ("", *WAL_SUFFIXES):
        _with_suffix(draft, suffix).unlink(missing_ok=True)


def _with_suffix(store: Path, suffix: str) -> Path:
    return store.with_name(f"{store.name}{suffix}")
