"""Servers as child processes on one core, and wrk on the other."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.error import HTTPError
from urllib.request import urlopen

SERVER_CORE, LOAD_CORE = "0", "1"
START_SECONDS = 30
ROUNDS = 5
SECONDS = 3


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk asks for, again and again, on so many connections."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    script: Path | None = None
    connections: int = 64
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the script reads."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one load reached in one round."""

    per_second: float
    p99_ms: float
    requests: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two loads, round by round in turn: what slows the machine for a while slows both."""

    ours: Sequence[Figure]
    theirs: Sequence[Figure]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return median(ours.per_second / theirs.per_second for ours, theirs in pairs)


def middle(figures: Sequence[Figure]) -> Figure:
    """Return the medians of the rounds."""
    return Figure(
        median(figure.per_second for figure in figures),
        median(figure.p99_ms for figure in figures),
        sum(figure.requests for figure in figures),
    )


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    origin: str
    pid: int

    def processor_seconds(self) -> float:
        """Return the processor time that it has used so far, its own and the system's for it."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(
    words: Sequence[str], port: int, ready: str, environment: Mapping[str, str]
) -> Iterator[Served]:
    """Run a Python server on its core; give it once `ready` answers, whatever it answers."""
    command = ["taskset", "-c", SERVER_CORE, sys.executable, *words]
    origin = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(f"{origin}{ready}")
            yield Served(origin, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=1):  # noqa: S310  an address of our own
                return
        except HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} did not answer within {START_SECONDS} s")


def compare(ours: Load, theirs: Load) -> Comparison:
    """Return what wrk reaches with both, after a warm-up.

    Ends the program when any answer was no success: such a figure would mean nothing.
    """
    for load in (ours, theirs):
        run(load, 1)
    rounds = [(run(ours, SECONDS), run(theirs, SECONDS)) for _ in range(ROUNDS)]
    return Comparison(*zip(*rounds, strict=True))


def run(load: Load, seconds: int) -> Figure:
    """Return what wrk reaches; ends the program when any answer was no success."""
    said = _ask_wrk(load, seconds)
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(f"not every answer was a success:\n{said}")
    per_second = re.search(r"Requests/sec:\s+([\d.]+)", said)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    requests = re.search(r"(\d+) requests in", said)
    if per_second is None or p99 is None or requests is None:
        raise SystemExit(f"wrk said something else:\n{said}")
    unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}[p99[2]]
    return Figure(float(per_second[1]), float(p99[1]) * unit, int(requests[1]))


def _ask_wrk(load: Load, seconds: int) -> str:
    words = ["taskset", "-c", LOAD_CORE, "wrk", "-t1", f"-c{load.connections}", f"-d{seconds}s"]
    words += [word for name, value in load.headers.items() for word in ("-H", f"{name}: {value}")]
    words += ["-s", str(load.script)] if load.script else []
    command = [*words, "--latency", load.url]
    whole = {**os.environ, **load.environment}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=whole).stdout
