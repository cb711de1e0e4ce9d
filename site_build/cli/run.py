"""`run`: build the journal, serve it, and publish what changes, until a signal ends it."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from threading import Event

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_BUILD = ("site_build", "build")
# Nothing would start the publisher again, so it goes on (--stay) when its code changes. Without a
# relay, what would be sent is put into a folder.
_PUBLISHER = ("site_build", "publish", "--stay")
_EDGE = ("edge_api", "serve", "--keep-mail", "var/mail", "--desk-link")


def add_options(parser: argparse.ArgumentParser, settings: Mapping[str, str]) -> None:  # noqa: ARG001
    """Declare the command's options."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", help="the port to listen on (default: the setting PORT)")


def run(arguments: argparse.Namespace) -> int:
    """Run until a signal, and return 0; return the status of a build that fails, or 1."""
    if arguments.port:
        os.environ["PORT"] = arguments.port  # the build names it too, where there is no SITE_URL
    edge = (*_EDGE, "--host", arguments.host)
    ending = Event()
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda *_: ending.set())
    (built,) = _supervise([_BUILD], ending)
    if built or ending.is_set():
        return built or 0
    statuses = _supervise([edge, _PUBLISHER], ending)
    if ending.is_set():
        return 0
    for (program, name, *_), status in zip((_EDGE, _PUBLISHER), statuses, strict=True):
        if status is not None:
            sys.stderr.write(f"{program} {name} has ended with status {status}: all is stopped\n")
    return 1


def _supervise(commands: Sequence[Sequence[str]], ending: Event) -> list[int | None]:
    """Run programs until one ends or `ending` is set, then end all of them.

    Returns the exit status of each that ended by itself.
    """
    processes = [subprocess.Popen([sys.executable, "-m", *words]) for words in commands]  # noqa: S603
    try:
        while not ending.is_set() and all(each.poll() is None for each in processes):
            ending.wait(0.1)
        return [each.poll() for each in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
