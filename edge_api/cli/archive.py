"""`backup --all` and `restore --all`: the whole journal in one encrypted archive, and back."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from edge_api.auth.actor import system_clock
from edge_api.backup.archive import (
    FILES,
    FORMAT,
    MANIFEST,
    ROWS,
    SECRET,
    ask_passphrase,
    unpack_archive,
    write_archive,
)
from edge_api.backup.files import (
    BACKUP_LOCK,
    BackupFolder,
    file_sha256,
    secret_key_path,
    write_private,
)
from edge_api.backup.restoration import settle_newsletter
from edge_api.backup.verify import publish_copy, read_result, recording_failure, store_place
from edge_api.cli import printable
from edge_api.cli.restore import restore_store
from edge_api.db.errors import MissingStore, StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.sqlite import copying
from edge_api.db.sqlite.opening import BACKUPS_FOLDER, require_file
from edge_api.db.sqlite.processes import lock_store
from edge_api.db.types import format_instant
from edge_api.open_store import command_store
from edge_api.schema.commands import Arguments
from edge_api.schema.environment import EDGE, VERSION, SettingsError, read_dotenv, sqlite_file
from edge_api.schema.writing import locate_var
from edge_api.settings import SETTINGS, Settings, read_settings

_KEPT_OF_VAR: Final = ("drafts", "versions")
_HIDDEN_AND_KEPT: Final = (".env", ".git", ".gitattributes", ".github", ".gitignore", ".gitmodules")
_SKIPPED_FOLDERS: Final = ("__pycache__", "node_modules")
_DAY_SECONDS: Final = 23 * 3600.0
"""What `--daily` takes for a day: an hourly timer is not always on time."""


def make_archive(arguments: Arguments, settings: Settings) -> int:
    """Make an archive and print it. Returns 0; raises Problem and StoreRefusal."""
    var, now = store_place(settings).parent, system_clock()
    folder = BackupFolder(arguments.to or var / BACKUPS_FOLDER, "journal", ".age")
    is_usual = folder.path.resolve() == (var / BACKUPS_FOLDER).resolve()
    if arguments.daily and not is_usual:
        raise Problem("invalid", "--daily looks at the folder beside the store: leave --to out")
    if arguments.daily:
        newest = read_result(settings, "archive")
        is_new = (
            newest
            and newest.age_of_backup < _DAY_SECONDS
            and not newest.find_error("archive", settings)
            and Path(newest.subject).is_file()
        )
        if is_new or not settings.backup_recipient:
            print("no archive is due" if is_new else "BACKUP_RECIPIENT is not set: no archive")
            return 0
    passphrase = (
        ask_passphrase("Passphrase of the archive", confirm=True) if arguments.passphrase else ""
    )
    if arguments.passphrase and not passphrase:
        raise Problem("invalid", "--passphrase: an empty one opens to anybody: type one")
    if not arguments.passphrase and not settings.backup_recipient:
        raise Problem(
            "invalid",
            "--all is never written unencrypted: set BACKUP_RECIPIENT to the public key that "
            "age-keygen prints, or give --passphrase",
        )
    scratch = BackupFolder(var / ".archiving")  # rows that are not encrypted yet stay beside others
    target = folder.backup_path(now)
    partial = target.with_name(f".{target.stem}.partial")
    # One elsewhere, on a stick perhaps, is nothing that this machine can watch.
    with recording_failure(settings, "archive") if is_usual else nullcontext():
        try:
            var.mkdir(mode=0o700, parents=True, exist_ok=True)
            with scratch.locked(), folder.locked():
                files = chain(_copy_rows(settings, scratch, now).items(), _list_files(settings))
                lock = settings.backup_recipient, passphrase
                count = write_archive(partial, files, lock, scratch.path)
                publish_copy(
                    settings, "archive" if is_usual else None, partial, target, format_instant(now)
                )
                removed = folder.rotate(arguments.keep, target) if arguments.keep else ()
        except OSError as error:
            place = error.filename or folder.path
            reason = error.strerror or error
            raise StoreRefusal(f"{place} cannot be read or written: {reason}") from None
    size = target.stat().st_size
    if arguments.json:
        older = [str(path) for path in removed]
        printed = {"file": str(target), "bytes": size, "files": count, "removed": older}
        print(json.dumps(printed, indent=2))
        return 0
    print(
        f"{target}: {size:,} bytes, {count:,} files, encrypted "
        f"{'with the passphrase' if passphrase else 'for BACKUP_RECIPIENT'}",
        *(f"removed {path}, which was older" for path in removed),
        *(
            "it is on the same disk as the journal: copy it to another machine"
            for folder in (target.parent,)
            if folder.stat().st_dev == Path.cwd().stat().st_dev
        ),
        sep="\n",
    )
    return 0


def _copy_rows(settings: Settings, scratch: BackupFolder, now: datetime) -> Mapping[str, Path]:
    """Copy the rows, and read the copy to its end; return the first files by their members."""
    rows = scratch.path / ".edge-rows.partial"
    facts: dict[str, Any] = {"format": FORMAT, "version": VERSION, "made_at": format_instant(now)}
    if store := settings.database_path:
        require_file(store)
        copying.copy_store(store, rows)
        facts["rows"] = dict(copying.verify_copy(rows, store).rows)
    else:
        from edge_api.backup.archive import dump_rows  # noqa: PLC0415

        dump_rows(settings.database_url, rows)
    members = {MANIFEST: rows.with_name(f"{rows.name}-manifest"), ROWS[store is None]: rows}
    write_private(members[MANIFEST], json.dumps(facts).encode())
    if settings.secret_key:
        members[SECRET] = rows.with_name(f"{rows.name}-key")
        write_private(members[SECRET], settings.secret_key.encode())
    elif store and secret_key_path(store).is_file():
        members[SECRET] = secret_key_path(store)
    return members


def _list_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield name and path of what makes this folder a journal. Raises StoreRefusal."""
    root, var = Path.cwd(), locate_var(settings.database_url, settings.build_dir)
    has_drafts = any((var / name).is_dir() for name in _KEPT_OF_VAR)
    for setting, path in (
        ("CONTENT_DIR", settings.content_dir),
        ("MAIL_TEMPLATES", settings.mail_templates),
        ("DATABASE_URL", var if has_drafts else None),
    ):
        if path and not path.resolve().is_relative_to(root):
            raise StoreRefusal(
                f"{setting}: {path} is outside of {root}, which an archive keeps: move it there"
            )
    for path in sorted(root.iterdir()):
        yield from _walk(path, f"{FILES}/{path.name}", partial(_is_kept, settings, root), ())


