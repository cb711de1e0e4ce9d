"""A worker process that analyses one document after the other, and can be killed at any time.

It reads jobs, a line each, from standard input and answers on standard output. It has no secrets,
writes nothing, and ends with the edge: idle, because its input ends; busy, by its own alarm.
"""

import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Final

import orjson

from edge_api.analysis.languages import LANGUAGES
from edge_api.analysis.metrics import load_hyphenation
from edge_api.analysis.report import Job, report

WORK_SECONDS: Final = 5
"""The edge kills a worker after this time; its own alarm ends it a second later."""
MAX_MEMORY_BYTES: Final = 512 * 1024 * 1024
"""Limit of the address space; the most expensive documents need a tenth."""
_NICENESS: Final = 10  # other requests go first


def main() -> None:
    """Answer jobs until the input ends."""
    for known in LANGUAGES.values():
        if known.flesch is not None:
            load_hyphenation(known.flesch.hyphenation)
    limit_resources()
    send(b"")  # ready
    for job in sys.stdin.buffer:
        signal.alarm(WORK_SECONDS + 1)
        send(b"")  # acknowledges the job: if this process ends now, the job may be the cause
        send(answer(job))
        signal.alarm(0)


def send(message: bytes) -> None:
    """Send a message to the edge."""
    sys.stdout.buffer.write(message + b"\n")
    sys.stdout.buffer.flush()


def limit_resources() -> None:
    """Limit this process: memory, written files, core dumps, priority."""
    os.nice(_NICENESS)
    limits = {"RLIMIT_AS": MAX_MEMORY_BYTES, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, most in limits.items():
        with suppress(AttributeError, ValueError, OSError):  # a system may have no such limit
            resource.setrlimit(getattr(resource, name), (most, most))


def answer(job: bytes) -> bytes:
    """Return the JSON of a report, or only the name of an exception."""
    try:
        return orjson.dumps({"report": report(Job(**orjson.loads(job)))})
    except Exception as error:  # noqa: BLE001  a trace could hold what somebody wrote
        return orjson.dumps({"fault": type(error).__name__})


if __name__ == "__main__":
    main()
