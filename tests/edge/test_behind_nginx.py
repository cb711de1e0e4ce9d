"""Unusual requests behind nginx with the shipped configuration."""

import asyncio
import gzip
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peers

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "a\r\nb"}
PACKED = gzip.compress(json.dumps(LEAD).encode())
LEADS = b"POST /api/public/v1/leads"
JSON = b"Content-Type: application/json"
PING = b"/api/public/ping"


def message(line: bytes, *fields: bytes, body: bytes = b"") -> bytes:
    """Return a request to the site behind the proxy, after which the connection ends."""
    length = b"Content-Length: %d" % len(body)
    lines = (line + b" HTTP/1.1", b"Host: journal.example", b"Connection: close", length, *fields)
    return b"\r\n".join((*lines, b"", body))


REQUESTS = {
    "an unknown method": (message(b"FROB /"), 501, "Unknown method"),
    "a wrong method": (message(b"PUT /api/public/v1/leads"), 405, "Method not allowed"),
    "an absolute target": (message(b"GET http://journal.example" + PING), 200, '"ok"'),
    "no resource": (message(b"OPTIONS *"), 400, "<center>nginx"),
    "a tunnel": (message(b"CONNECT a.example:443"), 400, "<center>nginx"),
    "gzip": (message(LEADS, JSON, b"Content-Encoding: gzip", body=PACKED), 201, '"a\\nb"'),
    "half of gzip": (
        message(LEADS, JSON, b"Content-Encoding: gzip", body=PACKED[:-8]),
        400,
        "content coding is broken",
    ),
    "zstd": (message(LEADS, JSON, b"Content-Encoding: zstd", body=b"{}"), 415, "Known codings"),
    "no form": (
        message(b"POST /contact/", b"Content-Type: multipart/form-data; boundary=x", body=b"x"),
        415,
        "<!DOCTYPE html>",
    ),
}


async def test_unusual_requests_are_answered_behind_nginx(make_edge: Any, tmp_path: Path) -> None:
    """As by the edge itself, but for what nginx refuses of its own."""
    async with make_edge(TRUSTED_PROXIES="127.0.0.1") as edge:
        running = peers.proxy(tmp_path / "nginx", edge.url)
        proxy = await asyncio.to_thread(running.__enter__)
        try:
            port = int(proxy.origin.rpartition(":")[2])
            trusted = ssl.create_default_context(cafile=tmp_path / "nginx" / peers.CERTIFICATE)
            for name, (raw, status, words) in REQUESTS.items():
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
                writer.write(raw)
                answer = (await asyncio.wait_for(reader.read(), 60)).decode()
                writer.close()
                assert answer.startswith(f"HTTP/1.1 {status} "), (name, answer)
                assert words in answer, name
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)
