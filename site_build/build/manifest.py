"""The folder that a build writes into, and its manifest: the files, and digests of their sources.

The folder starts with the files of the build before. A file whose content is the same stays; any
other is replaced by a new one, and never written to. This module knows paths and bytes, but no
templates.
"""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import brotli
import deflate
import orjson

from site_build.errors import BuildError

FORMAT = 5
MANIFEST_FILE = "manifest.sqlite"

_SUM_SIZE = 16
"""Bytes of a row's digest."""
_CREATE = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS head (format INTEGER, sum BLOB, index_stamp BLOB, lines BLOB);
CREATE TABLE IF NOT EXISTS entry (path TEXT PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
"""

COMPRESSION_SUFFIXES = ("", ".gz", ".br")
"""Suffixes of a file, which has none, and of its compressed forms."""


class OutputStamp(NamedTuple):
    """Size and modification time of a file as it was written."""

    suffix: str
    size: int
    """Bytes."""
    mtime: int
    """Nanoseconds."""

    def fits(self, path: str) -> bool:
        """Return whether the file at `path` plus the suffix is still the one that was written."""
        try:
            found = os.stat(f"{path}{self.suffix}")  # noqa: PTH116 - a Path costs more than the call
        except OSError:
            return False
        return found.st_size == self.size and found.st_mtime_ns == self.mtime


class Entry(NamedTuple):
    """One file of the site with its compressed forms."""

    path: str
    """Relative to the site's folder, with `/`."""
    key: str
    """Digest of all sources of the file; empty if it is made again at every build."""
    digest: str
    """SHA-256 of its bytes, hexadecimal."""
    sizes: Sequence[int]
    """Bytes of the file and of its compressed forms, in the order of COMPRESSION_SUFFIXES."""
    mtimes: Sequence[int]
    """Nanoseconds, in the same order; 0 for a form that is not there."""
    names: str = ""
    """Names that a template looked up, one a line; the key covers their values."""
    texts: str = ""
    """Paths of the documents whose text a template read, one a line."""
    retained: bool = False
    """Kept from an earlier build for pages that are still open in a browser."""

    def list_stamps(self) -> Iterator[OutputStamp]:
        """Yield the stamp of each form that is there."""
        for suffix, size, mtime in zip(COMPRESSION_SUFFIXES, self.sizes, self.mtimes, strict=True):
            if mtime:
                yield OutputStamp(suffix, size, mtime)

    def list_paths(self) -> Iterator[str]:
        """Yield the path of each form."""
        return (f"{self.path}{stamp.suffix}" for stamp in self.list_stamps())


class Line(NamedTuple):
    """One post's line in the posts index."""

    slug: str
    key: str
    """Digest of all sources of the line."""
    digest: str
    """SHA-256 of the line, hexadecimal."""
    offset: int
    """Bytes from the start of the file."""
    length: int
    """Bytes, without the line end."""
    source: str | bytes = ""
    """Path of the file that has the line, or the line itself; empty: it is in the posts index."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that one build wrote."""

    entries: dict[str, Entry]
    """Entries by path."""
    lines: dict[str, Line]
    """Lines by slug."""
    index_stamp: OutputStamp | None
    """OutputStamp of the posts index, if there is one."""


EMPTY = Manifest({}, {}, None)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in `folder`, or an empty one when there is none that can be read."""
    stamp, written, rows = _read(folder)
    if not written:
        return EMPTY
    lines = (Line(*row) for row in orjson.loads(written))
    index = OutputStamp(*orjson.loads(stamp)) if stamp else None
    return Manifest(parse_rows(rows), {each.slug: each for each in lines}, index)


def identify_manifest(folder: Path) -> tuple[int, ...]:
    """Return values that differ for any two manifests in `folder`; empty if there is none."""
    try:
        found = (folder / MANIFEST_FILE).stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_rows(folder: Path) -> frozenset[bytes]:
    """Return the serialized entries of the manifest in `folder`; empty without a manifest.

    Two builds are compared by these: parsing tens of thousands would take many times as long.
    """
    return frozenset(_read(folder)[2])


def _read(folder: Path) -> tuple[bytes, bytes, list[bytes]]:
    """Return the stamp of the posts index and the lines, both as JSON, and the rows of a manifest.

    All are empty if the manifest is missing or damaged; the stamp is also empty without an index.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        return b"", b"", []
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
        ) as opened:
            query = "SELECT format, sum, index_stamp, lines FROM head"
            version, total, stamp, lines = opened.execute(query).fetchone()
            rows = [row for (row,) in opened.execute("SELECT row FROM entry")]
        found = _add_digests(bytes(_SUM_SIZE), [*rows, stamp, lines])
    except (sqlite3.Error, TypeError):
        return b"", b"", []
    if (version, total) != (FORMAT, found):
        return b"", b"", []
    return stamp, lines, rows


