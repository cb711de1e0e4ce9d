"""A client of HTTP/1.1 that sends the given bytes and returns what came, unchanged."""

import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from tests.patience import patience

_BODILESS = (204, 304)
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """One response, with the headers as they were sent, in their order."""

    status: int
    headers: Headers
    body: bytes
    closed: bool = False
    """True if the server closed the connection after it."""

    @property
    def kind(self) -> str:
        """The media type, with its parameters."""
        return self.header("content-type")

    def header(self, name: str) -> str:
        """Return the first value of a header, or an empty text."""
        wanted = name.lower()
        return next((value for each, value in self.headers if each.lower() == wanted), "")

    def json(self) -> Any:
        """Return the value in the body. Raises ValueError for a body that is no JSON."""
        return json.loads(self.body)

    def text(self, *names: str) -> str:
        """Return a member of the JSON body, found by the names on the way to it."""
        value = self.json()
        for name in names:
            value = value[name]
        return str(value)


class Client:
    """Sends requests on one connection, and opens another where the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._reader: BinaryIO | None = None

    def send(self, raw: bytes) -> None:
        """Send bytes."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), patience())
            self._reader = self._socket.makefile("rb")
        with suppress(BrokenPipeError, ConnectionResetError):  # the answer may be there already
            self._socket.sendall(raw)

    def receive(self, method: str = "GET", events: int = 0) -> Answer:
        """Return the next response; of an endless stream, so many of its events.

        Raises EOFError where the connection ended without one.
        """
        assert self._reader is not None
        status, headers = self._read_head(self._reader)
        while 100 <= status < 200:
            status, headers = self._read_head(self._reader)
        body = self._read_body(self._reader, method, status, headers, events)
        closes = events > 0 or _value(headers, "connection").lower() == "close"
        if closes:
            self.close()
        return Answer(status, headers, body, closes)

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None and self._reader is not None:
            self._reader.close()
            self._socket.close()
        self._socket = self._reader = None

    def _read_head(self, reader: BinaryIO) -> tuple[int, Headers]:
        start = reader.readline()
        if not start:
            self.close()
            raise EOFError("the connection ended without an answer")
        headers = []
        while (line := reader.readline().rstrip(b"\r\n")) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        return int(start.split()[1]), headers

    def _read_body(
        self, reader: BinaryIO, method: str, status: int, headers: Headers, events: int
    ) -> bytes:
        if method == "HEAD" or status in _BODILESS:
            return b""
        if _value(headers, "transfer-encoding").lower() == "chunked":
            return _read_chunks(reader, events)
        length = _value(headers, "content-length")
        return reader.read(int(length)) if length else reader.read()


def _read_chunks(reader: BinaryIO, events: int) -> bytes:
    body = b""
    while size := int(reader.readline().partition(b";")[0], 16):
        body += reader.read(size)
        reader.readline()
        if events and body.count(b"\n\n") + body.count(b"\r\n\r\n") >= events:
            return body
    reader.readline()
    return body


def _value(headers: Headers, name: str) -> str:
    return next((value for each, value in headers if each.lower() == name), "")
