"""Whether the source files of a program are still the ones that it was started with."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of `edge_api`, this package's parent."""


class InstalledCode:
    """The files in a program's packages, compared with what they were when it started.

    Bytes decide: a file that is written again with the same content has not changed. Libraries do
    not count. Raises OSError where a file cannot be read.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._stamps = self._read_stamps()
        self.digest = _make_digest(*self._stamps.items())
        self.has_changed = False
        self.is_settled = True
        """The two last looks found the same files: nobody is in the middle of an upgrade."""

    def look(self) -> None:
        """Compare once more; file contents are only read where a size or a time has changed."""
        stamps = self._read_stamps()
        self.is_settled = stamps == self._stamps
        if not self.is_settled:
            self.has_changed = _make_digest(*stamps.items()) != self.digest
            self._stamps = stamps

    def _read_stamps(self) -> dict[str, tuple[int, int]]:
        files = chain.from_iterable(map(list_files, self._folders))
        return {path: (found.st_size, found.st_mtime_ns) for path, found in files}


def list_files(top: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and the state of each file below a folder; hidden and compiled ones are not.

    Neither are an editor's copies, `name~`. Raises OSError where a file cannot be looked at.
    """
    for folder, folders, names in os.walk(top):
        folders[:] = [each for each in folders if each[0] != "." and each != "__pycache__"]
        for name in names:
            if name[0] != "." and name[-1] != "~":
                path = os.path.join(folder, name)  # noqa: PTH118  a journal has many files
                with suppress(FileNotFoundError):  # it is replaced at this moment
                    yield path, os.stat(path)  # noqa: PTH116


def add_files(digest: hashlib.blake2b, top: Path, paths: Iterable[Path]) -> None:
    """Add the path below `top` and the content of each file, in the order given; none that is gone.

    Raises OSError for a file that cannot be read.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(top).as_posix()} {len(content)}\n".encode())
            digest.update(content)


@lru_cache(maxsize=2)
def _make_digest(*stamps: tuple[str, tuple[int, int]]) -> bytes:
    digest = hashlib.blake2b(digest_size=20)
    add_files(digest, Path("/"), (Path(path) for path, _ in sorted(stamps)))
    return digest.digest()