def _add_digests(so_far: bytes, rows: Iterable[bytes]) -> bytes:
    """Return a sum with the digests of rows added, or removed again, by XOR."""
    total = int.from_bytes(so_far)
    for row in rows:
        total ^= int.from_bytes(hashlib.blake2b(row, digest_size=_SUM_SIZE).digest())
    return total.to_bytes(_SUM_SIZE)


def parse_rows(rows: Iterable[bytes]) -> dict[str, Entry]:
    """Return the entries that `read_rows` gave, by path."""
    entries = (Entry(*row) for row in orjson.loads(b"[%b]" % b",".join(rows)))
    return {each.path: each for each in entries}


def write_manifest(
    folder: Path, manifest: Manifest, before: Manifest = EMPTY, before_folder: Path | None = None
) -> None:
    """Write the manifest; with `before_folder`, copy that one and change the rows that differ."""
    partial = folder / f".{MANIFEST_FILE}"
    partial.unlink(missing_ok=True)
    known = before.entries if before_folder else {}
    if known and before_folder:
        shutil.copyfile(before_folder / MANIFEST_FILE, partial)
    # The file is renamed when it is complete, so SQLite needs no journal to undo anything.
    with closing(sqlite3.connect(partial)) as opened, opened:
        opened.executescript(_CREATE)
        query = "SELECT sum, index_stamp, lines FROM head"
        total, *blobs = opened.execute(query).fetchone() or (bytes(_SUM_SIZE),)
        entries = manifest.entries
        # An unchanged file keeps the very entry, so no entry need be compared by its values.
        stale = [path for path, each in known.items() if entries.get(path) is not each]
        fresh = [each for path, each in entries.items() if known.get(path) is not each]
        query = "DELETE FROM entry WHERE path = ? RETURNING row"
        old = [row for path in stale for (row,) in opened.execute(query, (path,)).fetchall()]
        new = [(each.path, orjson.dumps(tuple(each))) for each in fresh]
        opened.executemany("INSERT INTO entry VALUES (?, ?)", new)
        # All lines are one blob: a change of one moves the offsets of those after it.
        index = orjson.dumps(tuple(manifest.index_stamp)) if manifest.index_stamp else b""
        lines = orjson.dumps([tuple(each) for each in manifest.lines.values()])
        total = _add_digests(total, [*old, *(row for _, row in new), *blobs, index, lines])
        opened.execute("DELETE FROM head")
        opened.execute("INSERT INTO head VALUES (?, ?, ?, ?)", (FORMAT, total, index, lines))
    partial.replace(folder / MANIFEST_FILE)


def list_retained(before: Manifest, fresh: Iterable[str], folder: str) -> list[Entry]:
    """Return old files of `folder` to keep for open pages, until its files change once more."""
    new = set(fresh)
    old = {path: entry for path, entry in before.entries.items() if path.startswith(folder)}
    unchanged = {path for path, entry in old.items() if not entry.retained} == new
    return [
        entry
        for path, entry in sorted(old.items())
        if path not in new and (unchanged or not entry.retained)
    ]


_MIN_COMPRESSED = 500
"""Bytes of the smallest file whose compression saves a packet."""
_MAX_BEST_COMPRESSED = 100_000
"""Bytes above which the best compression takes longer than a tenth of a second."""


