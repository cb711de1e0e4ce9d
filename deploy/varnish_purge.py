"""Receiver of the webhook `site.changed`: has Varnish forget the addresses that a build changed.

`PURGE_SECRET` is what `webhooks add` printed, `PURGE_PORT` the port of 127.0.0.1 to listen on
(default: 6093), `VARNISH` the address of Varnish for purges (default: 127.0.0.1:6092). It runs with
the edge's Python, which has the library that checks signatures.
"""

import os
import sys
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from standardwebhooks import Webhook, WebhookVerificationError

MAX_BYTES = 4 * 1024 * 1024
"""The longest body that is read; the edge lists at most 1,000 addresses."""


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 once Varnish has purged, 502 if it cannot be reached: the edge tries again."""

    timeout = 30

    def do_POST(self) -> None:
        """Purge what one event names."""
        try:
            length = int(self.headers["Content-Length"])
            # A negative length would be read without limit; an empty body has no valid signature.
            body = self.rfile.read(length) if 0 <= length <= MAX_BYTES else b""
            event = Webhook(os.environ["PURGE_SECRET"]).verify(body, dict(self.headers.items()))
            if event["type"] == "site.changed":
                purge(event["data"])
        except (WebhookVerificationError, ValueError, TypeError, KeyError):
            status = 400
        except (OSError, HTTPException):
            status = 502
        else:
            status = 204
        self.send_response(status)
        self.end_headers()


def purge(data: dict[str, Any]) -> None:
    """Purge the addresses of an event, or everything. Raises OSError and HTTPException."""
    connection = HTTPConnection(os.environ.get("VARNISH", "127.0.0.1:6092"), timeout=10)
    try:
        if data["everything"]:
            ask(connection, "BAN", "/", "")
        for url in data["urls"]:
            parts = urlsplit(url)
            ask(connection, "PURGE", parts.path, parts.netloc)
    finally:
        connection.close()


def ask(connection: HTTPConnection, method: str, path: str, host: str) -> None:
    """Send one request to Varnish. Raises HTTPException unless it answers 200."""
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    answer.read()
    if answer.status != HTTPStatus.OK:
        raise HTTPException(f"{method} {path} was answered {answer.status}")


if __name__ == "__main__":
    if not os.environ.get("PURGE_SECRET"):
        raise SystemExit("PURGE_SECRET is missing: set it to what webhooks add printed")
    port = int(os.environ.get("PURGE_PORT", "6093"))
    with ThreadingHTTPServer(("127.0.0.1", port), Receiver) as server:
        sys.stdout.write(f"listening on port {server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
