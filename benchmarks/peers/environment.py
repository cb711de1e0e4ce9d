"""Environments beside `.venv` with the packages of one lock, and no others.

That of the peers, `bench`, stands in `.venv-bench` or where BENCH_VENV says; `judge` likewise. Each
is made anew whenever its lock changes.
"""

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_STAMP: Final = "installed"


def prepare(name: str = "bench") -> Path:
    """Return the folder of its programs; make it first where that has not been done."""
    folder = Path(os.environ.get(f"{name.upper()}_VENV") or _ROOT / f".venv-{name}")
    lock = _ROOT / "requirements" / f"{name}.txt"
    digest = sha256(lock.read_bytes()).hexdigest()
    stamp = folder / _STAMP
    if not stamp.exists() or stamp.read_text() != digest:
        _make(folder, lock)
        stamp.write_text(digest)
    return folder / "bin"


def find_hugo() -> Path:
    """Return Hugo itself: what stands among the programs is Python, which takes time to start it.

    Raises SystemExit where its package has none for this machine.
    """
    folder = prepare().parent
    found = next(folder.glob("lib/python*/site-packages/hugo/binaries/hugo"), None)
    if found is None:
        raise SystemExit(f"Hugo is not in {folder}: its package has no program for this machine")
    return found


def _make(folder: Path, lock: Path) -> None:
    print(f"Installing requirements/{lock.name}.", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-qq"]
    subprocess.run([*pip, "install", "--require-hashes", "-r", str(lock)], check=True)
