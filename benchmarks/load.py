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
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from urllib.request import urlopen

SERVER_CORE, LOAD_CORE = "0", "1"
START_SECONDS = 30
ROUNDS = 3
SECONDS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """What one load reached: the medians of its rounds."""

    per_second: float
    p99_ms: float


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(
    words: Sequence[str], port: int, ready: str, environment: Mapping[str, str]
) -> Iterator[str]:
    """Run a Python server on its core; give its origin once `ready` answers."""
    command = ["taskset", "-c", SERVER_CORE, sys.executable, *words]
    origin = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(f"{origin}{ready}")
            yield origin
        finally:
            process.send_signal(signal.SIGTERM)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=1):  # noqa: S310  an address of our own
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} did not answer within {START_SECONDS} s")


def load(
    url: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    connections: int = 64,
    script: Path | None = None,
) -> Figure:
    """Return what wrk reaches: one thread, a warm-up, the median of the rounds.

    Ends the program when any answer was no success: such a figure would mean nothing.
    """
    words = ["taskset", "-c", LOAD_CORE, "wrk", "-t1", f"-c{connections}", "--latency"]
    words += [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    words += ["-s", str(script)] if script else []
    _run([*words, "-d1s", url])
    rounds = [_run([*words, f"-d{SECONDS}s", url]) for _ in range(ROUNDS)]
    return Figure(
        median(item.per_second for item in rounds), median(item.p99_ms for item in rounds)
    )


def _run(command: Sequence[str]) -> Figure:
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(f"not every answer was a success:\n{said}")
    per_second = re.search(r"Requests/sec:\s+([\d.]+)", said)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    if per_second is None or p99 is None:
        raise SystemExit(f"wrk said something else:\n{said}")
    unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}[p99[2]]
    return Figure(float(per_second[1]), float(p99[1]) * unit)
