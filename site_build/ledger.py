"""What a build wrote and from what: the memory by which the next one leaves things alone.

It is kept beside the site, never in it, and is only a help: without it, or with a damaged one,
everything is made anew.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

FORMAT = 1
LEDGER_FILE = "ledger.json"


@dataclass(frozen=True, slots=True)
class Stamp:
    """How one file on disk looked when it was written."""

    suffix: str
    """Empty for the file itself, `.gz` and `.br` for its compressed forms."""
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the site with its compressed forms."""

    path: str
    """Relative to the site's folder, with `/`."""
    key: str
    """Digest of all that the file was made from."""
    digest: str
    """SHA-256 of its bytes, hexadecimal."""
    stamps: tuple[Stamp, ...]
    names: tuple[str, ...] = ()
    """What a template looked up, in order of first use; the key covers their values."""
    texts: tuple[str, ...] = ()
    """Documents whose text a template read."""
    carried: bool = False
    """Kept from an earlier build for pages that are still open in a browser."""

    @property
    def size(self) -> int:
        """Bytes of the file with its compressed forms."""
        return sum(stamp.size for stamp in self.stamps)


@dataclass(frozen=True, slots=True)
class Line:
    """One post's line in the posts index."""

    slug: str
    key: str
    digest: str
    offset: int
    """Bytes from the start of the file."""
    length: int
    """Bytes, without the line end."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that one build wrote."""

    entries: dict[str, Entry]
    lines: dict[str, Line]
    index: Stamp | None


EMPTY = Ledger({}, {}, None)


def read_ledger(folder: Path) -> Ledger:
    """Return the ledger in `folder`, or an empty one when there is none that can be read."""
    try:
        raw = orjson.loads((folder / LEDGER_FILE).read_bytes())
        if raw["format"] != FORMAT:
            return EMPTY
        entries = (_read_entry(row) for row in raw["entries"])
        lines = (Line(*row) for row in raw["lines"])
        return Ledger(
            {entry.path: entry for entry in entries},
            {line.slug: line for line in lines},
            Stamp(*raw["index"]) if raw["index"] else None,
        )
    except (OSError, ValueError, TypeError, KeyError):
        return EMPTY


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Write the ledger into `folder`, whole or not at all."""
    rows = {
        "format": FORMAT,
        "index": ledger.index,
        "entries": list(ledger.entries.values()),
        "lines": list(ledger.lines.values()),
    }
    partial = folder / f".{LEDGER_FILE}"
    partial.write_bytes(orjson.dumps(rows, option=orjson.OPT_PASSTHROUGH_DATACLASS, default=_list))
    partial.replace(folder / LEDGER_FILE)


def _list(value: object) -> list[object]:
    """Write a record as a bare array: there are tens of thousands, all with the same fields."""
    if not isinstance(value, Entry | Line | Stamp):
        raise TypeError(f"{type(value)} has no place in a ledger")
    return [getattr(value, name) for name in value.__slots__]


def _read_entry(row: list[object]) -> Entry:
    path, key, digest, stamps, names, texts, carried = row
    if not isinstance(stamps, list) or not isinstance(names, list) or not isinstance(texts, list):
        raise TypeError("a ledger's entry has lists here")
    return Entry(
        str(path),
        str(key),
        str(digest),
        tuple(Stamp(*stamp) for stamp in stamps),
        tuple(names),
        tuple(texts),
        carried is True,
    )


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
