"""The drill: writers post leads, the server is killed in the middle, and comes back.

What was acknowledged must be there. `python crash.py KILLS` runs it and prints what it saw.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

WRITERS = 8
START_SECONDS = 20.0
LEADS = "/api/public/v1/leads"
PRODUCT = ("-m", "edge_api", "serve")
ROOT = Path(__file__).parents[2]
_UNLIMITED = ("RATE_LEADS", "RATE_LEADS_ATTEMPTS", "RATE_AUTHENTICATED", "RATE_FAILED_AUTH")


@dataclass
class Seen:
    """What the drill saw."""

    acknowledged: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    restarts: list[float] = field(default_factory=list)
    """Seconds from the start of each process to its first answer."""

    @property
    def lost(self) -> set[str]:
        """Ids of leads that were acknowledged and are not there."""
        return self.acknowledged - self.stored


@dataclass(frozen=True)
class Target:
    """How the server under test is started, and where it listens."""

    words: Sequence[str]
    port: int
    folder: Path

    @contextmanager
    def running(self, seen: Seen) -> Iterator[subprocess.Popen[bytes]]:
        """Run the server, and kill it without warning at the end."""
        changes = {
            **dict.fromkeys(_UNLIMITED, "0"),
            "PORT": str(self.port),
            "DATABASE_URL": f"sqlite:///{self.folder}/edge.db",
            "BUILD_DIR": str(self.folder / "build"),
        }
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *self.words],
            env={**os.environ, **changes},
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait()
            seen.restarts.append(time.monotonic() - started)
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError, HTTPException):
                if self.ask("GET", "/api/public/ping")[0] == 200:
                    return
            time.sleep(0.01)
        raise TimeoutError("the server did not come back")

    def ask(self, method: str, path: str, body: str = "", key: str = "") -> tuple[int, bytes]:
        """Return the status and the body of one answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"Content-Type": "application/json"} if body else {}
            headers |= {"X-API-Key": key} if key else {}
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def drill(words: Sequence[str], kills: int, folder: Path, seed: int = 7) -> Seen:
    """Kill the server `kills` times under eight writers; return what became of their leads."""
    target, seen, chance = Target(words, free_port(), folder), Seen(), random.Random(seed)  # noqa: S311  no secret
    for _ in range(kills):
        stop = threading.Event()
        writers = [
            threading.Thread(target=_write, args=(target, seen, stop)) for _ in range(WRITERS)
        ]
        with target.running(seen):
            for writer in writers:
                writer.start()
            time.sleep(chance.uniform(0.05, 0.3))
        stop.set()
        for writer in writers:
            writer.join()
    with target.running(seen):
        seen.stored = _stored(target, folder)
    return seen


def _write(target: Target, seen: Seen, stop: threading.Event) -> None:
    """Post leads until told to stop or the server is gone; note each that is acknowledged."""
    while not stop.is_set():
        body = json.dumps(
            {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
        )
        try:
            status, answer = target.ask("POST", LEADS, body)
        except (OSError, HTTPException):
            return
        if status == 201:
            seen.acknowledged.add(json.loads(answer)["id"])


def _stored(target: Target, folder: Path) -> set[str]:
    """Return the ids of all leads, as the service itself lists them."""
    key = (folder / "edge.dev-key").read_text().strip()
    found: set[str] = set()
    while True:
        path = f"/api/public/v1/admin/leads?select=id&order=id&limit=1000&offset={len(found)}"
        status, answer = target.ask("GET", path, key=key)
        assert status == 200, answer
        rows = json.loads(answer)
        if not rows:
            return found
        found |= {row["id"] for row in rows}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        outcome = drill(PRODUCT, int(sys.argv[1]), Path(temporary))
    slowest = max(outcome.restarts)
    print(
        f"{len(outcome.restarts) - 1} kills, {len(outcome.acknowledged)} leads acknowledged, "
        f"{len(outcome.lost)} lost; slowest restart {slowest:.2f} s"
    )
    sys.exit(1 if outcome.lost else 0)
