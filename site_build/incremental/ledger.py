"""What a build wrote and from what: the memory by which the next one leaves things alone.

It is kept beside the site, never in it, and is only a help: without it, or with a damaged one,
everything is made anew. There are tens of thousands of entries, so they are bare tuples.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

FORMAT = 3
LEDGER_FILE = "ledger.json"

_FAULTS = (OSError, ValueError, TypeError, LookupError)
"""What a ledger raises that is missing, damaged or of another format."""

_HEAD = b'{"format":%d,' % FORMAT
_BEFORE_ROWS, _BETWEEN_ROWS, _AFTER_ROWS = b',"entries":[\n', b",\n", b"\n]}"
"""What stands around the entries, each of them a row of its own."""
_SUM_SIZE = 16
"""Bytes of the rows' digest."""

SUFFIXES = ("", ".gz", ".br")
"""A file and its compressed forms."""


class Stamp(NamedTuple):
    """How one file on disk looked when it was written."""

    suffix: str
    """One of SUFFIXES."""
    size: int
    """Bytes."""
    mtime: int
    """Nanoseconds."""

    def fits(self, path: str) -> bool:
        """Tell whether the file at `path` plus the suffix is still the one that was written."""
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
    """Digest of all that the file was made from; empty: made anew every time."""
    digest: str
    """SHA-256 of its bytes, hexadecimal."""
    sizes: Sequence[int]
    """Bytes of the file and of its compressed forms, in the order of SUFFIXES."""
    mtimes: Sequence[int]
    """Nanoseconds, likewise; 0 stands for a form that is not there."""
    names: str = ""
    """What a template looked up, a name a line; the key covers what they stood for."""
    texts: str = ""
    """Paths of the documents whose text a template read, one a line."""
    carried: bool = False
    """Kept from an earlier build for pages that are still open in a browser."""

    def list_stamps(self) -> Iterator[Stamp]:
        """Yield the stamp of each form that is there."""
        for suffix, size, mtime in zip(SUFFIXES, self.sizes, self.mtimes, strict=True):
            if mtime:
                yield Stamp(suffix, size, mtime)

    def list_paths(self) -> Iterator[str]:
        """Yield the path of each form."""
        return (f"{self.path}{stamp.suffix}" for stamp in self.list_stamps())

    def count_forms(self) -> int:
        """Return how many files there are of this one."""
        return len(self.mtimes) - list(self.mtimes).count(0)


class Line(NamedTuple):
    """One post's line in the posts index."""

    slug: str
    key: str
    """Digest of all that the line was made from."""
    digest: str
    """SHA-256 of the line, hexadecimal."""
    offset: int
    """Bytes from the start of the file."""
    length: int
    """Bytes, without the line end."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that one build wrote."""

    entries: dict[str, Entry]
    """By path."""
    lines: dict[str, Line]
    """By slug."""
    index: Stamp | None


EMPTY = Ledger({}, {}, None)

Look = tuple[Sequence[int], Sequence[int]]
"""The sizes and mtimes of an entry: a file that differs in them is another one."""
_SIZES, _MTIMES = Entry._fields.index("sizes"), Entry._fields.index("mtimes")


def read_ledger(folder: Path) -> Ledger:
    """Return the ledger in `folder`, or an empty one when there is none that can be read."""
    try:
        raw = _read_raw(folder)
        return Ledger(
            {row[0]: Entry(*row) for row in raw["entries"]},
            {row[0]: Line(*row) for row in raw["lines"]},
            Stamp(*raw["index"]),
        )
    except _FAULTS:
        return EMPTY


def read_rows(folder: Path) -> frozenset[bytes]:
    """Return the entries of the ledger in `folder` as they are written, or none.

    Two builds are compared by these: to read tens of thousands takes many times as long.
    """
    rows = _read_checked(folder)
    return frozenset(row for row in rows.split(_BETWEEN_ROWS) if row)


def is_whole(folder: Path) -> bool:
    """Tell whether the ledger in `folder` can be read, and names any file."""
    return bool(_read_checked(folder))


def _read_checked(folder: Path) -> bytes:
    """Return the rows of a ledger, or nothing unless they are as they were written."""
    try:
        whole = (folder / LEDGER_FILE).read_bytes()
    except OSError:
        return b""
    head, _, rest = whole.partition(_BEFORE_ROWS)
    rows = rest.removesuffix(_AFTER_ROWS)
    return rows if head.startswith(_HEAD) and head.endswith(_say_sum(rows)) else b""


def read_looks(rows: Iterable[bytes]) -> dict[str, Look]:
    """Return how the files look of which `read_rows` gave the entries, by path."""
    entries = map(orjson.loads, rows)
    return {row[0]: (row[_SIZES], row[_MTIMES]) for row in entries}


def list_forms(path: str, look: Look) -> Iterator[str]:
    """Yield the path of each form that a file has, by its look."""
    return Entry(path, "", "", *look).list_paths()


def _read_raw(folder: Path) -> dict[str, Any]:
    """Return what `write_ledger` wrote; raises one of _FAULTS where it did not write that."""
    raw: dict[str, Any] = orjson.loads((folder / LEDGER_FILE).read_bytes())
    if raw["format"] != FORMAT:
        raise ValueError
    return raw


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Write the ledger into `folder`, whole or not at all."""
    rows = _BETWEEN_ROWS.join(orjson.dumps(tuple(entry)) for entry in ledger.entries.values())
    rest = {"index": ledger.index, "lines": list(ledger.lines.values())}
    head = _HEAD + orjson.dumps(rest, default=list)[1:-1] + _say_sum(rows)
    partial = folder / f".{LEDGER_FILE}"
    partial.write_bytes(b"".join((head, _BEFORE_ROWS, rows, _AFTER_ROWS)))
    partial.replace(folder / LEDGER_FILE)


def _say_sum(rows: bytes) -> bytes:
    """Return the last member of a head: with the right one, no row needs to be doubted."""
    digest = hashlib.blake2b(rows, digest_size=_SUM_SIZE).hexdigest()
    return b',"sum":"%s"' % digest.encode()


def list_carried(before: Ledger, fresh: Iterable[str], folder: str) -> list[Entry]:
    """Return the files of `folder` that pages of the build before still ask for.

    They are kept until the set of files changes once more.
    """
    new = set(fresh)
    old = {path: entry for path, entry in before.entries.items() if path.startswith(folder)}
    unchanged = {path for path, entry in old.items() if not entry.carried} == new
    return [
        entry
        for path, entry in sorted(old.items())
        if path not in new and (unchanged or not entry.carried)
    ]
