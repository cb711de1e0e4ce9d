"""A receiver of webhooks in a thread, for tests of commands, which have an event loop of theirs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue


@dataclass
class Listener:
    """The events that it got, and its answers."""

    url: str = ""
    status: int = 204
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    arrivals: "Queue[str]" = field(default_factory=Queue)
    before_answer: Callable[[], None] | None = None


@contextmanager
def listening() -> Iterator[Listener]:
    """Listen on this machine until the test is done."""
    listener = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listener.received.append(({k.lower(): v for k, v in self.headers.items()}, body))
            if listener.before_answer is not None:
                listener.before_answer()
            listener.arrivals.put(self.headers["webhook-id"])
            self.send_response(listener.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    listener.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield listener
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
