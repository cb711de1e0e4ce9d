"""Writes a journal in one step, and writes it again without touching what a person has changed."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Final

from site_build.errors import BuildError

REPORT: Final = "import-report.json"
"""Says, among others, which bytes an import wrote: it is how the next one knows its own files."""
_PRIVATE: Final = {".env", "members.csv", "comments.json"}


def fill_starter(name: str, **values: str) -> bytes:
    """Return a file of `starter/` with its values filled in."""
    file = Path(__file__).resolve().parents[1] / "starter" / name
    return Template(file.read_text(encoding="utf-8")).substitute(values).encode()


def write_journal(
    folder: Path,
    files: Mapping[str, bytes | Path],
    report: Callable[[dict[str, str], list[str]], Mapping[str, bytes]] | None = None,
) -> list[str]:
    """Write files by their paths below a folder, all or, if the folder is new, none of them.

    In the folder of an earlier import, only files are replaced that still are as it wrote them:
    what a person changed or removed stays so, and its path is returned. `report` makes further
    files of the digests to remember and of those paths. Raises BuildError and OSError.
    """
    known: dict[str, str] = {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        known |= json.loads((folder / REPORT).read_bytes())["digests"] if report else {}
    names = dict.fromkeys(name.split("/")[0] for name in files) if report else files
    if not known and (taken := [name for name in names if os.path.lexists(folder / name)]):
        raise BuildError(
            f"{folder} already has {', '.join(taken)}; choose another folder, or move them away"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside a new folder, so that it can be renamed; of one that was killed, only this is left.
    place = folder if folder.is_dir() else folder.parent
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=place) as made:
        home = Path(made, "journal")
        for name, content in files.items():
            _write(home / name, content)
        digests = {name: _digest(home / name) for name in files}
        now = {name: _digest(folder / name) for name in {**files, **known}}
        # A digest is empty where there is no file, which is as it was only of a new one.
        kept = [name for name in files if now[name] not in {known.get(name, ""), digests[name]}]
        digests |= {name: known.get(name, "") for name in kept}
        reports = report(digests, kept) if report else {}
        for name, content in reports.items():
            _write(home / name, content)
        if not os.path.lexists(folder):
            home.rename(folder)
            return kept
        for name in [*(name for name in files if name not in kept), *reports]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).replace(folder / name)
        for name in known.keys() - files.keys():
            if now[name] == known[name]:
                (folder / name).unlink(missing_ok=True)
    return kept


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; an empty string where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, content: bytes | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600 if path.name in _PRIVATE else 0o666)
    shutil.copyfile(content, path) if isinstance(content, Path) else path.write_bytes(content)
