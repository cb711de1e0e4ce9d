"""The edge as its user runs it: a process of its own, with settings from the environment alone."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO

from tests.patience import patience

ROOT = Path(__file__).parents[2]
_SYSTEM = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START")
Headers = Mapping[str, str]


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return when something holds; fail when it does not come to that."""
    for _ in range(round(patience(max(seconds, 60.0)) / 0.01)):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class Installation:
    """A folder to run commands in, and the settings they get."""

    folder: Path
    settings: Mapping[str, str]

    @property
    def store(self) -> Path:
        """The file of the store."""
        return Path(self.settings["DATABASE_URL"].removeprefix("sqlite:///"))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its commands."""
        kept = {name: os.environ[name] for name in _SYSTEM if name in os.environ}
        return {**kept, "PYTHONPATH": str(ROOT), **self.settings}

    def changed(self, **settings: str) -> "Installation":
        """Return the same installation with settings that differ."""
        return Installation(self.folder, {**self.settings, **settings})

    def start(
        self,
        *words: str,
        module: str = "edge_api",
        stderr: IO[str] | int = subprocess.PIPE,
        stdin: int | None = None,
    ) -> subprocess.Popen[str]:
        """Start a command of the edge; its complaints are kept for whoever reads them."""
        return subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command to its end; return exit code, output and complaints."""
        with self.start(*words) as process:
            said, complained = process.communicate(timeout=patience())
        return process.returncode, said, complained

    @contextmanager
    def serving(self) -> Iterator["ServedEdge"]:
        """Serve from this installation; kill what is left at the end.

        One that replicates gets SIGTERM first: its replicator would be left.
        """
        with self.start("serve") as process:
            try:
                yield ServedEdge(process, int(self.settings["PORT"]), _greeting(process))
            finally:
                if self.settings.get("LITESTREAM_REPLICA"):
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(patience())
                process.kill()


@dataclass
class ServedEdge:
    """A serving process."""

    process: subprocess.Popen[str]
    port: int
    greeting: str

    def get(self, path: str, headers: Headers | None = None) -> tuple[int, Headers, bytes]:
        """Return status, headers and body of one GET."""
        return self.ask("GET", path, None, headers or {})

    def post(self, path: str, body: bytes, headers: Headers) -> tuple[int, Headers, bytes]:
        """Return the same of one POST."""
        return self.ask("POST", path, body, headers)

    def ask(
        self, method: str, path: str, body: bytes | None, headers: Headers
    ) -> tuple[int, Headers, bytes]:
        """Return the same of one request of any method."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=patience())
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def await_body(self, path: str, wanted: bytes) -> bool:
        """Ask until the body has `wanted` in it; return whether it came to that."""
        deadline = time.monotonic() + patience()
        while time.monotonic() < deadline:
            with suppress(OSError, HTTPException):
                if wanted in self.get(path)[2]:
                    return True
            time.sleep(0.05)
        return False

    def end(self, signal_number: int) -> tuple[int, str]:
        """Send a signal; return the exit code, which must come in 15 s, and the complaints."""
        self.process.send_signal(signal_number)
        _, complained = self.process.communicate(timeout=patience(15))
        return self.process.returncode, complained


def _greeting(process: subprocess.Popen[str]) -> str:
    """Return the first line that the process says, or all its complaints if it ends instead."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout.readline() or process.stderr.read()
