"""A preview as its editor runs it: a process of its own, asked over HTTP."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from tests.patience import patience
from tests.site_build.workbench import ROOT, Workbench

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Shown:
    """A running preview."""

    process: subprocess.Popen[str]
    port: int
    bench: Workbench

    @property
    def url(self) -> str:
        """The preview's origin."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request and read the answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=patience())
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            body = answer.read().decode("utf-8", "replace")
            return Answer(answer.status, dict(answer.getheaders()), body)
        finally:
            connection.close()

    def state(self, page: str = "/") -> dict[str, Any]:
        """Return the first event that a browser showing `page` gets."""
        with self.listening(page) as states:
            return next(states)

    @contextmanager
    def listening(self, page: str = "/") -> Iterator[Iterator[dict[str, Any]]]:
        """Follow the events that a browser showing `page` gets."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=patience())
        try:
            connection.request("GET", f"/.preview/events?page={page}")
            yield read_states(connection.getresponse())
        finally:
            connection.close()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End the preview; return its status and what it printed meanwhile."""
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=patience())
        return self.process.returncode, said


def read_states(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the data of each event."""
    for line in iter(answer.readline, b""):
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


@contextmanager
def previewing(bench: Workbench, *words: str, project: Path = ROOT) -> Iterator[Shown]:
    """Run a preview of a workbench's content, of the project that lies in `project`."""
    where = ["--content", str(bench.content), "--output", str(bench.output), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "site_build", "serve", *where, *words],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Shown(process, read_port(process), bench)
    finally:
        process.kill()
        process.communicate()


def read_port(process: subprocess.Popen[str]) -> int:
    """Return the port that the preview names once it is ready."""
    assert process.stdout is not None
    said = ""
    impatience = Timer(patience(), process.kill)  # Its end is the end of what it says.
    impatience.start()
    try:
        for line in process.stdout:
            said += line
            if found := re.search(r" at http://.*:([0-9]+)/; ", line):
                return int(found[1])
    finally:
        impatience.cancel()
    raise AssertionError(said)


def wait_for(ask: Callable[[], T], is_wanted: Callable[[T], object]) -> T:
    """Ask until the answer is the wanted one, and fail when it does not come."""
    deadline = time.monotonic() + patience()
    while not is_wanted(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)
    return answer
