"""A folder with the public files of a build, by second names: in it the next one is made.

What holds another build is brought up to it by the ledgers of both, so that an edit costs what it
changes, and not two calls to the system for each file of the site. It knows paths and ledgers.
"""

import errno
import filecmp
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from site_build.incremental.ledger import (
    LEDGER_FILE,
    Look,
    is_whole,
    list_forms,
    read_looks,
    read_rows,
)
from site_build.incremental.tree import remove_file


def bring_up(spare: Path, edition: Path, site: str) -> None:
    """Have `spare` hold the public files of the build `edition`, in the folder `site` of each.

    A spare has a ledger only while it is as that says: one that was left half done has none, and
    is made anew. Raises OSError.
    """
    _clear_place(spare)
    if _is_copy(spare / LEDGER_FILE, edition / LEDGER_FILE) and is_whole(spare):
        return
    held, wanted = _disown(spare, site), read_rows(edition)
    surplus, missing = read_looks(held - wanted), read_looks(wanted - held)
    for path in _differing(surplus, missing):
        remove_file(spare / site, path)
    _link_files(_differing(missing, surplus), edition / site, spare / site)
    with suppress(FileNotFoundError):  # of the first build there is none before
        _link(edition / LEDGER_FILE, spare / LEDGER_FILE)


def _clear_place(spare: Path) -> None:
    """Take away what is no folder of ours; what a link leads to is left alone."""
    if spare.is_symlink() or spare.is_file():
        spare.unlink()


def _is_copy(ledger: Path, original: Path) -> bool:
    try:
        return filecmp.cmp(ledger, original)
    except OSError:
        return False


def _disown(spare: Path, site: str) -> frozenset[bytes]:
    """Leave a spare with nothing but its public files, and return what its ledger says of them."""
    held = read_rows(spare)
    if not held:
        shutil.rmtree(spare, ignore_errors=True)
    spare.mkdir(exist_ok=True)
    (spare / LEDGER_FILE).unlink(missing_ok=True)
    for path in spare.iterdir():
        if path.is_dir() and path.name != site:
            shutil.rmtree(path)
        elif path.name != site:
            path.unlink()
    return held


def _differing(looks: dict[str, Look], others: dict[str, Look]) -> Iterator[str]:
    """Yield the paths of the files that are not the same among the others."""
    for path, look in looks.items():
        if others.get(path) != look:
            yield from list_forms(path, look)


def _link_files(paths: Iterable[str], source: Path, target: Path) -> None:
    """Give files a second name each; what is missing in `source` is left out."""
    made = set()
    for path in paths:
        old, new = f"{source}/{path}", f"{target}/{path}"
        folder = new.rpartition("/")[0]
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103  called for every folder of the site
            made.add(folder)
        with suppress(FileNotFoundError):
            _link(old, new)


def _link(old: str | Path, new: str | Path) -> None:
    """Give a file a second name; copy it where the file system has no second names."""
    try:
        os.link(old, new)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP}:
            raise
        with suppress(IsADirectoryError):
            shutil.copy2(old, new)
