"""Copy a store while others write to it, verify the copy, and replace a store by one."""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from edge_api.db.errors import StoreRefusal, refuse_newer
from edge_api.db.sqlite.connection import BUSY_SECONDS, connect
from edge_api.db.sqlite.errors import primary_code
from edge_api.db.sqlite.opening import (
    APPLICATION_ID,
    NOT_A_STORE,
    RESTORE_FIX,
    require_file,
    require_wal,
    schema_version,
    store_refusal,
    sync,
)
from edge_api.db.sqlite.processes import litestream_state_path

LITESTREAM_TABLES: Final = ("_litestream_seq", "_litestream_lock")
"""Tables that Litestream adds to a store that it replicates; a copy must not have them."""

_FIX: Final = "name another backup"
_REASONS: Mapping[int, str] = {
    sqlite3.SQLITE_CORRUPT: f"is damaged: {_FIX}",
    sqlite3.SQLITE_NOTADB: f"is no SQLite database: {_FIX}",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: let this user read the file and its folder",
    sqlite3.SQLITE_READONLY: "cannot be opened: let this user write its folder",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full, make room",
    sqlite3.SQLITE_IOERR: "cannot be read or written: its disk is full or fails",
    sqlite3.SQLITE_BUSY: "is locked by another process: wait until that is done",
}


@dataclass(frozen=True, slots=True)
class CopyContents:
    """The contents of a verified copy."""

    schema_version: int
    rows: Mapping[str, int]
    """The number of rows of each table."""

    @property
    def total(self) -> int:
        """The number of all rows."""
        return sum(self.rows.values())


def copy_store(source: Path, target: Path) -> None:
    """Copy the store at `source`, in use or not, into the new file `target`, durably.

    The copy is of one instant, and has no log. Raises StoreRefusal, and may leave an incomplete
    `target` then.
    """
    require_file(source)
    require_wal(source.resolve())
    with _translate_errors(source, is_store=True), closing(connect(source, writes=False)) as live:
        _copy(live, target)


def copy_backup(source: Path, target: Path) -> None:
    """Copy a backup, which may be read-only, with the commits in its log. Raises StoreRefusal."""
    with _translate_errors(source), closing(_open_copy(source)) as copy:
        _copy(copy, target)


