"""Writes a journal in one step, and writes it again without touching what a person has changed."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Final

from site_build.errors import BuildError

REPORT: Final = "import-report.json"
"""Says, among others, which bytes an import wrote: it is how the next one knows its own files."""
_STARTER: Final = Path(__file__).resolve().parents[1] / "starter"
_PRIVATE: Final = {".env", "members.csv", "comments.json"}


def fill_starter(name: str, **values: str) -> bytes:
    """Return a file of `starter/` with its values filled in."""
    return Template((_STARTER / name).read_text(encoding="utf-8")).substitute(values).encode()


def write_journal(
    folder: Path,
    files: Mapping[str, bytes | Path],
    report: Callable[[dict[str, str], list[str]], Mapping[str, bytes]] | None = None,
) -> None:
    """Write files by their paths below a folder, all or, if the folder is new, none of them.

    In the folder of an earlier import, only files are replaced that still are as it wrote them:
    what a person changed or removed stays so. `report` makes further files of the digests to
    remember and of the paths of what was left as it is. Raises BuildError and OSError.
    """
    known = _read_digests(folder) if report else {}
    names = list(files if not report else dict.fromkeys(name.split("/")[0] for name in files))
    if not known and (taken := [name for name in names if os.path.lexists(folder / name)]):
        raise BuildError(
            f"{folder} already has {', '.join(taken)}; choose another folder, or move them away"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, so that it can be renamed; of one that was killed, only this is left.
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as made:
        home = Path(made, "journal")
        digests, placed, kept = dict[str, str](), list[str](), list[str]()
        for name, content in files.items():
            _write(home / name, content)
            digests[name] = _digest(home / name)
            now = _digest(folder / name)
            if now in {known.get(name, ""), digests[name]} and (now or name not in known):
                placed.append(name)
            else:
                kept.append(name)
                digests[name] = known.get(name, "")
        for name, content in (report(digests, kept) if report else {}).items():
            _write(home / name, content)
            placed.append(name)
        if not os.path.lexists(folder):
            home.rename(folder)
            return
        for name in placed:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).replace(folder / name)
        for name in known.keys() - files.keys():
            if _digest(folder / name) == known[name]:
                (folder / name).unlink(missing_ok=True)


def _read_digests(folder: Path) -> dict[str, str]:
    """Return the digests that the last import into a folder noted; none where there was none."""
    try:
        said = json.loads((folder / REPORT).read_bytes())
        return {str(name): str(digest) for name, digest in said["digests"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(
            f"{folder / REPORT} cannot be read ({error}); choose another folder"
        ) from error


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; an empty string where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, content: bytes | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        shutil.copyfile(content, path)
        return
    mode = 0o600 if path.name in _PRIVATE else 0o666
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