def _is_kept(settings: Settings, root: Path, place: Path) -> bool:
    """Return whether an archive keeps what is at a place in `root`, if it keeps its folder.

    The rest is made again, or is the store's or somebody else's.
    """
    store, name, build = store_place(settings), place.name, root / settings.build_dir
    var = root / locate_var(settings.database_url, settings.build_dir)
    is_made_again = place in (build, build.resolve(), root / "output")
    if place.parent in {var, var.resolve()} - {root}:
        return name in _KEPT_OF_VAR
    return not is_made_again and not (
        place.parent == root
        and (
            (name.startswith(".") and name not in _HIDDEN_AND_KEPT)
            or name.startswith((store.name, secret_key_path(store).name))
        )
    )


def _walk(
    path: Path, name: str, is_kept: Callable[[Path], bool], above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, Path]]:
    """Yield folders and files at a path; links are followed, since an archive has none."""
    if (
        not is_kept(path)
        or path.match("journal-*Z.age")
        # A lock of git that a commit holds at this moment would never be released.
        or (path.suffix == ".lock" and name.startswith(f"{FILES}/.git/"))
    ):
        return
    if path.is_file():
        yield name, path
        return
    if (
        path.name in _SKIPPED_FOLDERS
        or not path.is_dir()
        or any((path / mark).exists() for mark in (BACKUP_LOCK, "pyvenv.cfg"))
    ):
        return
    found = path.stat()
    if (identity := (found.st_dev, found.st_ino)) in above:  # a link to a folder that it is in
        return
    yield f"{name}/", path  # an empty one counts too: without `refs` git knows no repository
    for each in sorted(path.iterdir()):
        yield from _walk(each, f"{name}/{each.name}", is_kept, (*above, identity))