class OutputFolder:
    """The site's folder of one build, which starts with the files of the build before."""

    def __init__(self, root: Path, before: Manifest, *, is_checked: bool = False) -> None:
        """Use the folder `root`; `is_checked` says that its files are known to be unchanged."""
        self._is_checked = is_checked
        self._root = os.fspath(root)
        self._before = before
        self._folders: set[str] = set()

    def find_former(self, path: str) -> Entry | None:
        """Return the entry of `path` in the build before."""
        return self._before.entries.get(path)

    def keep(self, entry: Entry) -> bool:
        """Return whether a file of the build before is still as it was written, and so can stay."""
        full = f"{self._root}/{entry.path}"
        return self._is_checked or all(stamp.fits(full) for stamp in entry.list_stamps())

    def write(
        self, path: str, data: bytes, key: str = "", names: str = "", texts: str = ""
    ) -> Entry:
        """Write `data` and its compressed forms to `path`; return its entry, which has the rest."""
        digest = hashlib.sha256(data).hexdigest()
        before = self.find_former(path)
        if before and before.digest == digest and self.keep(before):
            return before._replace(key=key, names=names, texts=texts, retained=False)
        self._make_folder(path.rpartition("/")[0])
        forms = _compress(path, data)
        found = {suffix: self._write(path, suffix, form) for suffix, form in forms.items()}
        sizes = [found[suffix].size if suffix in found else 0 for suffix in COMPRESSION_SUFFIXES]
        mtimes = [found[suffix].mtime if suffix in found else 0 for suffix in COMPRESSION_SUFFIXES]
        return Entry(path, key, digest, sizes, mtimes, names, texts)

    def remove_all_but(self, entries: dict[str, Entry]) -> None:
        """Remove files that the build before wrote and this one did not; leave all others alone."""
        before = self._before.entries
        # An unchanged file keeps the very entry.
        old = [entry for path, entry in before.items() if entry is not entries.get(path)]
        new = [entry for path, entry in entries.items() if entry is not before.get(path)]
        for path in sorted(_list_paths(old) - _list_paths(new)):
            remove_file(Path(self._root), path)

    def _write(self, path: str, suffix: str, data: bytes) -> OutputStamp:
        try:
            return _write(f"{self._root}/{path}", suffix, data)
        except IsADirectoryError as error:
            self._clear_path(f"{path}{suffix}", error)
        return _write(f"{self._root}/{path}", suffix, data)

    def _make_folder(self, folder: str) -> None:
        if folder in self._folders:
            return
        try:
            os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103  called for each file
        except (FileExistsError, NotADirectoryError) as error:
            for path in [*map(str, reversed(Path(folder).parents[:-1])), folder]:
                if os.path.isfile(f"{self._root}/{path}"):  # noqa: PTH113
                    self._clear_path(path, error)
            os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103
        self._folders.add(folder)

    def _clear_path(self, path: str, error: OSError) -> None:
        """Remove a file of the build before where a folder is needed, or a folder where a file is.

        Raises BuildError if that build did not write all of it.
        """
        full = Path(self._root, path)
        found = [each for each in full.rglob("*") if not each.is_dir()] if full.is_dir() else [full]
        names = {each.relative_to(self._root).as_posix() for each in found}
        if not names <= _list_paths(self._before.entries.values()):
            found_kind, needed = ("folder", "file") if full.is_dir() else ("file", "folder")
            raise BuildError(
                f"{full} is a {found_kind} where the site needs a {needed}; move it"
            ) from error
        for name in names:
            remove_file(Path(self._root), name)


def remove_file(root: Path, path: str) -> None:
    """Remove a file below `root`, if it is there, and each folder that is empty then."""
    full = root / path
    if full.is_file():
        full.unlink()
    with suppress(OSError):  # The first folder that is not empty ends the loop.
        for folder in full.parents[: path.count("/")]:
            folder.rmdir()


def _list_paths(entries: Iterable[Entry]) -> set[str]:
    return {path for entry in entries for path in entry.list_paths()}


def _compress(path: str, data: bytes) -> dict[str, bytes]:
    """Return the file and the compressed forms that are smaller than it, by their suffixes."""
    forms = {"": data}
    kind = path.rpartition(".")[2]
    if (
        kind in {"css", "html", "js", "json", "md", "svg", "txt", "xml"}
        and len(data) > _MIN_COMPRESSED
    ):
        # Quality 11 takes sixty times as long as 5 and saves a sixth. Every page waits for style
        # sheets and scripts: a few files, made anew when the theme changes.
        quality = 10 if kind in {"css", "js"} and len(data) <= _MAX_BEST_COMPRESSED else 5
        forms[".gz"] = bytes(deflate.gzip_compress(data, 6))
        forms[".br"] = brotli.compress(data, mode=brotli.MODE_TEXT, quality=quality)
    return {suffix: form for suffix, form in forms.items() if not suffix or len(form) < len(data)}


def _write(path: str, suffix: str, data: bytes) -> OutputStamp:
    """Write a new file and rename it into place, so that a published one is never written to."""
    target = f"{path}{suffix}"
    partial = f"{target}.part"
    with open(partial, "wb") as file:  # noqa: PTH123 - a Path costs as much again
        file.write(data)
        file.flush()
        written = os.fstat(file.fileno())
    os.replace(partial, target)  # noqa: PTH105 - a Path costs as much again
    return OutputStamp(suffix, written.st_size, written.st_mtime_ns)
