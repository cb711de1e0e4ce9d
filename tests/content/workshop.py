"""A folder like a reader's own checkout, with the journal built and an edge running in it.

Whoever takes it apart ends what was started by its process id.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import playwright

from tests.content.fences import Fence
from tests.own_journal import IS_OWN, JUDGED_CONTENT

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-11-20T00:00:00Z"
"""The journal is built as of this instant, so that later posts change no output."""

_PAPERS = ("content/**/*.md", "docs/*.md", "README.md") if IS_OWN else ("docs/*.md", "README.md")
TAUGHT = sorted(path for pattern in _PAPERS for path in ROOT.glob(pattern))
"""The papers whose blocks run; nobody else's posts."""

_SECONDS = 120
"""After which a block that hangs is given up."""
_COPIED = ("content", "theme", "edge_api", "site_build", "pelicanconf.py", "Procfile")
_NODE = Path(playwright.__file__).parent / "driver" / "node"
"""Node comes with the library that drives the browser, so nobody has to install it."""
_BROWSER = f"{sys.executable} -m tests.content.consenting_browser %s &"
_INSTALLED = """\
#!/bin/sh
PYTHONPATH="$(dirname "$0")/.." exec python -c \
  'from site_build.__main__ import fore_edge; raise SystemExit(fore_edge())' "$@"
"""
"""The command that an installed wheel brings."""
_GREETING = "development key"
_COMMANDS = {"bash": ("bash", "-euo", "pipefail"), "python": ("python",), "js": ("node",)}


@dataclass(frozen=True)
class Workshop:
    """The folder in which the blocks of one paper run."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, fence: Fence) -> str:
        """Run a block and return all that it printed; AssertionError when it fails."""
        file = self.folder / fence.file
        file.write_text(fence.code, encoding="utf-8")
        process = subprocess.Popen(
            [*_COMMANDS[fence.language], file.name],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        printed = _read_to_end(process)
        assert process.returncode == 0, f"exit status {process.returncode}:\n{printed}"
        return printed


def _read_to_end(process: subprocess.Popen[str]) -> str:
    """Return all that a process and those that it started print; none of them outlives this."""
    try:
        return process.communicate(timeout=_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"{process.communicate()[0]}\n(given up after {_SECONDS} seconds)"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def lay_out(folder: Path, content: Path = JUDGED_CONTENT) -> None:
    """Fill `folder` with what a checkout has, and build the journal of `content` in it."""
    for name in _COPIED:
        source = content if name == "content" else ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    command = folder / ".bin" / "fore-edge"
    command.parent.mkdir()
    command.write_text(_INSTALLED, encoding="utf-8")
    command.chmod(0o755)
    _build(folder, plain_environment())


def _build(folder: Path, environment: Mapping[str, str]) -> None:
    build = [sys.executable, "-m", "site_build", "build", "--now", NOW]
    subprocess.run(build, cwd=folder, env=environment, check=True, capture_output=True)


def plain_environment() -> dict[str, str]:
    """Return an environment without any setting: defaults hold."""
    programs = (Path(sys.executable).parent, _NODE.parent)
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    return {"PATH": path, "LANG": "C.UTF-8", "TZ": "UTC"}


@contextmanager
def open_workshop(folder: Path, *, knows_its_port: bool = False) -> Iterator[Workshop]:
    """Run an edge in `folder`, on a port of its own, for as long as the workshop is open.

    A paper sees the defaults; but where addresses that the edge names are followed, the edge and
    the paper know the port, and the journal is built for it.
    """
    port = find_free_port()
    command = [sys.executable, "-m", "edge_api", "serve", "--port", str(port)]
    environment = {**plain_environment(), "HOME": str(folder)}
    environment["PATH"] = os.pathsep.join([str(folder / ".bin"), environment["PATH"]])
    if knows_its_port:
        environment |= {"PORT": str(port), "BROWSER": _BROWSER, "PYTHONPATH": str(ROOT)}
        _build(folder, environment)
    with (folder / ".edge.log").open("wb") as log:
        edge = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        key = _read_key(edge)
        yield Workshop(folder, {**environment, "BASE": f"http://127.0.0.1:{port}", "KEY": key})
    finally:
        edge.kill()
        edge.communicate()


def _read_key(edge: subprocess.Popen[str]) -> str:
    """Return the key that the edge prints when it is ready."""
    assert edge.stdout is not None
    said = []
    for line in edge.stdout:
        if line.startswith(_GREETING):
            return line.rpartition(": ")[2].strip()
        said.append(line)
    raise AssertionError(f"the edge did not start: {said}")


def find_free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