def restore_archive(arguments: Arguments) -> int:
    """Restore a whole journal into this folder. Returns 0; raises Problem and StoreRefusal."""
    if arguments.file is None or arguments.from_replica or arguments.at or arguments.force:
        raise Problem("invalid", "--all takes an archive, and --key alone beside it")
    root, key = Path.cwd(), arguments.key
    try:
        raw = key and (sys.stdin.buffer.read() if str(key) == "-" else key.read_bytes())
        staging, unpacked = root / ".restoring", root / ".restoring/unpacked"
        with ExitStack() as stack:
            stack.enter_context(BackupFolder(staging).locked())
            stack.callback(shutil.rmtree, staging)
            shutil.rmtree(unpacked, ignore_errors=True)  # what was killed has left
            unpacked.mkdir()
            manifest = unpack_archive(arguments.file, unpacked, raw)
            settings = _read_restored_settings(unpacked)
            has_key = bool(settings.secret_key) or (unpacked / SECRET).is_file()
            placed = _install(unpacked, root, settings)
    except (StoreRefusal, SettingsError) as refusal:
        # Nobody can look there any more.
        raise StoreRefusal(str(refusal).replace(f"{unpacked}/", "the archive's ")) from None
    except OSError as error:
        place = error.filename or root
        raise StoreRefusal(f"{place} cannot be read or written: {error.strerror}") from None
    notes = {
        "the rows are where DATABASE_URL in the environment says, and .env says otherwise: write "
        "it there before you serve": settings.database_url
        != (read_dotenv(root / ".env").get("DATABASE_URL") or SETTINGS["DATABASE_URL"].default),
        "the archive has no secret key: if there was one, put it beside the store before you "
        "serve, or access tokens and the secrets of webhooks are void": not has_key,
    }
    print(
        f"the journal of {printable(str(manifest.get('made_at')))} is restored in {root}: its "
        f"rows, and {placed:,} files",
        *(note for note, holds in notes.items() if holds),
        "check these: keys that were revoked since are valid again, erased people are back, mails "
        "and events that were sent may be sent again; the newsletter waits for your press",
        sep="\n",
    )
    return 0


def _read_restored_settings(unpacked: Path) -> Settings:
    """Return the settings that the restored journal will have. Raises StoreRefusal."""
    dotenv, secret = unpacked / FILES / ".env", unpacked / SECRET
    root, kept = Path.cwd(), read_dotenv(dotenv)
    is_dump = (unpacked / ROWS[1]).is_file()
    if not (unpacked / ROWS[is_dump]).is_file() or (is_dump and not secret.is_file()):
        raise StoreRefusal("the archive has no rows, or no key to them: name another one")
    url = os.environ.get("DATABASE_URL") or kept.get("DATABASE_URL")
    if is_dump == (sqlite_file(url or str(SETTINGS["DATABASE_URL"].default)) is not None):
        raise StoreRefusal(
            f"the archive has rows of {'PostgreSQL' if is_dump else 'SQLite'}, and DATABASE_URL "
            "names a store of another kind: set it in the environment to one of that kind"
        )
    key = secret.read_text("utf-8", "replace") if is_dump else ""
    secret_key = os.environ.get("SECRET_KEY") or kept.get("SECRET_KEY") or key
    settings = read_settings({**os.environ, "SECRET_KEY": secret_key}, dotenv)
    for setting, leads in (
        ("DATABASE_URL", store_place(settings)),
        ("CONTENT_DIR", settings.content_dir.resolve()),
    ):
        if not leads.is_relative_to(root):
            raise StoreRefusal(
                f"{setting} of the archive leads out of {root}: set it in the environment to a "
                "place in this folder"
            )
    if is_dump and settings.secret_key != key:
        raise StoreRefusal("SECRET_KEY in the environment is not that of the archive: unset it")
    if is_dump and not kept.get("SECRET_KEY"):
        dotenv.parent.mkdir(exist_ok=True)
        with dotenv.open("a", encoding="utf-8") as file:
            file.write(f"\nSECRET_KEY={settings.secret_key}\n")
        dotenv.chmod(0o600)
    return settings


