"""Checks and migration of a SQLite store at the start."""

import os
import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from threading import Timer
from typing import Final

import psutil

from edge_api.db.errors import MissingStore, OlderSchema, StoreRefusal, refuse_newer
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.sqlite.connection import connect
from edge_api.db.sqlite.errors import primary_code
from edge_api.db.sqlite.processes import litestream_state_path
from edge_api.db.tables import EMAIL_UNSUBSCRIBE_TOKENS
from edge_api.schema.environment import EDGE

MIN_VERSION: Final = (3, 37, 0)  # the first SQLite with STRICT tables
APPLICATION_ID: Final = 0x666F7265
"""`fore`, in the file's header: files of other programs are refused."""
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "davfs", "gfs2", "glusterfs", "lustre"}
    | {"ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs", "webdav"}
    | {"fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
)

CHECK_SECONDS: Final = 2.0  # the time limit of the check for damage

RESTORE_FIX: Final = (
    f"restore it with {EDGE} restore FILE --force, or where LITESTREAM_REPLICA is set "
    "with restore --from-replica --force"
)
"""The fix for a store that is damaged."""
NOT_A_STORE: Final = (
    f"is no store of Fore-edge: set DATABASE_URL to another file; if it was one, {RESTORE_FIX}"
)
BACKUPS_FOLDER: Final = "backups"  # the folder of the backups, beside the store
_WAL_INDEX: Final = struct.Struct("=16xI76xI")
"""The head of a log's index (`-shm`): mxFrame, nBackfill (SQLite's "WAL-mode File Format", 2.1)."""

_REASONS: Mapping[int, str] = {
    sqlite3.SQLITE_BUSY: "is locked by another process: end that, or wait until it is done",
    sqlite3.SQLITE_READONLY: "cannot be written: let this user write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: let this user write the file and its folder",
    sqlite3.SQLITE_FULL: "lies on a full disk: make room",
    sqlite3.SQLITE_IOERR: "lies on a disk that is full or fails: make room, or replace it",
    sqlite3.SQLITE_CORRUPT: f"is damaged: {RESTORE_FIX}",
    sqlite3.SQLITE_NOTADB: (
        f"is no SQLite database: set DATABASE_URL to another file; if it was a store, {RESTORE_FIX}"
    ),
}


def create_file(path: Path) -> None:
    """Create the missing file of the store, on a local file system. Raises StoreRefusal."""
    with closing(sqlite3.connect(":memory:")) as memory:
        check_library(sqlite3.sqlite_version_info, memory)
    require_wal(path.resolve())
    _refuse_lost_store(path)
    _make_file(path)
    check_file_system(path.parent, file_system_type(path.parent))


def migrate(path: Path, now: str, *, migrates: bool = True) -> None:
    """Check the file and migrate it to the latest schema.

    Without `migrates` only an empty file is migrated, and an older schema is refused. Raises
    StoreRefusal, sqlite3.Error.
    """
    with closing(connect(path, writes=True)) as connection:
        _check(connection, path)
        if not migrates and 0 < (version := schema_version(connection)) < len(MIGRATIONS):
            raise OlderSchema(version, str(path), "which makes a backup first")
        _apply_migrations(connection, path, now)


def store_refusal(error: sqlite3.Error, path: Path) -> StoreRefusal:
    """Return the refusal for an engine's error at the start."""
    code = primary_code(error)
    # Our statements are valid, so one that fails on a store's file shows that it is damaged.
    if code == sqlite3.SQLITE_ERROR or (code == sqlite3.SQLITE_NOTADB and _was_store(path)):
        return StoreRefusal(f"{path} is damaged ({error}): {RESTORE_FIX}")
    return StoreRefusal(f"{path} {_REASONS.get(code, f'cannot be used: {error}')}")


def _was_store(path: Path) -> bool:
    """Return whether a file that SQLite cannot read was a store: by schema or replication."""
    table = f"CREATE TABLE {EMAIL_UNSUBSCRIBE_TOKENS.name}".encode()
    with suppress(OSError), path.open("rb") as file:
        # The schema of a store is in the first bytes of its file.
        return table in file.read(16 * 1024 * 1024) or litestream_state_path(path).exists()
    return False


def require_file(path: Path) -> None:
    """Raise StoreRefusal where there is no store: it was never made, or it was lost."""
    if not path.is_file():
        require_wal(path.resolve())
        _refuse_lost_store(path)
        raise MissingStore(f"at {path}")


def _refuse_lost_store(path: Path) -> None:
    """Raise StoreRefusal for a missing store whose key, backups or replica are still there."""
    store, ends = path.resolve(), ("-backup.json", "-replica.json")
    left = [litestream_state_path(store), *(store.with_name(f"{store.name}{end}") for end in ends)]
    traces = [each.name for each in (path.with_suffix(".key"), *left) if each.exists()]
    # The backups beside several stores may be of another one.
    if not any(each.name != path.name for each in path.parent.glob("*.db")):
        traces += [BACKUPS_FOLDER for _ in path.parent.glob(f"{BACKUPS_FOLDER}/edge-*.db")][:1]
    # Check the traces first: a process that makes a store fills its file before it makes those.
    if traces and not (path.exists() and path.stat().st_size):
        raise StoreRefusal(
            f"{path} is {'empty' if path.exists() else 'missing'}, but a store was there "
            f"({', '.join(traces)} beside it): put it back, or {RESTORE_FIX}; to begin anew, move "
            "them away"
        )


