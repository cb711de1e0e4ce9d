"""A client that sends exactly the bytes it is told, and reads what comes back answer by answer."""

import asyncio
import json
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

from multidict import CIMultiDict

from tests.patience import patience

_NO_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{8,64}")


@dataclass
class Answer:
    """An answer as it came over the wire."""

    status: int
    headers: CIMultiDict[str]
    body: bytes

    @property
    def closes(self) -> bool:
        """True if it announces the end of the connection."""
        return self.headers.get("Connection") == "close"

    def error(self) -> str:
        """Return the sentence of an Error body, having checked that it is nothing more."""
        assert self.headers["Content-Type"] == "application/json"
        body = json.loads(self.body)
        assert list(body) == ["error"]
        return str(body["error"])


@dataclass
class Connection:
    """One connection to the edge."""

    reader: StreamReader
    writer: StreamWriter

    async def ask(self, raw: bytes) -> Answer:
        """Send bytes and return the next answer."""
        self.writer.write(raw)
        return await self.answer(is_head=raw.startswith(b"HEAD "))

    async def answer(self, *, is_head: bool = False) -> Answer:
        """Return the next answer, having checked what holds for every one."""
        async with asyncio.timeout(patience()):
            head = await self.reader.readuntil(b"\r\n\r\n")
            start, *lines = head.decode("latin-1").split("\r\n")[:-2]
            fields = (line.partition(": ") for line in lines)
            headers = CIMultiDict((name, value) for name, _, value in fields)
            status = int(start.split()[1])
            length = 0 if is_head or status in _NO_BODY else int(headers["Content-Length"])
            answer = Answer(status, headers, await self.reader.readexactly(length))
        check_answer(answer)
        return answer

    async def is_reusable(self) -> bool:
        """Return whether another request is answered on this connection."""
        return (await self.ask(b"GET /api/public/ping HTTP/1.1\r\nHost: x\r\n\r\n")).status == 200

    async def is_closed(self) -> bool:
        """Wait for the end of the connection; return whether nothing more came."""
        async with asyncio.timeout(patience()):
            with suppress(ConnectionError):  # a reset ends it as well
                return await self.reader.read() == b""
        return True


def check_answer(answer: Answer) -> None:
    """Check the rules that no answer breaks."""
    assert answer.status != 500
    assert "Server" not in answer.headers
    assert _REQUEST_ID.fullmatch(answer.headers["X-Request-ID"])
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for name in set(answer.headers):
        assert len(answer.headers.getall(name)) == 1, name


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    """Open a connection to the edge at `url`."""
    port = int(url.rpartition(":")[2])
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield connection
    finally:
        connection.writer.close()
        with suppress(ConnectionError):
            await connection.writer.wait_closed()
