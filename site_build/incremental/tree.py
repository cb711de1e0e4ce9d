"""The folder that a build writes: files with their compressed forms, old ones where they still fit.

It holds what the build before wrote. A file that would come out the same is left; no file that was
published is ever written to. It knows paths and bytes, and neither templates nor Pelican.
"""

import gzip
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import brotli

from site_build.faults import BuildError
from site_build.incremental.ledger import SUFFIXES, Entry, Ledger, Stamp

_COMPRESSED = frozenset({"css", "html", "js", "json", "md", "svg", "txt", "xml"})
_WORTHWHILE = 500
"""Bytes below which compressing saves no packet."""

_GZIP_LEVEL = 6
_BROTLI_QUALITY = 5
"""Quality 11 takes sixty times as long and saves a sixth."""
_BROTLI_BETTER = 10
"""For what every page waits for: a few files, made anew when the theme changes."""
_AWAITED = frozenset({"css", "js"})
_AWAITED_MOST = 100_000
"""Bytes above which that takes longer than a tenth of a second."""

_PARTIAL = ".part"


@dataclass(frozen=True, slots=True)
class Recipe:
    """From what one file was made, as the ledger remembers it."""

    key: str
    names: str = ""
    texts: str = ""


class Tree:
    """The site's folder of one build, which holds what the build before wrote."""

    def __init__(self, root: Path, before: Ledger) -> None:
        self._root = os.fspath(root)
        self._before = before
        self._folders: set[str] = set()

    def recall(self, path: str) -> Entry | None:
        """Return what the build before noted of `path`."""
        return self._before.entries.get(path)

    def keep(self, entry: Entry) -> bool:
        """Take over a file of the build before; False when it is not as it was written."""
        full = f"{self._root}/{entry.path}"
        return all(stamp.fits(full) for stamp in entry.list_stamps())

    def write(self, path: str, data: bytes, recipe: Recipe) -> Entry:
        """Put `data` at `path`, and its compressed forms beside it."""
        digest = hashlib.sha256(data).hexdigest()
        before = self.recall(path)
        if before and before.digest == digest and self.keep(before):
            return before._replace(
                key=recipe.key, names=recipe.names, texts=recipe.texts, carried=False
            )
        self._make_folder(path.rpartition("/")[0])
        forms = _make_forms(path, data)
        stamps = [
            self._write(path, suffix, forms[suffix]) for suffix in SUFFIXES if suffix in forms
        ]
        sizes, mtimes = _tabulate(stamps)
        return Entry(path, recipe.key, digest, sizes, mtimes, recipe.names, recipe.texts)

    def remove_all_but(self, entries: dict[str, Entry]) -> None:
        """Remove what the build before wrote and this one did not.

        Files that no build wrote are left alone.
        """
        before = self._before.entries
        old = [entry for path, entry in before.items() if entry != entries.get(path)]
        new = [entry for path, entry in entries.items() if entry != before.get(path)]
        for path in sorted(_list_paths(old) - _list_paths(new)):
            remove_file(Path(self._root), path)

    def _write(self, path: str, suffix: str, data: bytes) -> Stamp:
        try:
            return _write(f"{self._root}/{path}", suffix, data)
        except IsADirectoryError as error:
            self._make_way(f"{path}{suffix}", error)
        return _write(f"{self._root}/{path}", suffix, data)

    def _make_folder(self, folder: str) -> None:
        if folder in self._folders:
            return
        try:
            os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103  called for each file
        except (FileExistsError, NotADirectoryError) as error:
            for path in [*map(str, reversed(Path(folder).parents[:-1])), folder]:
                if os.path.isfile(f"{self._root}/{path}"):  # noqa: PTH113
                    self._make_way(path, error)
            os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103
        self._folders.add(folder)

    def _make_way(self, path: str, error: OSError) -> None:
        """Remove what the build before left where this one needs a file or a folder instead."""
        full = Path(self._root, path)
        found = [each for each in full.rglob("*") if not each.is_dir()] if full.is_dir() else [full]
        names = {each.relative_to(self._root).as_posix() for each in found}
        if not names <= _list_paths(self._before.entries.values()):
            kinds = ("folder", "file") if full.is_dir() else ("file", "folder")
            sentence = "{} is a {} where the site needs a {}; move it".format(full, *kinds)
            raise BuildError(sentence) from error
        for name in names:
            remove_file(Path(self._root), name)


def remove_file(root: Path, path: str) -> None:
    """Remove a file below `root`, if it is there, and each folder that is empty then."""
    full = root / path
    if full.is_file():
        full.unlink()
    with suppress(OSError):  # The first folder that still holds something ends it.
        for folder in full.parents[: path.count("/")]:
            folder.rmdir()


def _list_paths(entries: Iterable[Entry]) -> set[str]:
    return {path for entry in entries for path in entry.list_paths()}


def _make_forms(path: str, data: bytes) -> dict[str, bytes]:
    """Return the file and the compressed forms that are smaller than it, by their suffixes."""
    forms = {"": data}
    kind = path.rpartition(".")[2]
    if kind in _COMPRESSED and len(data) > _WORTHWHILE:
        is_awaited = kind in _AWAITED and len(data) <= _AWAITED_MOST
        quality = _BROTLI_BETTER if is_awaited else _BROTLI_QUALITY
        forms[".gz"] = gzip.compress(data, _GZIP_LEVEL, mtime=0)
        forms[".br"] = brotli.compress(data, mode=brotli.MODE_TEXT, quality=quality)
    return {suffix: form for suffix, form in forms.items() if not suffix or len(form) < len(data)}


def _tabulate(stamps: Iterable[Stamp]) -> tuple[list[int], list[int]]:
    """Return the sizes and the times of all forms, 0 for those that are not there."""
    found = {stamp.suffix: stamp for stamp in stamps}
    sizes = [found[suffix].size if suffix in found else 0 for suffix in SUFFIXES]
    return sizes, [found[suffix].mtime if suffix in found else 0 for suffix in SUFFIXES]


def _write(path: str, suffix: str, data: bytes) -> Stamp:
    """Write a new file and rename it into place, so that a published one is never written to."""
    target = f"{path}{suffix}"
    partial = f"{target}{_PARTIAL}"
    with open(partial, "wb") as file:  # noqa: PTH123 - a Path costs as much again
        file.write(data)
        file.flush()
        written = os.fstat(file.fileno())
    os.replace(partial, target)  # noqa: PTH105 - likewise
    return Stamp(suffix, written.st_size, written.st_mtime_ns)
