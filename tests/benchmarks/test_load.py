"""Requests of the benchmarks: those of production, from many clients by way of a proxy."""

import json
import os
import re
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import pytest

from benchmarks import peers
from benchmarks.load import Load, forwarded, run
from benchmarks.server import Served

pytestmark = pytest.mark.size("ci")

ADDRESS, ID = "X-Forwarded-For", "X-Request-ID"
KEY = {"X-API-Key": "secret"}


@dataclass
class Recorder:
    """A server that answers everything and remembers what came."""

    origin: str = ""
    lines: list[str] = field(default_factory=list)
    """Method and path."""
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    """The ports of its clients: one for each connection."""

    def values(self, name: str) -> list[str]:
        """Return a header of each request."""
        return [headers[name] for headers in self.headers]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Run a recorder."""
    seen = Recorder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.ports.add(self.client_address[1])
            seen.lines.append(f"{self.command} {self.path}")
            seen.headers.append(dict(self.headers.items()))
            seen.bodies.append(self.rfile.read(int(self.headers["Content-Length"] or 0)).decode())
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET  # noqa: N815  as http.server has it

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        seen.origin = f"http://127.0.0.1:{server.server_port}"
        yield seen
        server.shutdown()
        thread.join()


def send(recorder: Recorder, requests: Sequence[str]) -> None:
    """Put a load on a recorder."""
    subprocess.run([Path("tools/provide").resolve(), "wrk"], check=True, capture_output=True)
    load = Load(recorder.origin, requests, KEY, connections=2)
    assert run(load, Served(recorder.origin, os.getpid()), 1).requests > 100


def test_no_two_requests_are_equal(recorder: Recorder) -> None:
    """Each comes from another address, with an id of its own and one of the paths."""
    paths = [f"/posts/{number}" for number in range(5)]
    send(recorder, paths)

    assert set(recorder.lines) == {f"GET {path}" for path in paths}
    assert len(set(recorder.values(ADDRESS))) == len(recorder.headers)
    assert len(set(recorder.values(ID))) == len(recorder.headers)
    assert all(re.fullmatch(r"10(\.\d{1,3}){3}", value) for value in recorder.values(ADDRESS))
    assert all(re.fullmatch("[0-9a-f]{32}", value) for value in recorder.values(ID))
    assert {tuple(headers.get(name) for name in KEY) for headers in recorder.headers} == {
        ("secret",)
    }


def test_no_two_bodies_are_equal_in_two_runs(recorder: Recorder) -> None:
    """A lead like one of an earlier round would be a repeat, which the edge scores as spam."""
    for _ in range(2):
        send(recorder, ['/leads {"name": "Reader {n}", "message": "{n}."}'])

    leads = [json.loads(body) for body in recorder.bodies]
    assert set(recorder.lines) == {"POST /leads"}
    assert set(recorder.values("Content-Type")) == {"application/json"}
    assert all(lead["name"] == f"Reader {lead['message'].strip('.')}" for lead in leads)
    assert len({lead["name"] for lead in leads}) == len(leads)


def test_other_clients_come_from_many_addresses_too() -> None:
    """Clients that are not wrk send the same header fields."""
    sent = [forwarded() for _ in range(300)]

    assert len({headers[ADDRESS] for headers in sent}) == 300
    assert len({headers[ID] for headers in sent}) == 300
    assert all(re.fullmatch(r"10(\.\d{1,3}){3}", headers[ADDRESS]) for headers in sent)


def test_the_shipped_configuration_of_nginx_works(tmp_path: Path, recorder: Recorder) -> None:
    """Each request gets an id and its client's address, and connections to the edge are kept."""
    folder = tmp_path / "nginx"
    with peers.proxy(folder, recorder.origin) as proxy:
        before = len(recorder.headers)
        trusted = ssl.create_default_context(cafile=folder / peers.CERTIFICATE)
        for _ in range(5):
            asked = Request(f"{proxy.origin}/journal/", headers={ADDRESS: "10.0.0.1"})  # noqa: S310
            with urlopen(asked, timeout=30, context=trusted) as answer:  # noqa: S310
                assert answer.status == 200

    assert proxy.origin.startswith("https://")
    assert recorder.lines[before:] == ["GET /journal/"] * 5
    assert set(recorder.values(ADDRESS)[before:]) == {"10.0.0.1, 127.0.0.1"}
    assert len(set(recorder.values(ID))) == len(recorder.headers)
    assert len(recorder.ports) == 1


def test_a_changed_nginx_configuration_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that cannot be adapted to this machine is named, and nothing is measured."""
    post = tmp_path / "nginx.conf"
    post.write_text(peers.SHIPPED.read_text("utf-8").replace("listen 443 ", "listen 8443 "))
    monkeypatch.setattr(peers, "SHIPPED", post)

    with pytest.raises(SystemExit, match="has no 'listen 443'"):
        peers.proxy(tmp_path / "nginx", "http://127.0.0.1:1")
