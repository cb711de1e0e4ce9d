"""A service of several workers, as its user starts it, on a real PostgreSQL."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.edge.load import LIMITS
from tests.edge.postgresql import PostgreSQL
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience

SECRET_KEY = "a secret of thirty-two characters"


@dataclass
class Service:
    """A supervisor and its workers."""

    process: subprocess.Popen[str]
    port: int
    greeting: list[str]
    """The lines that were printed to the terminal."""
    installation: Installation

    @property
    def origin(self) -> str:
        """Its address: scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """The URL of its store."""
        return self.installation.settings["DATABASE_URL"]

    @property
    def edge(self) -> ServedEdge:
        """The same as one edge, which is what a client sees."""
        return ServedEdge(self.process, self.port, self.greeting[0])

    @property
    def log(self) -> str:
        """The log up to now."""
        return (self.installation.folder / "log").read_text()

    @property
    def workers(self) -> dict[int, int]:
        """The process of each worker that is alive, by its number."""
        found = {number_of(each): each.pid for each in self.children()}
        return {number: pid for number, pid in found.items() if number}

    def children(self) -> list[psutil.Process]:
        """Return the processes of all workers, also of those that start or end."""
        with suppress(psutil.NoSuchProcess):
            return [each for each in psutil.Process(self.process.pid).children() if is_alive(each)]
        return []

    def await_log(self, words: str, times: int = 1) -> None:
        """Return when words have been logged so often."""
        self.await_that(lambda: self.log.count(words) >= times)

    def await_that(self, holds: Callable[[], bool]) -> None:
        """Return when something holds; it has to come to that."""
        deadline = time.monotonic() + patience()
        while not holds():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)

    def fail_to_renew(self) -> None:
        """Ask for a renewal, and return when it was broken off."""
        words = "the other workers stay as they are"
        times = self.log.count(words) + 1
        self.process.send_signal(signal.SIGHUP)
        self.await_log(words, times)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the supervisor a signal, and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(30)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process is there and no zombie."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def number_of(process: psutil.Process) -> int:
    """Return which worker a process is; 0 if it is none yet, or no more."""
    with suppress(psutil.NoSuchProcess):
        words = process.cmdline()
        if "--inherited" in words:
            return int(words[words.index("--inherited") + 1].partition(",")[0])
    return 0


@contextmanager
def installed(folder: Path, postgresql: PostgreSQL) -> Iterator[Installation]:
    """Install in a folder: without limits, with a small build and an empty database."""
    port = free_port()
    builds = folder / "build"
    url = f"http://127.0.0.1:{port}"
    point_at(builds, write_build(builds, posts=[make_post("a")], site_url=url))
    database = postgresql.make_store()
    settings = {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(port),
        "DATABASE_URL": database,
        "SECRET_KEY": SECRET_KEY,
        "BUILD_DIR": str(builds),
    }
    try:
        yield Installation(folder, settings)
    finally:
        postgresql.execute(f"DROP DATABASE IF EXISTS {database.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture
def installation(tmp_path: Path, postgresql: PostgreSQL) -> Iterator[Installation]:
    """Return an installation of the test's own."""
    with installed(tmp_path, postgresql) as made:
        yield made


@contextmanager
def supervised(
    installation: Installation, count: int = 2, module: str = "edge_api"
) -> Iterator[Service]:
    """Serve with so many workers; kill what is left at the end."""
    words = ("serve", "--workers", str(count))
    with (installation.folder / "log").open("w") as complaints:
        process = installation.start(*words, module=module, stderr=complaints)
    assert process.stdout is not None
    with process:
        service = Service(process, int(installation.settings["PORT"]), [], installation)
        try:
            service.greeting += [process.stdout.readline(), process.stdout.readline()]
            service.await_log(" serves\n", count)
            yield service
        finally:
            left = [process.pid, *(each.pid for each in service.children())]
            for pid in left:
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(pid).kill()


@pytest.fixture
def service(installation: Installation) -> Iterator[Service]:
    """Return a service with two workers that the test may end."""
    with supervised(installation) as running:
        yield running


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL) -> Iterator[Service]:
    """Return a service with two workers for all tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("lasting")
    with installed(folder, postgresql) as made, supervised(made) as running:
        yield running
