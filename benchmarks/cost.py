"""What a command takes of the machine: time, processor time, memory."""

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_ROOT: Final = Path(__file__).resolve().parent.parent
_SHORTEST, _LONGEST = 0.02, 0.5
"""Seconds between two looks at the memory of a command, which cost it something themselves."""
_SHARE: Final = 8
"""A look after each eighth of the time so far, so that a short command is seen often enough."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a command took."""

    seconds: float
    processor: float
    """Seconds of all processors together: steadier than the clock on a machine that is shared."""
    peak_mib: float
    """Memory of all its processes, what they share counted once; 0 where the system hides it."""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run a command to its end; raises SystemExit when it fails, after it has said why."""
    whole = {**os.environ, **(environment or {})}
    began, started = _read_processor(), time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=whole, cwd=_ROOT) as process:
        peak = _watch(process, started)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(seconds, _read_processor() - began, peak)


def _watch(process: "subprocess.Popen[bytes]", started: float) -> float:
    """Return the most memory that was seen until the end."""
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, weigh(process.pid))
        pause = (time.perf_counter() - started) / _SHARE
        try:
            process.wait(min(max(pause, _SHORTEST), _LONGEST))
        except subprocess.TimeoutExpired:
            continue
    return peak


def _read_processor() -> float:
    """Return the seconds of processor that ended children, and theirs, have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def weigh(pid: int) -> float:
    """Return the memory of a process and its children now, in MiB."""
    try:
        parent = psutil.Process(pid)
        crew = [parent, *parent.children(recursive=True)]
        return float(sum(each.memory_full_info().pss for each in crew)) / 2**20
    except (psutil.Error, AttributeError):
        return 0.0  # It has just ended, or the system does not count so.
