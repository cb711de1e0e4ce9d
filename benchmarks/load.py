"""Load by wrk on its own core, and what a server reaches under it."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile
from typing import Final
from uuid import uuid4

from benchmarks.server import LOAD_CORE, Served, pinned

ROUNDS: Final = 3
SECONDS: Final = 3
_PATIENCE: Final = "30s"
"""How long wrk waits for an answer: slow servers are measured too."""
_UNITS: Final = {"us": 0.001, "ms": 1.0, "s": 1000.0}
_SCRIPT: Final = Path(__file__).resolve().parent / "requests.lua"
_NUMBERS: Final = count()


def forwarded() -> dict[str, str]:
    """Return what a proxy adds to a request: the address of another client and an id."""
    number = next(_NUMBERS) % 2**24
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return {"X-Forwarded-For": address, "X-Request-ID": uuid4().hex}


@dataclass(frozen=True, slots=True)
class Load:
    """The requests that wrk sends in random order, on so many connections; no two are equal."""

    origin: str
    requests: Sequence[str]
    """Each a path, or a path, a space and the body of a POST, with `{n}` for its number."""
    headers: Mapping[str, str] = field(default_factory=dict)
    connections: int = 64
    agents: Sequence[str] = ()
    """User-Agents, of which each request has one; `{n}` stands for its number."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a server reached in one round."""

    per_second: float
    p50_ms: float
    p99_ms: float
    requests: int
    cpu_us: float
    """Processor time of the server for one request."""
    resident_mib: float


def middle(figures: Sequence[Figure]) -> Figure:
    """Return the medians of the rounds."""
    return Figure(
        median(figure.per_second for figure in figures),
        median(figure.p50_ms for figure in figures),
        median(figure.p99_ms for figure in figures),
        sum(figure.requests for figure in figures),
        median(figure.cpu_us for figure in figures),
        median(figure.resident_mib for figure in figures),
    )


def run(load: Load, server: Served, seconds: int = SECONDS) -> Figure:
    """Return what a server reaches; ends the program when any answer was no success."""
    before = server.processor_seconds()
    said = _ask_wrk(load, seconds)
    used = server.processor_seconds() - before
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(f"not every answer was a success:\n{said}")
    requests = int(_find(r"(\d+) requests in", said)[1])
    return Figure(
        per_second=float(_find(r"Requests/sec:\s+([\d.]+)", said)[1]),
        p50_ms=_milliseconds("50%", said),
        p99_ms=_milliseconds("99%", said),
        requests=requests,
        cpu_us=used / requests * 1e6,
        resident_mib=server.resident_mib(),
    )


def _milliseconds(share: str, said: str) -> float:
    found = _find(rf"{share}\s+([\d.]+)(us|ms|s)", said)
    return float(found[1]) * _UNITS[found[2]]


def _find(pattern: str, said: str) -> re.Match[str]:
    found = re.search(pattern, said)
    if found is None:
        raise SystemExit(f"wrk said something else:\n{said}")
    return found


def _ask_wrk(load: Load, seconds: int) -> str:
    words = ["wrk", "-t1", f"-c{load.connections}", f"-d{seconds}s", "--timeout", _PATIENCE]
    words += [word for name, value in load.headers.items() for word in ("-H", f"{name}: {value}")]
    command = [*pinned(LOAD_CORE), *words, "--latency", "-s", str(_SCRIPT), load.origin]
    if shutil.which("wrk") is None:
        raise SystemExit("wrk puts the load on, and is not here; run: tools/provide wrk")
    with (
        NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file,
        NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as agents,
    ):
        file.write("\n".join(load.requests))
        file.flush()
        agents.write("\n".join(load.agents))
        agents.flush()
        whole = {**os.environ, "REQUESTS": file.name, "AGENTS": agents.name}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=whole).stdout
