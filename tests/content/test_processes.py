"""The processes of `make run`, `fore-edge run` and the Procfile: an edge and a watcher."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from tests.content.workshop import ROOT, find_free_port, lay_out, plain_environment
from tests.own_journal import TEST_CONTENT
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

_POST = "marbled-paper"
_HONCHO = str(Path(sys.executable).with_name("honcho"))


@contextmanager
def running(command: Sequence[str], folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run a command in `folder`, and nothing of it when the block is left."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**plain_environment(), "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def read_page(port: int) -> str:
    """Return the post's page."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=patience())) as connection:
        connection.request("GET", f"/journal/{_POST}/")
        return connection.getresponse().read().decode()


def awaits(port: int, wanted: str) -> bool:
    """Return whether the post's page comes to say `wanted`."""
    deadline = time.monotonic() + patience()
    while time.monotonic() < deadline:
        with suppress(OSError, HTTPException):
            if wanted in read_page(port):
                return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("command", "status"),
    [(["tools/run"], 0), *in_ci(([_HONCHO, "start"], 143))],
    ids=["run", "honcho"],
)
def test_a_change_of_the_content_is_served(tmp_path: Path, command: list[str], status: int) -> None:
    """A post that is changed while it is served is soon served as it is; SIGTERM ends it all."""
    lay_out(tmp_path, TEST_CONTENT)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "run").symlink_to(ROOT / "tools" / "run")
    post, port = tmp_path / "content" / "posts" / "third.md", find_free_port()

    with running(command, tmp_path, port) as process:
        assert awaits(port, "<h1")
        post.write_text(post.read_text("utf-8") + "\nWritten while it ran.\n", "utf-8")
        assert awaits(port, "Written while it ran.")
        assert awaits(port, f'href="http://127.0.0.1:{port}/journal/{_POST}/"')
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=patience())

    assert process.returncode == status, said
    assert "Traceback" not in said


def test_what_is_served_stays_the_build_for_its_address(tmp_path: Path) -> None:
    """A second `run` is refused before it builds. The first one runs with a full output."""
    lay_out(tmp_path, TEST_CONTENT)
    command, port = tmp_path / ".bin" / "fore-edge", find_free_port()
    with running(["/bin/sh", "-c", f"exec '{command}' run >/dev/full"], tmp_path, port):
        assert awaits(port, f'href="http://127.0.0.1:{port}/journal/{_POST}/"')
        served = (tmp_path / "build" / "current").readlink()
        second = subprocess.run(
            [command, "run", "--port", str(find_free_port())],
            cwd=tmp_path,
            env=plain_environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=patience(),
        )
        assert second.returncode == 1
        assert "is served by another edge (process " in second.stderr
        assert second.stderr.count("\n") == 1
        assert (tmp_path / "build" / "current").readlink() == served
