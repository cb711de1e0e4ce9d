"""An edge that serves a small build, and a client that sends exactly what it is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import brotli
import pytest
from multidict import CIMultiDict

from edge_api.http.static import MAX_IN_MEMORY_BYTES
from tests.edge.small_builds import make_post, point_at, write_build

PAGE = "<!DOCTYPE html><title>A</title><p>" + "words " * 200
LARGE = bytes(number % 251 for number in range(MAX_IN_MEMORY_BYTES + 5000))
FILES: dict[str, bytes | str] = {
    "index.html": "<p>home</p>",
    "index.md": "# Home\n",
    "404.html": "<p>missing</p>",
    "404.md": "# Missing\n",
    "llms.txt": "# Journal\n",
    "sitemap.xml": "<urlset/>",
    "feed.xml": "<feed/>",
    "journal/a/index.html": PAGE,
    "journal/a/index.html.br": brotli.compress(PAGE.encode()),
    "journal/a/index.html.gz": b"as if it were gzip",
    "journal/a/index.md": "# A\n",
    "plain/index.html": "<p>no twin</p>",
    "contact/index.html": "<p>contact</p>",
    "theme/style.0123456789ab.css": "p { color: red }",
    "images/edge.png": b"\x89PNG",
    "images/large.bin": LARGE,
    "empty.txt": "",
    ".env": "SECRET=1",
    ".well-known/security.txt": "Contact: x",
    "\u672c/index.html": "<p>book</p>",
}


@dataclass
class RawAnswer:
    """An answer as it came over the wire."""

    status: int
    headers: CIMultiDict[str]
    body: bytes


@dataclass
class RawClient:
    """Sends request targets as they are written: no library tidies them up."""

    host: str
    port: int

    async def send(self, target: str | bytes, *lines: str, method: str = "GET") -> RawAnswer:
        """Send one request and return its answer, the connection closed behind it."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            raw = target.encode("latin-1") if isinstance(target, str) else target
            head = "".join(f"{line}\r\n" for line in ("Host: x", "Connection: close", *lines))
            writer.write(method.encode() + b" " + raw + b" HTTP/1.1\r\n" + head.encode() + b"\r\n")
            received = await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        return parse_answer(received)


def parse_answer(received: bytes) -> RawAnswer:
    """Return an answer from its bytes."""
    head, _, body = received.partition(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").split("\r\n")
    fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    return RawAnswer(int(start.split()[1]), CIMultiDict(fields), body)


@pytest.fixture
def build_dir(tmp_path: Path) -> Path:
    """Return a folder of builds with one build of `FILES`."""
    folder = tmp_path / "builds"
    point_at(folder, write_build(folder, posts=[make_post("a")], files=FILES))
    return folder


@pytest.fixture
async def site(make_edge: Any, build_dir: Path) -> AsyncIterator[Any]:
    """Return an edge that serves that build."""
    async with make_edge(BUILD_DIR=str(build_dir)) as running:
        yield running


@pytest.fixture
def raw(site: Any) -> RawClient:
    """Return a client of that edge."""
    parts = urlsplit(site.url)
    return RawClient(str(parts.hostname), int(parts.port or 0))
