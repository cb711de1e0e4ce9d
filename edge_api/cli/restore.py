"""`restore`: replace the store with a backup; the replaced store is kept beside it."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from click import Argument, Option

from edge_api.auth.actor import system_clock
from edge_api.backup.files import (
    KEY_BYTES,
    backup_key_path,
    checksum_path,
    file_sha256,
    read_checksum,
    secret_key_path,
    write_private,
)
from edge_api.backup.replica import fetch_replica, parse_zoned_instant
from edge_api.backup.restoration import carry_over, settle_newsletter
from edge_api.db.errors import OlderSchema, StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.sqlite.copying import (
    copy_backup,
    remove_draft,
    replace,
    replaced_path,
    require_no_wal,
    verify_copy,
)
from edge_api.db.sqlite.engine import open_store
from edge_api.db.sqlite.opening import sync
from edge_api.db.sqlite.processes import lock_store, stop_replicator
from edge_api.open_store import require_sqlite_path
from edge_api.schema.commands import PATH, Arguments, require_one
from edge_api.settings import Settings


@contextmanager
def _staged_key(
    path: Path, saved: Path | None, source: str, now: datetime
) -> Iterator[Callable[[], str]]:
    """Copy the file `saved`, a secret key, to a draft beside the current key at `path`.

    Yields a function that renames the current key, puts the draft in its place, and returns a
    sentence about that. Without `saved` the sentence says that `source` ("backup" or "replica")
    brings no key. The copy and the function raise OSError.
    """
    content = saved.read_bytes() if saved and saved.is_file() else None
    draft = path.with_name(f".{path.name}.restoring")

    def install() -> str:
        missing = f"the {source} brings no secret key, and"
        if content is None and path.exists():
            return f"{missing} {path} stays"
        if content is None:
            return (
                f"{missing} there is none at {path}: if there was one, put it there before "
                "you serve, or access tokens and the secrets of webhooks are void"
            )
        if path.exists() and path.read_bytes() == content:
            return f"the secret key is the same: {path}"
        former = ""
        if path.exists():
            os.link(path, replaced_path(path, now))
            former = f"; the former one is kept as {replaced_path(path, now)}"
        draft.replace(path)
        sync(path.parent)
        return f"the secret key is in its place: {path}{former}"

    try:
        if content is not None:
            write_private(draft, content)
        yield install
    finally:
        draft.unlink(missing_ok=True)


PARAMS: Final = (
    Argument(["file"], required=False, type=PATH, help="the backup"),
    Option(["--from-replica"], is_flag=True, help="take it from LITESTREAM_REPLICA instead"),
    Option(
        ["--at"],
        metavar="INSTANT",
        type=parse_zoned_instant,
        help="the state of the replica at an instant",
    ),
    Option(
        ["--key"], metavar="FILE", type=PATH, help="the secret key, such as a saved var/edge.key"
    ),
    Option(
        ["--all"],
        is_flag=True,
        help="restore what backup --all made: the whole journal, into this empty folder; "
        "--key is then the file of the private key, or - to read that",
    ),
    Option(["--force"], is_flag=True, help="put a store that is there aside, and restore"),
)


def brings_settings(arguments: Arguments) -> bool:
    """Return whether it is run with the settings that it restores, and no others."""
    return bool(arguments.all)


def run(arguments: Arguments, settings: Settings) -> int:
    """Restore and print the result. Returns 0; raises Problem and StoreRefusal."""
    if arguments.all:
        from edge_api.cli.archive import restore_archive  # noqa: PLC0415  it loads age

        return restore_archive(arguments)
    store = require_sqlite_path(settings, "restore").resolve()
    require_one(arguments, "FILE", "--from-replica")
    if arguments.at and not arguments.from_replica:
        raise Problem("invalid", "--at belongs to --from-replica: a file holds one state")
    with lock_store(store):
        warnings = _check_arguments(store, arguments)
        stop_replicator(store)
        try:
            report = restore_store(store, arguments, settings)
        except OSError as error:
            raise StoreRefusal(f"{store.parent} cannot be written: {error.strerror}") from None
        finally:
            remove_draft(_draft(store))
    print(*report, *warnings, sep="\n")
    return 0


def _check_arguments(store: Path, arguments: Arguments) -> Sequence[str]:
    """Check the arguments before writing; return warnings. Raises Problem, StoreRefusal."""
    if arguments.file is not None and arguments.file.resolve() == store:
        raise Problem("invalid", f"{arguments.file} is the store itself: name a backup")
    if arguments.file is not None:
        verify_copy(arguments.file)
    if (key := arguments.key) and not (key.is_file() and key.stat().st_size >= KEY_BYTES):
        raise Problem("invalid", f"{key} holds no secret key: name a saved var/edge.key")
    if store.exists() and not arguments.force:
        raise StoreRefusal(
            f"there is a store at {store}: say --force to put it aside, where it is kept"
        )
    return _verify_checksum(arguments.file) if arguments.file else ()


def _verify_checksum(backup: Path) -> Sequence[str]:
    """Compare a backup with its checksum; return a warning if it has none.

    SQLite keeps no checksums, so its integrity check misses changed values. Raises StoreRefusal.
    """
    try:
        checksum = read_checksum(backup)
        if checksum is None:
            return [f"no checksum is beside {backup}: if it was changed, nothing shows it"]
        is_same = file_sha256(backup) == checksum
    except OSError as error:
        raise StoreRefusal(f"{error.filename} cannot be read: {error.strerror}") from None
    if not is_same:
        raise StoreRefusal(
            f"{backup} was changed since it was made, or {checksum_path(backup)} was: name another "
            "backup, or remove the checksum to restore this one as it is"
        )
    return ()


def restore_store(store: Path, arguments: Arguments, settings: Settings) -> Sequence[str]:
    """Restore to a draft beside the store, replace the store last, and return lines to print."""
    now = system_clock()
    draft = _draft(store)
    remove_draft(draft)
    if arguments.from_replica:
        fetch_replica(settings, draft, arguments.at)
    else:
        copy_backup(arguments.file, draft)
    contents = verify_copy(draft)
    key_path = secret_key_path(require_sqlite_path(settings, "restore"))
    backup_key = backup_key_path(arguments.file) if arguments.file else None
    saved = None if settings.secret_key else arguments.key or backup_key
    secret_source, secret = "SECRET_KEY", (settings.secret_key or "").encode()
    if not secret and (key := saved if saved and saved.is_file() else key_path).is_file():
        secret_source, secret = str(key), key.read_bytes()
    outcome = asyncio.run(
        _migrate_and_carry_over(draft, store if store.exists() else None, secret_source, secret)
    )
    require_no_wal(draft)
    former = replaced_path(store, now) if store.exists() else None
    with _staged_key(key_path, saved, "backup" if backup_key else "replica", now) as install:
        replace(store, draft, former or replaced_path(store, now))
        key_line = (
            "SECRET_KEY is set: it must be the one that the backup was made with"
            if settings.secret_key
            else install()
        )
    lines = [
        (
            f"{store} is restored: {contents.total:,} rows, "
            f"from schema version {contents.schema_version}"
        ),
        key_line,
    ]
    if former:
        lines.append(f"the replaced store is kept as {former}")
    if isinstance(outcome, str):
        return [
            *lines,
            outcome,
            (
                "check these: keys that were revoked since are valid again, erased people are "
                "back, mails and events that were sent may be sent again"
            ),
        ]
    return [*lines, *(f"{what}: {number:,}" for what, number in outcome.items() if number)]


def _draft(store: Path) -> Path:
    return store.with_name(f".{store.name}.restoring")


async def _migrate_and_carry_over(
    draft: Path, former: Path | None, secret_source: str, secret: bytes
) -> Mapping[str, int] | str:
    """Migrate the draft, check the secret key, and carry rows over from the former store.

    `secret_source` is the file or the setting that has the key. Returns numbers of rows by outcome,
    or a sentence that says why some were not carried over. Raises StoreRefusal if the draft cannot
    be used or the key is wrong.
    """
    async with AsyncExitStack() as stack:
        restored = await open_store(draft, system_clock, create=False)
        stack.push_async_callback(restored.close)
        if secret:
            await require_key(restored, secret_source, secret)
        outcome: Mapping[str, int] | str
        try:
            outcome = await _carry_over(former, restored) if former else "there was no store before"
        except StoreRefusal as refusal:
            outcome = f"nothing could be carried over from the former store: {refusal}"
        except Problem as problem:
            await _require_writable(restored)
            outcome = f"not all could be carried over from the former store: {problem.message}"
        is_carried = not isinstance(outcome, str)
        if held := await settle_newsletter(restored, system_clock, is_carried=is_carried):
            outcome = (
                f"{outcome}; mailings of the newsletter that are held: {held}; "
                "skip those that had gone out: resuming mails them again"
            )
        return outcome


async def require_key(restored: Store, secret_source: str, secret: bytes) -> None:
    """Raise StoreRefusal for a secret key that does not decrypt the store's secrets."""
    # Slow to import, and not needed where a backup is refused.
    from edge_api.auth.tokens import SecretBox, SigningKeys  # noqa: PLC0415
    from edge_api.background import check_secret  # noqa: PLC0415
    from edge_api.webhooks.endpoints import KEY_PURPOSE  # noqa: PLC0415

    # Its warning about the key is not printed: the exception below says the same.
    logging.getLogger("edge_api.auth").addHandler(logging.NullHandler())
    keys = SigningKeys(restored, system_clock, secret)
    if await check_secret(restored, keys, SecretBox(secret, KEY_PURPOSE)):
        raise StoreRefusal(
            f"this is not the key that the store was used with: {secret_source}; "
            "name the right one (--key, or SECRET_KEY where that is set); "
            "if it is lost, take this one away"
        )


async def _require_writable(draft: Store) -> None:
    try:
        await draft.probe()
    except Problem as problem:
        raise StoreRefusal(
            f"what is restored cannot be written ({problem.message}): make room, and restore again"
        ) from None


async def _carry_over(former: Path, restored: Store) -> Mapping[str, int]:
    copy = former.with_name(f".{former.name}.former")
    remove_draft(copy)
    async with AsyncExitStack() as stack:
        stack.callback(remove_draft, copy)
        try:
            opened = await open_store(former, system_clock, create=False, migrates=False)
        except OlderSchema:  # migrate a copy: the former version may need the store as it is
            copy_backup(former, copy)
            opened = await open_store(copy, system_clock, create=False)
        stack.push_async_callback(opened.close)
        return await carry_over(opened, restored, system_clock)
