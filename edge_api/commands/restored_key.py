"""The secret key of a backup, on its way into the place of the present one.

It is written beside that place first, so that little can fail once the store was exchanged.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from edge_api.commands.backup_folder import key_beside
from edge_api.commands.private_file import write_private
from edge_api.store.sqlite.opening import sync
from edge_api.store.sqlite.replacing import beside


class RestoredKey:
    """What becomes of the key at a place when a backup is restored; without one it stays."""

    def __init__(self, place: Path, backup: Path | None, now: datetime) -> None:
        """Find the key that was kept with the backup. Raises OSError."""
        kept = key_beside(backup) if backup else None
        self._content = kept.read_bytes() if kept and kept.is_file() else None
        self._place = place
        self._draft = place.with_name(f".{place.name}.restoring")
        self._former = beside(place, now)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Have it beside its place meanwhile, for its owner's eyes only. Raises OSError."""
        try:
            if self._content is not None:
                write_private(self._draft, self._content)
            yield
        finally:
            self._draft.unlink(missing_ok=True)

    def put(self) -> str:
        """Put it in its place, the former one aside; say what was done. Raises OSError."""
        if self._content is None:
            return self._tell_missing()
        if self._is_there():
            return f"the secret key is the same: {self._place}"
        aside = ""
        if self._place.exists():
            os.link(self._place, self._former)
            aside = f"; the former one is kept as {self._former}"
        self._draft.replace(self._place)
        sync(self._place.parent)
        return f"the secret key of the backup is in its place: {self._place}{aside}"

    def _is_there(self) -> bool:
        return self._place.exists() and self._place.read_bytes() == self._content

    def _tell_missing(self) -> str:
        if self._place.exists():
            return f"the backup brings no secret key, and {self._place} stays"
        return (
            f"the backup brings no secret key, and there is none at {self._place}: if there was "
            "one, put it there before you serve, or access tokens and the secrets of webhooks are "
            "void"
        )
