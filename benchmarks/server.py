"""Servers as child processes, each on the servers' core, and what they use of the machine."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil

SERVER_CORE, LOAD_CORE = "0", "1"
BOTH_CORES = f"{SERVER_CORE},{LOAD_CORE}"
START_SECONDS: Final = 120
"""A server that a busy machine starts, with a million rows to open."""
END_SECONDS: Final = 30
_LOOK: Final = 0.01
"""Seconds between two looks for a server that starts: they are part of what its start takes."""
_NICENESS: Final = -19
_GROUP: Final = Path("/proc/self/autogroup")
"""Where Linux keeps the niceness of a whole session against others."""


def come_first() -> None:
    """Take precedence over whatever else the machine does, where that is allowed: to root."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
        _GROUP.write_text(str(_NICENESS))


def pinned(core: str) -> list[str]:
    """Return what stands before a command that is to have one core, or those of a list."""
    return ["taskset", "-c", core]


@contextmanager
def on_core(core: str) -> Iterator[None]:
    """Keep this process itself on one core for a while, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(core)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    origin: str
    pid: int

    def processor_seconds(self) -> float:
        """Return the processor time used so far, the system's for it too.

        That of its children is included, whether they run or have ended.
        """
        times = [process.cpu_times() for process in self._processes()]
        return sum(
            each.user + each.system + each.children_user + each.children_system for each in times
        )

    def resident_mib(self) -> float:
        """Return the memory that it has now, in MiB; what its processes share counts for each."""
        return sum(process.memory_info().rss for process in self._processes()) / 2**20

    def _processes(self) -> list[psutil.Process]:
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]


@dataclass(frozen=True, slots=True)
class Took:
    """What something that a server did took."""

    seconds: float
    processor: float
    """Seconds."""


def look(server: Served, began: float, before: float = 0.0) -> Took:
    """Return what a server took since an instant at which it had used so much processor time."""
    return Took(time.perf_counter() - began, server.processor_seconds() - before)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def python(*words: str, **environment: str) -> str:
    """Run a command of Python's; return what it prints."""
    command = [sys.executable, *words]
    whole = {**os.environ, **environment}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=whole).stdout


@contextmanager
def served(
    words: Sequence[str],
    url: str,
    environment: Mapping[str, str] | None = None,
    program: str = sys.executable,
    certificate: Path | None = None,
) -> Iterator[Served]:
    """Run a server on its core; yield it once it answers at `url`, whatever it answers.

    A certificate is what an https URL is checked with.
    """
    origin = "/".join(url.split("/")[:3])
    trusted = ssl.create_default_context(cafile=certificate) if certificate else None
    whole = {**os.environ, **(environment or {})}
    with subprocess.Popen(
        [*pinned(SERVER_CORE), program, *words], env=whole, stdout=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(url, process, trusted)
            yield Served(origin, process.pid)
        finally:
            _end(process)


def _wait_for(url: str, process: "subprocess.Popen[bytes]", trusted: ssl.SSLContext | None) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5, context=trusted):  # noqa: S310  an address of our own
                return
        except HTTPError:
            return
        except OSError:
            time.sleep(_LOOK)
    if process.returncode is not None:
        raise SystemExit(f"{url}: the server ended with {process.returncode}; see above")
    raise SystemExit(f"{url} did not answer within {START_SECONDS} s")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
