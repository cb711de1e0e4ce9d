"""Object storage for tests: moto's server, and rclone's, each a process of its own."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from benchmarks.peers.environment import prepare
from tests.edge.edge_process import free_port
from tests.patience import patience

_RCLONE = str(Path(sys.executable).with_name("rclone"))
_ACCESS, _SECRET = "test-access-key", "test-secret-key"


@dataclass
class Bucket:
    """A bucket in a server of object storage."""

    endpoint: str
    url: str = "s3://builds"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which programs reach it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": _ACCESS,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
        }

    def set_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this process reach it."""
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def send(self, method: str, path: str) -> None:
        """Send one request, which must succeed."""
        asked = Request(f"{self.endpoint}{path}", method=method)  # noqa: S310  our own server
        with urlopen(asked, timeout=patience()):  # noqa: S310  our own server
            pass


@contextmanager
def running_moto() -> Iterator[Bucket]:
    """Run moto's server, whose environment is made first where that has not been done."""
    port = free_port()
    command = [str(prepare("moto") / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with _running(command):
        bucket = Bucket(f"http://127.0.0.1:{port}")
        _wait(bucket)
        bucket.send("PUT", "/builds")
        yield bucket


@contextmanager
def running_rclone(folder: Path, port: int, *, is_open: bool = False) -> Iterator[Bucket]:
    """Run rclone's server over the buckets in a folder. It ignores conditions of writes."""
    (folder / "builds").mkdir(parents=True, exist_ok=True)
    key = [] if is_open else ["--auth-key", f"{_ACCESS},{_SECRET}"]
    where = ["--addr", f"127.0.0.1:{port}", *key]
    with _running([_RCLONE, "serve", "s3", str(folder), *where, "--config", "/dev/null"]):
        bucket = Bucket(f"http://127.0.0.1:{port}")
        _wait(bucket)
        yield bucket


@contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def _wait(bucket: Bucket) -> None:
    """Wait until a server answers, with an error too."""
    deadline = time.monotonic() + patience()
    while time.monotonic() < deadline:
        with suppress(URLError, ConnectionError):
            try:
                bucket.send("GET", "/")
            except URLError as error:
                if not hasattr(error, "code"):
                    raise
            return
        time.sleep(0.05)
    raise TimeoutError
