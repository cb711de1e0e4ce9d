"""Prepares `.venv` from the locks named on the command line; what is installed costs nothing.

It runs before anything is installed, so it may use the standard library only.
"""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# One line for each lock installed: its name and digest. Absent while anything is being installed,
# so an environment without it was cut off half-way and is made anew.
STAMP = VENV / "installed"


class SetupError(Exception):
    """A step failed; the message says which, and what to do."""


def say(message: str) -> None:
    """Tell the person at the terminal what happens; standard output stays for data."""
    sys.stderr.write(f"{message}\n")


@contextlib.contextmanager
def turn(source: Path = ROOT / "requirements", made: str = ".venv") -> Iterator[None]:
    """Hold what is `made` from a folder alone, so that two commands started at once take turns."""
    handle = os.open(source, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another command is preparing {made}; waiting for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def lock_path(name: str) -> Path:
    """Return the lock called `name`; SetupError when there is none."""
    path = ROOT / "requirements" / f"{name}.txt"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.txt")))
        raise SetupError(f"There is no lock called {name}; there are: {known}.")
    return path


def digest(name: str) -> str:
    """Return the SHA-256 of a lock, in hexadecimal."""
    return hashlib.sha256(lock_path(name).read_bytes()).hexdigest()


def installed() -> dict[str, str]:
    """Return the digest of each lock that the environment holds, by name."""
    try:
        lines = STAMP.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return dict(line.split() for line in lines)


def works() -> bool:
    """Return whether the environment is whole: finished, and its Python still starts."""
    if not STAMP.exists():
        return False
    probe = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    try:
        subprocess.run([PYTHON, "-c", probe], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def create() -> None:
    """Make an empty environment in place of what stands there; SetupError when that fails."""
    if VENV.is_symlink() or VENV.is_file():
        raise SetupError("'.venv' is a link or a file here; remove it, and run the command again.")
    say(f"Making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}.")
    STAMP.unlink(missing_ok=True)
    try:
        venv.create(VENV, clear=True, symlinks=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"The environment could not be made: {error}.") from error
    record({})


def record(digests: dict[str, str]) -> None:
    """Write the stamp, whole or not at all."""
    draft = STAMP.with_suffix(".new")
    lines = [f"{name} {value}\n" for name, value in sorted(digests.items())]
    draft.write_text("".join(lines), encoding="ascii")
    draft.replace(STAMP)


def install(name: str) -> None:
    """Install one lock, every file checked against its hash; SetupError when pip refuses."""
    say(f"Installing requirements/{name}.txt.")
    begin = time.monotonic()
    before = installed()
    STAMP.unlink()
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
    command = [*pip, "--require-hashes", "-r", str(lock_path(name))]
    if subprocess.run(command, check=False).returncode:
        raise SetupError(
            f"requirements/{name}.txt could not be installed; pip's words above say why. "
            "Once that is fixed, run the same command again."
        )
    record({**before, name: digest(name)})
    say(f"Installed in {time.monotonic() - begin:.0f} s.")


def prepare(names: list[str]) -> None:
    """Bring the environment to hold every named lock; SetupError when it cannot be done."""
    wanted = {name: digest(name) for name in names}
    if not works():
        create()
    for name, value in wanted.items():
        if installed().get(name) != value:
            install(name)


def main() -> int:
    """Prepare the environment and return the exit status."""
    try:
        with turn():
            prepare(sys.argv[1:] or ["run"])
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped; the next run begins anew.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
