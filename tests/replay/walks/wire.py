"""Walks of raw bytes: requests that HTTP forbids, many on a connection, and bodies that drip in."""

import json
from typing import Final

from tests.replay.walk import Walk, walk

HOST: Final = b"Host: journal.test\r\n"
PING: Final = b"GET /api/public/ping HTTP/1.1\r\n" + HOST
LEADS: Final = (
    b"POST /api/public/v1/leads HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
)
LEAD: Final = json.dumps(
    {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
).encode()
END: Final = b"\r\n"
RAW: Final[tuple[bytes, ...]] = (
    b"GET /api/public/ping HTTP/1.0\r\n\r\n",
    b"GET /api/public/ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    PING + b"Connection: close\r\n\r\n",
    b"GET /api/public/ping HTTP/1.1\r\n\r\n",
    b"GET http://journal.test/api/public/ping HTTP/1.1\r\n" + HOST + END,
    b"GET http://other.example/robots.txt HTTP/1.1\r\n" + HOST + END,
    b"OPTIONS * HTTP/1.1\r\n" + HOST + END,
    b"GET * HTTP/1.1\r\n" + HOST + END,
    b"CONNECT journal.test:80 HTTP/1.1\r\n" + HOST + END,
    b"GET api HTTP/1.1\r\n" + HOST + END,
    b"GET /api/public/ping HTTP/2.0\r\n" + HOST + END,
    b"GET /api/public/ping HTTP/9\r\n" + HOST + END,
    b"GET /api/public/ping\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"G\xc3\x84T / HTTP/1.1\r\n" + HOST + END,
    b"GET /\xff HTTP/1.1\r\n" + HOST + END,
    b"GET / a HTTP/1.1\r\n" + HOST + END,
    PING + b"Bad Header: x\r\n\r\n",
    PING + b"No-Colon\r\n\r\n",
    PING + b" folded: x\r\n\r\n",
    PING + b"X: a\x00b\r\n\r\n",
    PING + b"X: " + b"a" * 9000 + b"\r\n\r\n",
    b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + END,
    PING + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + END,
    PING + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    PING + HOST + END,
    LEADS + b"Content-Length: x\r\n\r\n",
    LEADS + b"Content-Length: -1\r\n\r\n",
    LEADS + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    LEADS + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    LEADS + b"Transfer-Encoding: chunked\r\n\r\nx\r\n{}\r\n0\r\n\r\n",
    LEADS + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(LEAD), LEAD),
    LEADS + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    LEADS + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    LEADS + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\n{}",
    PING.replace(b"GET", b"POST") + b"Content-Length: 2\r\n\r\n{}",
)
DRIPPING: Final = (
    LEADS + b'Content-Length: 100\r\n\r\n{"name"',
    LEADS + b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"na\r\n',
    b"POST /contact/ HTTP/1.1\r\n"
    + HOST
    + b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=",
)


@walk("wire-raw")
def raw(w: Walk) -> None:
    """Send each of the requests on a connection of its own."""
    for data in RAW:
        w.raw(data, method=data.partition(b" ")[0].decode("latin-1"))
    w.raw((PING + END) * 3, answers=3)
    w.raw(PING + END + b"GET /none/ HTTP/1.1\r\n" + HOST + END + PING + END, answers=3)
    w.raw(PING + b"Connection: close\r\n\r\n" + PING + END, answers=2)


@walk("wire-dripping-bodies", slow=True)
def dripping(w: Walk) -> None:
    """Announce bodies and never send their end, which takes as long as the edge waits."""
    for data in DRIPPING:
        w.raw(data, method="POST")
