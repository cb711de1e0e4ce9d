"""The receiver that purges Varnish: forged messages are refused, and others are tried again."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection

import pytest

from edge_api.net.signatures import new_secret, sign
from edge_api.webhooks.endpoints import format_event
from tests.drills.varnish import receiver
from tests.edge.edge_process import ROOT, free_port

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

SECRET = new_secret()
DATA = {"everything": False, "urls": ["https://journal.example/a/"]}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Return the port of a receiver whose Varnish is away."""
    found = free_port()
    with receiver(found, free_port(), SECRET):
        yield found


@pytest.mark.parametrize(
    ("event", "secret", "status"),
    [
        ("site.changed", SECRET, 502),
        ("webhook.test", SECRET, 204),
        ("site.changed", new_secret(), 400),
    ],
    ids=["signed", "test", "foreign"],  # secrets differ between the processes that collect
)
def test_only_what_the_edge_signed_is_purged(
    port: int, event: str, secret: str, status: int
) -> None:
    """With Varnish away the edge learns of it by 502, and a test event needs no Varnish."""
    body = format_event(event, "", DATA).encode()
    assert post(port, body, sign([secret], "id", datetime.now(UTC), body)) == status


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type": "site.changed"}'])
def test_broken_messages_are_refused(port: int, text: str) -> None:
    """The receiver goes on."""
    body = text.encode()
    assert post(port, body, sign([SECRET], "id", datetime.now(UTC), body)) == 400


@pytest.mark.parametrize("length", ["-1", "4194305", "many", ""])
def test_a_length_that_is_none_is_refused(port: int, length: str) -> None:
    """Nothing is read: a body without an end would be read for ever."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            assert b" 400 " in answer.readline()


@pytest.mark.parametrize("secret", [{}, {"PURGE_SECRET": ""}])
def test_without_a_secret_it_says_what_to_set(secret: dict[str, str]) -> None:
    """An empty one too, which everybody could sign with."""
    ended = subprocess.run(
        [sys.executable, ROOT / "deploy" / "varnish_purge.py"],
        env=secret,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (
        1,
        "PURGE_SECRET is missing: set it to what webhooks add printed\n",
    )


def post(port: int, body: bytes, headers: dict[str, str]) -> int:
    """Return the status of the answer to a message."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/purge", body, headers)
    answer = connection.getresponse()
    connection.close()
    assert answer.status != 204 or "Content-Length" not in answer.headers  # RFC 9110, section 8.6
    return answer.status
