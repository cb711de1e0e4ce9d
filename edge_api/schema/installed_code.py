"""Detection of changes in the installed code."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]  # the folder of `edge_api`, this package's parent


class InstalledCode:
    """Detects whether the files of a program's packages have changed since it started.

    It compares contents: a file that is written again with the same content has not changed. It
    ignores libraries. Raises OSError if a file cannot be read.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._stamps = self._read_stamps()
        self.digest = _make_digest(*self._stamps.items())
        self.has_changed = False
        self.is_stable = True
        """Whether the last two checks found the same sizes and times: no upgrade is in progress."""

    def check(self) -> None:
        """Compare again; file contents are only read if a size or a time has changed."""
        stamps = self._read_stamps()
        self.is_stable = stamps == self._stamps
        if not self.is_stable:
            self.has_changed = _make_digest(*stamps.items()) != self.digest
            self._stamps = stamps

    def _read_stamps(self) -> dict[str, tuple[int, int]]:
        files = chain.from_iterable(map(list_files, self._folders))
        return {path: (found.st_size, found.st_mtime_ns) for path, found in files}


def list_files(top: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and `stat` of each file below a folder, except hidden and compiled ones.

    An editor's backup copies, `name~`, are left out too. Raises OSError if `stat` fails.
    """
    for folder, folders, names in os.walk(top):
        folders[:] = [each for each in folders if each[0] != "." and each != "__pycache__"]
        for name in names:
            if name[0] != "." and name[-1] != "~":
                path = os.path.join(folder, name)  # noqa: PTH118  faster, for many files
                with suppress(FileNotFoundError):  # the file is being replaced
                    yield path, os.stat(path)  # noqa: PTH116


def add_files(digest: hashlib.blake2b, top: Path, paths: Iterable[Path]) -> None:
    """Add the path of each file, relative to `top`, and its content to a digest. Raises OSError.

    A missing file is left out.
    """
    for path in paths:
        with suppress(FileNotFoundError):
            content = path.read_bytes()
            digest.update(os.fsencode(f"{path.relative_to(top).as_posix()} {len(content)}\n"))
            digest.update(content)


@lru_cache(maxsize=2)
def _make_digest(*stamps: tuple[str, tuple[int, int]]) -> bytes:
    digest = hashlib.blake2b(digest_size=20)
    add_files(digest, Path("/"), (Path(path) for path, _ in sorted(stamps)))
    return digest.digest()
