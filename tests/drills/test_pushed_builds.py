"""Builds on their way: wires are cut, pushes and edges are killed, and the bucket goes away.

An edge serves a whole build at each moment, and the newest one once it can be fetched.
"""

import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edge_api.schema.pushed_builds import make_keys
from tests.edge.buckets import Bucket, running_rclone
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience
from tests.site_build.workbench import take
from tests.sizes import scaled

pytestmark = pytest.mark.size("ci", grows=True)

PRIVATE, PUBLIC = make_keys()
PAGES = 120
EVENTS = ("the push is killed", "the edge is killed", "wires are cut", "the bucket is away")
LONGEST = 2.5
"""Seconds after a start at most until the kill: a push of these builds takes less."""
MAX_CUT_OFFSET = 60_000  # bytes of an answer after which a connection is cut at the latest


@dataclass
class Wire:
    """A way to a server, which cuts connections while `is_cutting`."""

    target: int
    luck: random.Random
    is_cutting: bool = False
    cuts: int = 0
    port: int = field(default_factory=free_port)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Pass connections on."""
        with socket.create_server(("127.0.0.1", self.port)) as listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            yield

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                here, _ = listener.accept()
                try:
                    there = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    here.close()
                    continue
                for ends in ((here, there), (there, here)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        offset, sent = self.luck.randrange(MAX_CUT_OFFSET), 0
        with suppress(OSError):
            while data := source.recv(4096):
                sink.sendall(data)
                sent += len(data)
                if self.is_cutting and sent > offset:
                    self.cuts += 1
                    break
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@dataclass
class Drill:
    """A home that pushes, an edge elsewhere, and the bucket between them."""

    folder: Path
    luck: random.Random
    wire: Wire
    bucket_port: int
    builds: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """The files of each site by the text of its first page."""

    @property
    def installation(self) -> Installation:
        """The settings of both; what one does not need it does not read."""
        reached = Bucket(f"http://127.0.0.1:{self.wire.port}")
        return Installation(
            self.folder,
            {
                **reached.environment,
                "BUILD_SIGNING_KEY": PRIVATE,
                "BUILD_KEY": PUBLIC,
                "BUILD_URL": f"{reached.url}/journal",
                "BUILD_DIR": str(self.folder / "edge"),
                "DATABASE_URL": f"sqlite:///{self.folder}/edge.db",
                "SITE_URL": "http://journal.test",
                "PORT": str(self.edge_port),
            },
        )

    edge_port: int = field(default_factory=free_port)

    def build(self, number: int) -> bytes:
        """Make a build, half of whose pages differ from the one before; return its first page."""
        texts = {
            f"page-{page}.html": f"{number if page % 2 else 0} {page} ".encode() * 2000
            for page in range(PAGES)
        }
        made = write_build(
            self.folder / "here", f"build-{number:04}", [make_post("first")], dict(texts)
        )
        point_at(self.folder / "here", made)
        first = f"<p>build-{number:04}</p>"
        self.builds[first] = take(made / "site")
        return first.encode()

    def push(self, seconds: float | None = None) -> str:
        """Push to the end, or for so long until it is killed; return its complaints."""
        words = (self.installation.settings["BUILD_URL"], "--output", str(self.folder / "here"))
        with self.installation.start("push", *words, module="site_build") as process:
            if seconds is not None:
                time.sleep(seconds)
                process.kill()
            _, complained = process.communicate(timeout=patience(120))
        return complained

    def check_whole(self) -> None:
        """Check that the edge serves all files of one build."""
        served = take(self.folder / "edge/current/site")
        assert served == self.builds[served["index.html"].decode()]

    def read_bucket_error(self, edge: ServedEdge) -> str:
        """Return what readiness says of the bucket."""
        checks = json.loads(edge.get("/api/public/v1/readiness")[2])["checks"]
        return str(checks["builds"].get("error", ""))


def test_an_edge_serves_whole_builds_whatever_happens(tmp_path: Path) -> None:
    """Each kind of event comes about equally often, at a moment that luck chooses."""
    luck = random.Random(55)  # noqa: S311  no secret
    port = free_port()
    drill = Drill(tmp_path, luck, Wire(port, luck), port)
    with ExitStack() as whole, ExitStack() as life, ExitStack() as storage:
        whole.enter_context(drill.wire.open())
        storage.enter_context(running_rclone(tmp_path / "rclone", port))
        drill.build(0)
        assert drill.push() == ""
        edge = life.enter_context(drill.installation.serving())
        assert edge.await_body("/", b"<p>build-0000</p>")
        for number in range(1, scaled(ci=4, judge=80) + 1):
            page, event = drill.build(number), EVENTS[number % len(EVENTS)]
            if event == "the push is killed":
                drill.push(luck.uniform(0, LONGEST))
            elif event == "the edge is killed":
                assert drill.push() == ""
                time.sleep(luck.uniform(0, LONGEST))
                life.close()
                drill.check_whole()
                edge = life.enter_context(drill.installation.serving())
            elif event == "wires are cut":
                drill.wire.is_cutting = True
                drill.push()
                time.sleep(luck.uniform(0, LONGEST))
                drill.wire.is_cutting = False
            else:
                storage.close()
                deadline = time.monotonic() + patience(60)
                while "cannot be reached" not in drill.read_bucket_error(edge):
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
                life.close()  # without the bucket it starts with the build that it has
                edge = life.enter_context(drill.installation.serving())
                assert edge.get("/")[0] == 200
                storage.enter_context(running_rclone(tmp_path / "rclone", port))
            drill.check_whole()
            assert drill.push() == "", event
            assert edge.await_body("/", page), (number, event)
            drill.check_whole()
        assert drill.wire.cuts > 0
        assert drill.read_bucket_error(edge) == ""
        deadline = time.monotonic() + patience(60)
        # Those that are no longer served are removed after the swap.
        while len([*(tmp_path / "edge").glob("*fetched-*")]) > 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert not [*(tmp_path / "edge").glob(".fetched-*")]
