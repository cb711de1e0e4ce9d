"""`backup`: a whole, verified copy of the store, made beside a running edge."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click import Option

from edge_api.auth.actor import system_clock
from edge_api.backup.files import (
    BackupFolder,
    backup_key_path,
    secret_key_path,
    write_private,
)
from edge_api.backup.verify import publish_copy, recording_failure
from edge_api.cli import COUNT
from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.sqlite.copying import CopyContents, copy_store, verify_copy
from edge_api.db.sqlite.opening import BACKUPS_FOLDER, require_file
from edge_api.db.types import format_instant
from edge_api.open_store import require_sqlite_path
from edge_api.schema.commands import JSON, PATH, Arguments
from edge_api.settings import Settings


@dataclass(frozen=True, slots=True)
class Backup:
    """The result of a backup."""

    path: Path
    contents: CopyContents
    key: Path | None  # the copy of the secret key
    removed: Sequence[Path]


PARAMS: Final = (
    Option(
        ["--to"], metavar="DIR", type=PATH, help="the folder (default: backups, beside the store)"
    ),
    Option(
        ["--keep"],
        metavar="N",
        type=COUNT,
        help="how many the folder keeps, the newest ones (default: all)",
    ),
    Option(["--without-key"], is_flag=True, help="leave the secret key out of the folder"),
    Option(
        ["--all"],
        is_flag=True,
        help="the whole journal in one archive, encrypted for BACKUP_RECIPIENT",
    ),
    Option(
        ["--daily"],
        is_flag=True,
        help="with --all, for timers: only where BACKUP_RECIPIENT is set, and once a day",
    ),
    Option(
        ["--if-sqlite"],
        is_flag=True,
        help="without --all, for timers: if the store is in PostgreSQL, do nothing "
        "and report no error",
    ),
    Option(["--passphrase"], is_flag=True, help="with --all: ask for one, and encrypt with it"),
    JSON,
)


def run(arguments: Arguments, settings: Settings) -> int:
    """Make a backup and print it. Returns 0; raises Problem and StoreRefusal."""
    if arguments.all and not arguments.if_sqlite:
        from edge_api.cli.archive import make_archive  # noqa: PLC0415  it loads age

        return make_archive(arguments, settings)
    if arguments.all or arguments.daily or arguments.passphrase:
        raise Problem(
            "invalid",
            "--daily and --passphrase belong to --all, and --if-sqlite to a copy without it: name "
            "that too, or leave it out",
        )
    if arguments.if_sqlite and settings.database_path is None:
        print("the store is in PostgreSQL: no copy; its backups are the server's, and --all has it")
        return 0
    backup = make_backup(settings, arguments.to, arguments.keep, with_key=not arguments.without_key)
    if arguments.json:
        printed = {
            "file": str(backup.path),
            "bytes": backup.path.stat().st_size,
            "schema_version": backup.contents.schema_version,
            "rows": dict(backup.contents.rows),
            "secret_key": str(backup.key) if backup.key else None,
            "removed": [str(path) for path in backup.removed],
        }
        print(json.dumps(printed, indent=2))
    else:
        print(*_summary(backup, settings), sep="\n")
    return 0


def make_backup(
    settings: Settings, to: Path | None = None, keep: int | None = None, *, with_key: bool = True
) -> Backup:
    """Make a backup under a temporary name, and rename it once it is verified.

    With `keep`, remove all but that many backups from the folder. Raises StoreRefusal.
    """
    store = require_sqlite_path(settings, "backup")
    require_file(store)
    key = secret_key_path(store) if with_key and not settings.secret_key else None
    folder, now = BackupFolder(to or store.parent / BACKUPS_FOLDER), system_clock()
    with recording_failure(settings, "backup"), folder.locked():
        target = folder.backup_path(now)
        partial = target.with_name(f".{target.stem}.partial")
        copy_store(store, partial)
        contents = verify_copy(partial, store)
        try:
            stored_key = None
            if key is not None and key.is_file():
                draft = target.with_name(f".{target.stem}.partial-key")
                write_private(draft, key.read_bytes())
                stored_key = draft.rename(backup_key_path(target))
            publish_copy(settings, "backup", partial, target, format_instant(now))
            removed = folder.rotate(keep, target) if keep else ()
        except OSError as error:
            raise StoreRefusal(
                f"{error.filename or folder.path} cannot be written: {error.strerror}"
            ) from None
    return Backup(target, contents, stored_key, removed)


def _summary(backup: Backup, settings: Settings) -> Sequence[str]:
    made = (
        f"{backup.path}: {backup.path.stat().st_size:,} bytes, "
        f"{backup.contents.total:,} rows of {len(backup.contents.rows)} tables, verified"
    )
    if backup.key:
        key_note = f"the secret key is beside it: {backup.key}"
    elif settings.secret_key:
        key_note = "SECRET_KEY is not in it: keep that elsewhere, encrypted values need it"
    else:
        key_note = "no secret key is beside it: if one is used, keep it elsewhere"
    return [made, key_note, *(f"removed {path}, which was older" for path in backup.removed)]
