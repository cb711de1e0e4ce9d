"""`restore`: replace the store with a backup; the former store is kept beside it."""

import argparse
import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from edge_api.auth.actor import system_clock
from edge_api.backup.files import (
    backup_key_path,
    checksum_path,
    file_sha256,
    read_checksum,
    secret_key_path,
    write_private,
)
from edge_api.backup.replica import fetch_replica, parse_instant
from edge_api.backup.restoration import Restoration, carry_over
from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.sqlite.copying import CopyContents, copy_backup, verify_copy
from edge_api.db.sqlite.engine import open_store
from edge_api.db.sqlite.opening import sync
from edge_api.db.sqlite.replicator import stop_replicator
from edge_api.db.sqlite.swap_file import (
    locked,
    remove_draft,
    replace,
    replaced_path,
    require_no_wal,
)
from edge_api.open_store import require_sqlite_path
from edge_api.settings import Settings


@dataclass(frozen=True, slots=True)
class _Restored:
    """The result of a restore."""

    contents: CopyContents
    former: Path | None  # the former store
    outcome: Restoration | str  # an error message if nothing was carried over
    key: str  # a sentence about the secret key


class RestoredKey:
    """The secret key in a restore: that of the backup, else the present one."""

    def __init__(self, key_path: Path, backup: Path | None, now: datetime) -> None:
        """Read the key of the backup. Raises OSError."""
        backup_key = backup_key_path(backup) if backup else None
        self._source = "backup" if backup else "replica"
        self._content = backup_key.read_bytes() if backup_key and backup_key.is_file() else None
        self._path = key_path
        self._draft = key_path.with_name(f".{key_path.name}.restoring")
        self._former = replaced_path(key_path, now)

    @contextmanager
    def staged(self) -> Iterator[None]:
        """Write the key to a temporary file, readable by its owner only. Raises OSError."""
        try:
            if self._content is not None:
                write_private(self._draft, self._content)
            yield
        finally:
            self._draft.unlink(missing_ok=True)

    def install(self) -> str:
        """Move the key into place, and the former one aside; return a report. Raises OSError."""
        missing = f"the {self._source} brings no secret key, and"
        if self._content is None and self._path.exists():
            return f"{missing} {self._path} stays"
        if self._content is None:
            return (
                f"{missing} there is none at {self._path}: if there was one, put it there before "
                "you serve, or access tokens and the secrets of webhooks are void"
            )
        if self._path.exists() and self._path.read_bytes() == self._content:
            return f"the secret key is the same: {self._path}"
        former = ""
        if self._path.exists():
            os.link(self._path, self._former)
            former = f"; the former one is kept as {self._former}"
        self._draft.replace(self._path)
        sync(self._path.parent)
        return f"the secret key of the backup is in its place: {self._path}{former}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the backup")
    parser.add_argument(
        "--from-replica", action="store_true", help="take it from LITESTREAM_REPLICA instead"
    )
    parser.add_argument(
        "--at", metavar="INSTANT", type=parse_instant, help="the state of the replica at an instant"
    )
    parser.add_argument(
        "--force", action="store_true", help="put a store that is there aside, and restore"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Restore and print the result. Returns 0; raises Problem and StoreRefusal."""
    store = require_sqlite_path(settings, "restore").resolve()
    if (arguments.file is None) != arguments.from_replica:
        raise Problem("invalid", "restore takes either a FILE or --from-replica")
    if arguments.at and not arguments.from_replica:
        raise Problem("invalid", "--at belongs to --from-replica: a file holds one state")
    with locked(store):
        warnings = _check_early(store, arguments)
        stop_replicator(store)
        try:
            restored = _restore(store, arguments, settings)
        except OSError as error:
            raise StoreRefusal(f"{store.parent} cannot be written: {error.strerror}") from None
        finally:
            remove_draft(_draft(store))
    print(*_summary(store, restored), *warnings, sep="\n")
    return 0


def _check_early(store: Path, arguments: argparse.Namespace) -> Sequence[str]:
    """Check the arguments before writing; return warnings. Raises Problem, StoreRefusal."""
    if arguments.file is not None and arguments.file.resolve() == store:
        raise Problem("invalid", f"{arguments.file} is the store itself: name a backup")
    if arguments.file is not None:
        verify_copy(arguments.file)
    if store.exists() and not arguments.force:
        raise StoreRefusal(
            f"there is a store at {store}: say --force to put it aside, where it is kept"
        )
    return _verify_checksum(arguments.file) if arguments.file else ()


def _verify_checksum(backup: Path) -> Sequence[str]:
    """Compare a backup with its checksum; return a warning if it has none.

    SQLite has no checksum of a text, so its integrity check misses changes. Raises StoreRefusal.
    """
    checksum_file = checksum_path(backup)
    try:
        checksum = read_checksum(backup)
        if checksum is None:
            return [f"no checksum is beside {backup}: if it was changed, nothing shows it"]
        is_same = file_sha256(backup) == checksum
    except OSError as error:
        raise StoreRefusal(f"{error.filename} cannot be read: {error.strerror}") from None
    if not is_same:
        raise StoreRefusal(
            f"{backup} was changed since it was made, or {checksum_file} was: name another "
            "backup, or remove the checksum to restore this one as it is"
        )
    return ()


def _restore(store: Path, arguments: argparse.Namespace, settings: Settings) -> _Restored:
    """Prepare the file beside the store, and swap the two as the last step."""
    now = system_clock()
    draft = _draft(store)
    remove_draft(draft)
    if arguments.from_replica:
        fetch_replica(settings, draft, arguments.at)
    else:
        copy_backup(arguments.file, draft)
    contents = verify_copy(draft)
    outcome = asyncio.run(_migrate_and_carry_over(draft, store if store.exists() else None))
    require_no_wal(draft)
    former = replaced_path(store, now) if store.exists() else None
    key_path = secret_key_path(require_sqlite_path(settings, "restore"))
    key = RestoredKey(key_path, None if settings.secret_key else arguments.file, now)
    with key.staged():
        replace(store, draft, former or replaced_path(store, now))
        placed = _KEY_NOTE if settings.secret_key else key.install()
    return _Restored(contents, former, outcome, placed)


def _draft(store: Path) -> Path:
    return store.with_name(f".{store.name}.restoring")


async def _migrate_and_carry_over(draft: Path, former: Path | None) -> Restoration | str:
    """Migrate the draft, and carry over from the former store.

    Raises StoreRefusal for the draft.
    """
    restored = await open_store(draft, system_clock, create=False)
    try:
        return await _carry_over(former, restored) if former else "there was no store before"
    except StoreRefusal as refusal:
        return f"nothing could be carried over from the former store: {refusal}"
    except Problem as problem:
        await _require_writable(restored)
        return f"not all could be carried over from the former store: {problem.message}"
    finally:
        await restored.close()


async def _require_writable(draft: Store) -> None:
    try:
        await draft.probe()
    except Problem as problem:
        raise StoreRefusal(
            f"what is restored cannot be written ({problem.message}): make room, and restore again"
        ) from None


async def _carry_over(former: Path, restored: Store) -> Restoration:
    present = await open_store(former, system_clock, create=False)
    try:
        return await carry_over(present, restored, system_clock)
    finally:
        await present.close()


def _summary(store: Path, restored: _Restored) -> Sequence[str]:
    total, version = restored.contents.total, restored.contents.schema_version
    lines = [f"{store} is restored: {total:,} rows, from schema version {version}", restored.key]
    if restored.former:
        lines.append(f"the former store is kept as {restored.former}")
    if isinstance(restored.outcome, str):
        return [*lines, restored.outcome, _REMINDER]
    return [*lines, *_list_carried_over(restored.outcome)]


_KEY_NOTE = "SECRET_KEY is set: it must be the one that the backup was made with"
_REMINDER = (
    "check these: keys that were revoked since are valid again, erased people are back, "
    "mails and events that were sent may be sent again"
)


def _list_carried_over(outcome: Restoration) -> Sequence[str]:
    lines = {
        "revoked, removed or used since, and still so": outcome.ended,
        "suppressions, lines of the mail log and the like were taken over": outcome.added,
        "mails and events had been sent since, and are not sent again": outcome.sent,
    }
    for table, number in outcome.lost.items():
        lines[f"{table} came since, and are in the former store alone"] = number
    for table, number in outcome.revived.items():
        lines[f"{table} had been deleted since and are back: erase again whom you had erased"] = (
            number
        )
    return [f"{number:,} {what}" for what, number in lines.items() if number]