def verify_copy(path: Path, store: Path | None = None) -> CopyContents:
    """Verify a copy of `store` and return its contents. Raises StoreRefusal that names `store`."""
    name = store or path
    with _translate_errors(name, is_store=store is not None), closing(_open_copy(path)) as copy:
        (owner,) = copy.execute("PRAGMA application_id").fetchone()
        if owner != APPLICATION_ID:
            raise StoreRefusal(
                f"{name} {NOT_A_STORE if store else f'is no store of Fore-edge: {_FIX}'}"
            )
        refuse_newer(schema_version(copy), str(name))
        (verdict,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            damage = str(verdict).splitlines()[-1]
            raise StoreRefusal(f"{name} is damaged ({damage}): {RESTORE_FIX if store else _FIX}")
        return CopyContents(schema_version(copy), MappingProxyType(_count_rows(copy)))


def record_keys(live: Path, keys: Path) -> None:
    """Store the keys of all rows of a live store in the file `keys`. Raises StoreRefusal."""
    with _translate_errors(live), closing(_open_attached(keys, live=live)) as connection:
        connection.execute("BEGIN")
        for table, columns in _keys_of(connection):
            connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM live.{table}")  # noqa: S608
        connection.execute("COMMIT")


def count_lost(live: Path, keys: Path, copy: Path) -> Mapping[str, int]:
    """Return the number of lost rows by table, only for tables of the copy that lack some.

    A row is lost if `record_keys` noted it before the copy, the store still has it, and the copy
    does not; numbers of rows may differ without a fault. A row that was deleted and stored again
    under the same key meanwhile is counted wrongly. Raises StoreRefusal.
    """
    lost = {}
    with _translate_errors(copy), closing(_open_attached(keys, live=live, copy=copy)) as connection:
        for table, columns in _keys_of(connection):
            (count,) = connection.execute(
                f"SELECT count(*) FROM main.{table} "  # noqa: S608  names from the file itself
                f"WHERE ({columns}) IN (SELECT {columns} FROM live.{table}) "
                f"AND ({columns}) NOT IN (SELECT {columns} FROM copy.{table})"
            ).fetchone()
            if count:
                lost[table.strip('"')] = int(count)
    return lost


def _open_attached(keys: Path, **others: Path) -> sqlite3.Connection:
    """Open the file of keys, and attach others read-only, so that their logs stay as they are."""
    connection = sqlite3.connect(
        keys.absolute().as_uri(), uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    connection.execute("PRAGMA synchronous = OFF")
    for name, path in others.items():
        connection.execute(f"ATTACH ? AS {name}", (f"{path.absolute().as_uri()}?mode=ro",))
    return connection


def _keys_of(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the tables of the attached store `live`, each with its key columns, all quoted."""
    found = connection.execute(
        """SELECT t.name, group_concat('"' || c.name || '"')
        FROM pragma_table_list AS t, pragma_table_info(t.name, 'live') AS c
        WHERE t.schema = 'live' AND t.type = 'table' AND c.pk GROUP BY t.name"""
    )
    return [(f'"{name}"', keys) for name, keys in found if name not in LITESTREAM_TABLES]


def _copy(live: sqlite3.Connection, target: Path) -> None:
    with _translate_errors(target):
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    # Hold a snapshot: otherwise each commit of another process would restart the copy.
    live.execute("BEGIN")
    live.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    with _translate_errors(target), closing(sqlite3.connect(target, isolation_level=None)) as copy:
        # Copy in steps, between which others can write and the copy can be interrupted.
        live.backup(copy, pages=256, sleep=0)
        copy.execute("PRAGMA journal_mode = DELETE")
        for table in LITESTREAM_TABLES:
            copy.execute(f"DROP TABLE IF EXISTS {table}")
    with _translate_errors(target):
        sync(target)


def _open_copy(path: Path) -> sqlite3.Connection:
    """Open a copy without changing it; without a log it may be on a read-only medium."""
    if not path.is_file():
        raise StoreRefusal(f"there is no file {path}")
    log = path.with_name(f"{path.name}-wal")
    mode = "rw" if log.exists() and log.stat().st_size else "ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _count_rows(copy: sqlite3.Connection) -> dict[str, int]:
    # Virtual and shadow tables of a search index are left out: they only repeat other rows.
    found = copy.execute(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        "ORDER BY name"
    )
    quoted = {str(name): str(name).replace('"', '""') for (name,) in found}
    return {
        name: int(copy.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])  # noqa: S608  a name of the file
        for name, table in quoted.items()
    }


@contextmanager
def _translate_errors(path: Path, *, is_store: bool = False) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        reason = None if is_store else _REASONS.get(primary_code(error))
        refusal = store_refusal(error, path) if reason is None else StoreRefusal(f"{path} {reason}")
        raise refusal from None
    except OSError as error:
        raise StoreRefusal(f"{path} cannot be used: {error.strerror}") from None


WAL_SUFFIXES: Final = ("-shm", "-wal")
"""The suffixes of SQLite's files beside a store, in the order in which it removes them."""
REPLACED_INFIX: Final = ".replaced-"
"""The infix between a replaced file's name and the instant of its replacement."""


def replaced_path(store: Path, now: datetime) -> Path:
    """Return the path to which a store or its key is moved when it is replaced at `now`."""
    return store.with_name(f"{store.name}{REPLACED_INFIX}{now:%Y%m%dT%H%M%S.%f}Z")


def require_no_wal(draft: Path) -> None:
    """Raise StoreRefusal for a draft that is invalid or has a log, which a move would lose."""
    log = _with_suffix(draft, "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreRefusal(
            f"{draft} cannot be written whole, since its disk is full, fails or is slow: "
            "make room, and restore again"
        )
    verify_copy(draft)


def replace(store: Path, new: Path, aside: Path) -> None:
    """Replace the store by the file `new`, and move the former one with its log to `aside`.

    If the process is killed meanwhile, the former store is complete at one of the two paths. Raises
    OSError.
    """
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            os.link(_with_suffix(store, suffix), _with_suffix(aside, suffix))
    sync(store.parent)
    for suffix in WAL_SUFFIXES:  # a log beside another file would be applied to it
        _with_suffix(store, suffix).unlink(missing_ok=True)
    sync(store.parent)
    new.replace(store)
    # Litestream's state describes the former log; without it the whole store is replicated.
    shutil.rmtree(litestream_state_path(store), ignore_errors=True)
    sync(store.parent)


def remove_draft(draft: Path) -> None:
    """Remove the draft of a store with SQLite's files beside it."""
    for suffix in ("", *WAL_SUFFIXES):
        _with_suffix(draft, suffix).unlink(missing_ok=True)


def _with_suffix(store: Path, suffix: str) -> Path:
    return store.with_name(f"{store.name}{suffix}")
