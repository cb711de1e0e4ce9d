"""The files of one build's site, listed once: what is not in the list is not served.

So no path of a request ever reaches the disk. Symbolic links are not followed, hidden files are
left out, and compressed forms are known by the file that they belong to.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

HOME: Final = "/"
INDEX: Final = "index.html"
"""The file that answers for its folder."""
WELL_KNOWN: Final = ".well-known"
"""The one hidden folder that is public (RFC 8615), in the root only."""

CODINGS: Final[Mapping[str, str]] = MappingProxyType({"br": ".br", "gzip": ".gz"})
"""Content codings that a build makes, the tightest first, and the suffixes of their files."""


@dataclass(frozen=True, slots=True, eq=False)
class SiteFile:
    """One public file; it stands for itself alone, so that it is a cheap key."""

    name: str
    """Relative to the site's folder, with `/`."""
    size: int
    """Bytes."""
    codings: tuple[str, ...] = ()
    """The codings in which it is there as well."""


def list_site(folder: Path) -> Mapping[str, SiteFile]:
    """Return every public file below `folder` by the path at which it answers.

    A folder answers with its `index.html`. Raises OSError where something cannot be looked at.
    """
    sizes = dict(_walk(os.fspath(folder), ""))
    files: dict[str, SiteFile] = {}
    for name, size in sizes.items():
        if not name.endswith(tuple(CODINGS.values())):
            codings = tuple(coding for coding, end in CODINGS.items() if f"{name}{end}" in sizes)
            files[_address(name)] = SiteFile(name, size, codings)
    return MappingProxyType(files)


def _address(name: str) -> str:
    folder, _, last = name.rpartition("/")
    if last != INDEX:
        return f"/{name}"
    return f"/{folder}/" if folder else "/"


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the size of every regular file that is not hidden."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if entry.name.startswith(".") and name != WELL_KNOWN:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, f"{name}/")
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size
