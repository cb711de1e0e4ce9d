"""Examples are put into languages without changing a byte of what is sent."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from edge_api.operation.reference.samples import Call, write_curl, write_javascript, write_python
from tests.patience import patience
from tools.judges import NODE

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

HARD = {
    "quotes": 'it\'s "so" `echo no` $HOME $(id) ${x} \\ \\n',
    "lines": "one\ntwo\ttabs\r\nthree",
    "letters": "ä 本 😀 \u2028 \x7f",
    "none": None,
    "flags": [True, False, 0, -1.5, 1e20],
    "deep": {"": [], "empty": {}, "list": [{"a": [1]}]},
    "secret": "fe_cl_...",
}
RUNNERS = {
    "curl": (write_curl, ["bash", "-eu"]),
    "python": (write_python, [sys.executable]),
    "js": (write_javascript, [str(NODE), "--input-type=module", "-"]),
}


class Listener(BaseHTTPRequestHandler):
    """Keeps each request, and says that it came."""

    got: list[tuple[str, str, dict[str, str], bytes]]

    def answer(self) -> None:
        """Keep the request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.got.append((self.command, self.path, headers, body))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815  names of http.server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def listener() -> Iterator[tuple[str, list[Any]]]:
    """Return the origin of a server, and the requests that came there."""
    got: list[Any] = []
    handler = type("OwnListener", (Listener,), {"got": got})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


def run(language: str, call: Call, folder: Path) -> None:
    """Run an example to its end; it must succeed."""
    write, command = RUNNERS[language]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KEY": "the 'key' $HOME",
        "ACCESS_TOKEN": "token",
        "CLIENT_ID": "a",
        "CLIENT_SECRET": "b",
        "SECRET": 'it\'s \\ "mine"' if call.is_form else "mine",
    }
    done = subprocess.run(
        command,
        input=write(call),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience(),
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", RUNNERS)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_body_arrives_as_it_was_declared(
    language: str, method: str, listener: tuple[str, list[Any]], tmp_path: Path
) -> None:
    """Quotes, lines, other scripts and nested members come through each language unchanged."""
    origin, got = listener
    headers = {"Prefer": "count=exact; it's"}
    secrets = {"fe_cl_...": "SECRET"}
    call = Call(method, f"{origin}/a?b='%27", "key", headers, HARD, variables=secrets)
    run(language, call, tmp_path)

    (sent,) = got
    assert sent[0] == method
    assert sent[1] in {"/a?b=%27%27", "/a?b='%27"}
    assert sent[2]["x-api-key"] == "the 'key' $HOME"
    assert sent[2]["prefer"] == "count=exact; it's"
    assert sent[2]["content-type"] == "application/json"
    assert json.loads(sent[3]) == {**HARD, "secret": "mine"}


@pytest.mark.parametrize("language", RUNNERS)
def test_a_form_arrives_as_it_was_declared(
    language: str, listener: tuple[str, list[Any]], tmp_path: Path
) -> None:
    """Members of a form are encoded by each language, and the client proves who it is."""
    origin, got = listener
    form = {"grant_type": "a&b=c 'd'", "token": "fe_rt_..."}
    call = Call("POST", origin, "client", {}, form, True, {"fe_rt_...": "SECRET"})  # noqa: FBT003
    run(language, call, tmp_path)

    (sent,) = got
    assert sent[2]["authorization"] == "Basic YTpi"
    assert sent[2]["content-type"].startswith("application/x-www-form-urlencoded")
    assert dict(parse_qsl(sent[3].decode())) == {**form, "token": 'it\'s \\ "mine"'}


@pytest.mark.parametrize("language", RUNNERS)
def test_a_question_is_asked_without_a_body(
    language: str, listener: tuple[str, list[Any]], tmp_path: Path
) -> None:
    """A GET carries nothing but its credential."""
    origin, got = listener
    run(language, Call("GET", f"{origin}/posts", "token"), tmp_path)

    (sent,) = got
    assert (sent[0], sent[1], sent[3]) == ("GET", "/posts", b"")
    assert sent[2]["authorization"] == "Bearer token"
    assert "content-type" not in sent[2]