def _install(unpacked: Path, root: Path, settings: Settings) -> int:
    """Put files and rows in their places, rows last; return the number of files.

    Nothing that is there is replaced. What a killed restore has placed is the same, and stays.
    """
    store = store_place(settings)
    _require_no_store(settings)
    files = unpacked / FILES
    names = [each.relative_to(files) for each in sorted(files.rglob("*"))]
    for name in names:
        place = root / name
        if not _is_kept(settings, root, place):
            raise StoreRefusal(
                f"the archive has {str(name)!r}, which is no file of a journal: name another"
            )
        is_linked = place.is_symlink() or not place.parent.resolve().is_relative_to(root)
        if is_linked or (place.exists() and not _is_same(files / name, place)):
            raise StoreRefusal(f"{place} is there already: restore into an empty folder")
    secret, key = unpacked / SECRET, secret_key_path(store)
    if settings.database_path and key.exists() and not (secret.exists() and _is_same(secret, key)):
        raise StoreRefusal(f"{key} is the key of another store: move it away")
    with ExitStack() as stack:
        ready = unpacked / "ready.db"
        if settings.database_path:
            taken = Arguments(
                file=unpacked / ROWS[0],
                from_replica=False,
                at=None,
                key=secret if secret.exists() else None,
            )
            restore_store(ready, taken, replace(settings, database_url=f"sqlite:///{ready}"))
            stack.enter_context(lock_store(store))  # makes its folder
        undo = stack.enter_context(ExitStack())
        for name in names:
            place, source = root / name, files / name
            if source.is_dir() and not place.exists():
                place.mkdir(0o700 if place == store.parent else 0o777)
                undo.callback(_remove_empty, place)
            elif not place.exists():
                source.rename(place)
                undo.callback(place.unlink, missing_ok=True)
        os.sync()
        if settings.database_path is None:
            from edge_api.backup.archive import drop_rows, restore_rows  # noqa: PLC0415

            restore_rows(settings.database_url, unpacked / ROWS[1])
            undo.callback(drop_rows, settings.database_url)
            asyncio.run(_settle(settings))
        else:
            if secret_key_path(ready).exists():
                secret_key_path(ready).replace(key)
            copying.replace(store, ready, copying.replaced_path(store, system_clock()))
        undo.pop_all()
    return sum((root / name).is_file() for name in names)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # somebody has put a file there meanwhile
        folder.rmdir()


def _is_same(one: Path, other: Path) -> bool:
    return (
        other.is_dir()
        if one.is_dir()
        else other.is_file() and file_sha256(one) == file_sha256(other)
    )


def _require_no_store(settings: Settings) -> None:
    fix = "--all is for a place without one"
    if (path := settings.database_path) is not None:
        if path.exists() and path.stat().st_size:
            raise StoreRefusal(
                f"there is a store at {path}: {fix}: leave it out, or restore the rows alone with "
                f"{EDGE} restore FILE --force"
            )
        return

    async def look() -> None:
        async with command_store(settings):
            raise StoreRefusal(
                f"there is a store in the database of DATABASE_URL: {fix}: name another"
            )

    with suppress(MissingStore):
        asyncio.run(look())


async def _settle(settings: Settings) -> None:
    async with command_store(settings, migrates=True) as store:
        await settle_newsletter(store, system_clock, is_carried=False)