def require_wal(path: Path) -> None:
    """Raise StoreRefusal where the store's file or its log was removed without the other.

    SQLite would lose the commits of the log. The `-shm` file is opened only without a log: closing
    it releases the locks that SQLite holds on it (POSIX, fcntl).
    """
    log, index = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))
    with suppress(OSError):  # refused when the file is opened
        # Check the log first: a process that makes a store fills its file before it makes a log.
        if log.exists() and log.stat().st_size and not (path.exists() and path.stat().st_size):
            state = "empty" if path.exists() else "missing"
            raise StoreRefusal(
                f"{path} is {state}, but its log {log.name} is there: put the file back, "
                f"or {RESTORE_FIX}"
            )
        # Check twice: another process may close the store, and open it again, in between.
        if not any(log.exists() or not _has_unsaved_commits(index) for _ in range(2)):
            raise StoreRefusal(
                f"the log of {path} is missing ({log.name}), and commits with it: put it back, or "
                f"{RESTORE_FIX}; to go on without them, remove {index.name}"
            )


def _has_unsaved_commits(index: Path) -> bool:
    head = b""
    if index.exists():
        with index.open("rb") as file:
            head = file.read(_WAL_INDEX.size)
    committed, saved = _WAL_INDEX.unpack(head) if len(head) == _WAL_INDEX.size else (0, 0)
    return bool(committed > saved)


def check_library(version: tuple[int, ...], empty: sqlite3.Connection) -> None:
    """Raise StoreRefusal for a SQLite that is too old or built without what is needed.

    `empty` is a database in which the modules are tried.
    """
    if version < MIN_VERSION:
        found, needed = (".".join(map(str, parts)) for parts in (version, MIN_VERSION[:2]))
        raise StoreRefusal(f"SQLite {found} is too old: install {needed} or later")
    missing = []
    # Full-text search, and lists as one parameter, each with a statement that needs it: versions
    # after 3.46 list a module only once it was used.
    for name, statement in (
        ("fts5", "CREATE VIRTUAL TABLE text USING fts5(word)"),
        ("json_each", "SELECT value FROM json_each('[]')"),
    ):
        try:
            empty.execute(statement)
        except sqlite3.DatabaseError:
            missing.append(name)
    if missing:
        raise StoreRefusal(
            f"this SQLite was built without {', '.join(missing)}: install a complete one"
        )


def check_file_system(folder: Path, kind: str) -> None:
    """Raise StoreRefusal for a network file system: the log's index is shared by memory mapping."""
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreRefusal(
            f"{folder} lies on a network file system ({kind}), where SQLite loses rows: "
            "set DATABASE_URL to a file on a local disk"
        )


def file_system_type(folder: Path) -> str:
    """Return the type of the file system on which a folder lies, as the kernel calls it."""
    real = folder.resolve()
    mounts = [
        mount for mount in psutil.disk_partitions(all=True) if real.is_relative_to(mount.mountpoint)
    ]
    # The innermost mount counts, and of several on one folder the last.
    return max(reversed(mounts), key=lambda mount: len(mount.mountpoint)).fstype if mounts else ""


def _make_file(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            sync(path.parent)
        is_file = path.is_file()
    except OSError as error:
        raise StoreRefusal(
            f"{path} cannot be made ({error.strerror}): set DATABASE_URL to another place"
        ) from None
    if not is_file:
        raise StoreRefusal(f"{path} is no file: set DATABASE_URL to one")


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if owner != APPLICATION_ID and EMAIL_UNSUBSCRIBE_TOKENS.name in names:
        raise StoreRefusal(f"{path} is damaged (application_id is {owner}): {RESTORE_FIX}")
    if owner != APPLICATION_ID and (owner or names):
        raise StoreRefusal(f"{path} {NOT_A_STORE}")
    damage = _find_damage(connection)
    if names and schema_version(connection) < 1:
        damage = damage or "user_version is not that of a store"
    if damage:
        raise StoreRefusal(f"{path} is damaged ({damage}): {RESTORE_FIX}")
    refuse_newer(schema_version(connection), str(path))


def _find_damage(connection: sqlite3.Connection) -> str:
    """Return the first damage found in time, if any; of a large file only a part is checked."""
    timer = Timer(CHECK_SECONDS, connection.interrupt)
    timer.start()
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return ""
    finally:
        timer.cancel()
        timer.join()
    return "" if verdict == "ok" else str(verdict).splitlines()[-1]


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of migrations that the store has."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _apply_migrations(connection: sqlite3.Connection, path: Path, now: str) -> None:
    """Apply all missing migrations or none. Raises StoreRefusal, sqlite3.Error.

    The header is written in any case, if only to be rolled back: SQLite opens a read-only file
    without an error, which only the first write shows.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = schema_version(connection)
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            try:
                for statement in step.sqlite:
                    connection.execute(statement, {"now": now})
            except sqlite3.Error as error:
                if primary_code(error) not in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):
                    raise  # an error of the disk or the file, not of the step
                raise StoreRefusal(
                    f"{path} is unchanged: step {number} of its schema failed ({error}); "
                    "run the version of before, and report this"
                ) from None
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        if version < len(MIGRATIONS):
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def enable_wal(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging. Raises StoreRefusal and sqlite3.Error."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreRefusal("the disk of the store does not support write-ahead logging")
    schema_version(connection)  # the first read makes the log
