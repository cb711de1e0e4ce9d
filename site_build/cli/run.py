"""`run`: builds the journal, serves it, and publishes changes, until a signal ends it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Final

from click import Option

from edge_api.schema.commands import Arguments
from edge_api.schema.environment import sqlite_file
from edge_api.schema.heartbeat import Heartbeat, find_edge, name_edge
from edge_api.schema.index import CURRENT_LINK
from site_build.errors import BuildError
from site_build.options import read_settings

# Nothing would start the watcher again, so it keeps running (--stay) when its code changes.
# Without an SMTP server, messages are kept in a folder.
_WATCHER_COMMAND = ("site_build", "watch", "--stay")
_EDGE_COMMAND = ("edge_api", "serve", "--keep-mail", "var/mail", "--desk-link")


PARAMS: Final = (
    Option(["--host"], default="127.0.0.1", help="the address to listen on"),
    Option(["--port"], help="the port to listen on (default: the setting PORT)"),
)


def run(arguments: Arguments) -> int:
    """Run until a signal, and return 0; return 1 if the watcher or the edge ends by itself.

    The edge starts after the first build or, if that fails, with an earlier build. Without any
    build, the status is that of the watcher. Raises SystemExit if another edge serves the store.
    """
    refuse_second_edge()  # before a build, which the first one would serve
    if arguments.port:
        os.environ["PORT"] = arguments.port  # without SITE_URL, the build puts it into addresses
    ending = Event()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # such as SIGHUP under nohup
            signal.signal(number, lambda *_: ending.set())
    statuses = _supervise((*_EDGE_COMMAND, "--host", arguments.host), ending)
    if ending.is_set():
        return 0
    if len(statuses) == 1:
        return statuses[0] or 1
    for (program, name, *_), status in zip(
        (_WATCHER_COMMAND, _EDGE_COMMAND), statuses, strict=True
    ):
        if status is not None:
            sys.stderr.write(f"{program} {name} has ended with status {status}: all is stopped\n")
    return 1


def refuse_second_edge() -> None:
    """Raise SystemExit with a sentence if an edge serves the store already."""
    with suppress(BuildError, OSError):  # the edge reports these
        store = sqlite_file(read_settings().get("DATABASE_URL", "sqlite:///var/edge.db"))
        if store and (edge := find_edge(store.resolve())):
            sys.exit(name_edge(store.resolve(), edge))


def _supervise(edge: Sequence[str], ending: Event) -> list[int | None]:
    """Run the watcher, and the edge once there is a build, until one ends or `ending` is set.

    Then end both. Returns the exit status of each; None for one that was still running.
    """
    output, began = Path(read_settings().get("BUILD_DIR", "build")), datetime.now(UTC)
    processes = [_start(_WATCHER_COMMAND)]
    try:
        _wait(processes, lambda: ending.is_set() or _has_built(output, began))
        if not ending.is_set() and processes[0].poll() is None and (output / CURRENT_LINK).exists():
            processes.append(_start(edge))
            _wait(processes, ending.is_set)
        return [each.poll() for each in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _start(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", *words])  # noqa: S603


def _wait(processes: Sequence["subprocess.Popen[bytes]"], is_over: Callable[[], bool]) -> None:
    while not is_over() and all(each.poll() is None for each in processes):
        time.sleep(0.1)


def _has_built(output: Path, began: datetime) -> bool:
    """Return whether the watcher has made its first build, or has failed to."""
    with suppress(OSError, ValueError):  # a damaged heartbeat is soon replaced
        beat = Heartbeat.read(output)
        if beat and beat.at > began:
            return bool(beat.failure) or (output / CURRENT_LINK).exists()
    return False
