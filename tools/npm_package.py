"""Fetches one package with the npm of the environment, and takes it only if it is the pinned one.

Nothing of it is run. What is taken out of it, and where that goes, its callers know.
"""

import base64
import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.environment import SetupError
from tools.judges import NODE, NPM


@dataclass(frozen=True, slots=True)
class Pin:
    """A package, as `name@version`, and what its archive has to be."""

    package: str
    integrity: str
    """The SHA-512 as npm's locks write it: `sha512-` and Base64."""


def fetch(pin: Pin, folder: Path) -> Path:
    """Return the archive, put into an empty `folder`; SetupError when it is not the pinned one."""
    command = [str(NODE), str(NPM), "pack", pin.package, "--ignore-scripts", "--loglevel=error"]
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", os.defpath)])
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise SetupError(f"{result.stderr.strip()}\n{pin.package} could not be fetched.")
    archive = next(folder.glob("*.tgz"))
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != pin.integrity:
        raise SetupError(f"{pin.package} is not the one that is pinned: nothing was taken.")
    return archive
