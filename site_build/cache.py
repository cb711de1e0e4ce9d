"""Results kept on disk by the digest of all their inputs.

Without the cache, a build is slower and its result the same. Nothing in it is trusted: every value
has a checksum, and a file that is damaged or of another version is made anew. This module does not
know what the values mean.
"""

import hashlib
import os
import pickle
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar, cast

_Value = TypeVar("_Value")

IMAGES = "plate"
"""The stage of pictures; each stage is a namespace of keys."""

_VERSION = 1
_CHECKSUM_SIZE = 16


def make_key(*parts: object) -> bytes:
    """Return the digest of `parts`; equal parts give equal keys on every run."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).digest()


def locate_cache(output: Path) -> Path:
    """Return the cache of the builds in the folder `output`."""
    return output / ".cache" / "cache.sqlite"


class Cache:
    """A store of pickled values by stage and key; processes forked from its owner may use it.

    It is open inside `with`, any number of times; outside, it finds and keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._owner = os.getpid()
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        self._connection = self._open()
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        """Open the file, or a new one if it cannot be used, or a cache in memory if that fails."""
        if self._path is None:
            return _prepare(sqlite3.connect(":memory:"))
        for removed in ((), ("", "-wal", "-shm")):
            with suppress(OSError, sqlite3.Error):
                for suffix in removed:
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # Another build may be writing to the same cache.
                return _prepare(sqlite3.connect(self._path, timeout=30.0))
        return _prepare(sqlite3.connect(":memory:"))

    def _opened(self) -> sqlite3.Connection:
        """Return a connection of this process: SQLite's do not survive a fork.

        Raises sqlite3.ProgrammingError outside `with`.
        """
        if self._connection is None:
            raise sqlite3.ProgrammingError("the cache is closed")
        if os.getpid() != self._owner:
            self._owner, self._connection = os.getpid(), self._open()
        return self._connection

    def get(self, stage: str, key: bytes) -> object | None:
        """Return the value kept for `key`, or None."""
        query = "SELECT value FROM entry WHERE stage = ? AND key = ?"
        with suppress(sqlite3.Error):
            if row := self._opened().execute(query, (stage, key)).fetchone():
                return _unpack(row[0])
        return None

    def fetch(self, stage: str, key: bytes, make: Callable[[], _Value]) -> _Value:
        """Return the value kept for `key`, else what `make` returns, and keep that."""
        kept = self.get(stage, key)
        if kept is None:
            kept = make()
            self.put(stage, [(key, kept)])
        return cast("_Value", kept)

    def recall(
        self, stage: str, keys: Mapping[str, bytes], kind: type[_Value]
    ) -> dict[str, _Value]:
        """Return by name the values that are kept for the keys and are of the type `kind`."""
        wanted = set(keys.values())
        try:
            rows = self._opened().execute("SELECT key, value FROM entry WHERE stage = ?", (stage,))
            found = {key: _unpack(value) for key, value in rows if key in wanted}
        except sqlite3.Error:
            return {}
        kept = {name: found.get(key) for name, key in keys.items()}
        return {name: value for name, value in kept.items() if isinstance(value, kind)}

    def put(self, stage: str, values: Iterable[tuple[bytes, object]]) -> None:
        """Keep each value under its key; does nothing if the cache cannot be written."""
        payloads = ((key, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) for key, value in values)
        rows = ((stage, key, _checksum(payload) + payload) for key, payload in payloads)
        with suppress(sqlite3.Error), self._opened() as connection:
            connection.executemany("REPLACE INTO entry VALUES (?, ?, ?)", rows)

    def keep_only(self, stage: str, keys: Iterable[bytes], slack: int = 0) -> None:
        """Delete values of other keys, so that the file does not grow for ever.

        If there are at most `slack` values, this deletes none: finding old ones takes longer than
        the build of a small edit.
        """
        query = "SELECT count(*) FROM entry WHERE stage = ?"
        with suppress(sqlite3.Error), self._opened() as connection:
            if connection.execute(query, (stage,)).fetchone()[0] <= slack:
                return
            rows = connection.execute("SELECT key FROM entry WHERE stage = ?", (stage,))
            gone = {key for (key,) in rows}.difference(keys)
            connection.executemany(
                "DELETE FROM entry WHERE stage = ? AND key = ?", ((stage, key) for key in gone)
            )


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Create the table; raises sqlite3.DatabaseError for a file of another version or program.

    Nothing is synced: a value that a power cut damages is found by its checksum and made again.
    """
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if found != _VERSION and tables:
        connection.close()
        raise sqlite3.DatabaseError("the cache is of another version")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS entry (stage TEXT NOT NULL, key BLOB NOT NULL, "
        "value BLOB NOT NULL, PRIMARY KEY (stage, key))"
    )
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    return connection


def _unpack(packed: object) -> object | None:
    """Return the value, or None if it is damaged."""
    if not isinstance(packed, bytes):
        return None
    checksum, payload = packed[:_CHECKSUM_SIZE], packed[_CHECKSUM_SIZE:]
    if checksum != _checksum(payload):
        return None
    # The checksum guards against damage, not malice: the cache is as safe as the code beside it.
    value: object = pickle.loads(payload)  # noqa: S301
    return value


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECKSUM_SIZE).digest()
