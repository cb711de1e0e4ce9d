"""The HTTP server: sockets, connection limits, graceful shutdown."""

import asyncio
import errno
import logging
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, cast

from aiohttp import hdrs, web
from aiohttp.http_exceptions import BadStatusLine, LineTooLong
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest

from edge_api.db.problems import Problem
from edge_api.http.response import Request, report_internal_error

DRAIN_SECONDS: Final = 2.0
"""Time after the stop signal in which requests are still accepted, while readiness fails."""
GRACE_SECONDS: Final = 10.0
"""Time limit for running requests after `DRAIN_SECONDS`; then connections are aborted."""
LINGER_SECONDS: Final = 2.0
"""Time in which the rest of a rejected body is read, so that its answer arrives."""
BACKLOG: Final = 1024
HEAD_TIMEOUT_SECONDS: Final = 15.0
"""Time limit for the head of a request, from its first byte or from a new connection."""
SEND_TIMEOUT_SECONDS: Final = 30.0  # time limit for a client that reads nothing of its answer
MAX_DESCRIPTORS: Final = 65_536  # the limit of open files is raised to this if the system allows it

_KEEP_SOCKET_FILE: Final[Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""Keeps the file of a Unix socket when its server closes, as every Python before 3.13 does."""

_UNKNOWN_METHOD: Final = re.compile(
    r"method[^:\n]*:\n\n  b['\"][!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP/", re.ASCII
)
"""Matches aiohttp's message for a request line in which only the method is invalid."""

Handler = Callable[[Request], Awaitable[web.StreamResponse]]
"""Answers a request, and never raises."""
Reject = Callable[[Request, Problem], web.StreamResponse]
"""Answers a message that cannot be parsed."""

_log = logging.getLogger(__name__)


class ConnectionProtocol(RequestHandler):
    """aiohttp's protocol, with a limit of connections and our errors for malformed messages."""

    def __init__(self, connections: "Connections", reject: Reject, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._connections = connections
        self._reject = reject
        self.current_request: tuple[Request, asyncio.Task[None]] | None = None
        """The request that is being answered, and the task that does it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection and wait for its first request."""
        # Kept here too: aiohttp drops a transport when it closes it, while that may still send.
        self.kept_transport = cast("asyncio.Transport", transport)
        super().connection_made(transport)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Record that bytes of a head have come, and read them."""
        self._connections.note_bytes(self)
        super().data_received(data)

    def pause_writing(self) -> None:
        """Pause for a client that reads slowly, until `SEND_TIMEOUT_SECONDS`."""
        super().pause_writing()
        self._connections.note_sending(self)

    def resume_writing(self) -> None:
        """Resume, since the client has read."""
        super().resume_writing()
        self._connections.note_sent(self)

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; from then on the connection is idle."""
        finished = await super().finish_response(request, resp, start_time)
        self.current_request = None
        self._connections.note_idle(self)
        return finished

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the current request if its operation allows that."""
        super().connection_lost(exc)
        self._connections.remove(self)
        if self.current_request is not None and self.current_request[0].cancel_on_disconnect:
            self.current_request[1].cancel()

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109  aiohttp's signature
        """Close again: the first close missed a connection whose task had not begun."""
        self.close()
        await super().shutdown(timeout)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  aiohttp's own message is not sent
    ) -> web.StreamResponse:
        """Return the answer to a message that never reached a handler, and close the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was under way already")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and exc is not None:
            problem = report_internal_error(exc)
        elif isinstance(exc, BadStatusLine) and _UNKNOWN_METHOD.search(exc.message):
            problem = Problem("not_implemented")
        elif isinstance(exc, LineTooLong):
            problem = Problem("invalid", "The request line or a header is too long")
        else:
            problem = Problem("invalid", "The request is not valid HTTP")
        return self._reject(cast("Request", request), problem)

    def log_exception(self, *args: object, **more: Any) -> None:
        """Log an exception, except for an invalid body, which was answered."""
        if not isinstance(more.get("exc_info"), RequestPayloadError):
            super().log_exception(*args, **more)


class Connections:
    """The connections of a server, at most `limit`, with timeouts for heads and for sending.

    At the limit, close in this order: oldest incomplete head, longest idle, slowest reader, the new
    one.
    """

    def __init__(self, limit: int, head_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._head_seconds = head_seconds
        self._count = 0
        # Oldest first. A connection with a request under way is in neither.
        self._incomplete: dict[ConnectionProtocol, float] = {}
        self._idle: dict[ConnectionProtocol, None] = {}
        # The number of unsent bytes, and when the client last read any; longest ago first.
        self._sending: dict[ConnectionProtocol, tuple[int, float]] = {}
        self._closed_count = 0
        self._report_at = 0.0
        self._sweep()

    def add(self, connection: ConnectionProtocol) -> None:
        """Add a new connection; close another if there are too many."""
        self._count += 1
        self._incomplete[connection] = self._loop.time()
        if self._count > self._limit:
            self._closed_count += 1
            # The new one is the last of the incomplete ones.
            others: Iterable[ConnectionProtocol] = self._incomplete
            if len(self._incomplete) == 1:
                others = self._idle or self._sending or self._incomplete
            self._close(next(iter(others)))

    def remove(self, connection: ConnectionProtocol) -> None:
        """Forget a connection that has ended."""
        self._count -= 1
        self.note_request(connection)
        self.note_sent(connection)

    def note_bytes(self, connection: ConnectionProtocol) -> None:
        """Note that bytes have come: unless a request is under way, a head begins or goes on."""
        if connection in self._idle:
            del self._idle[connection]
            self._incomplete[connection] = self._loop.time()

    def note_request(self, connection: ConnectionProtocol) -> None:
        """Note that a request is under way, or that the connection ends: it waits for no head."""
        self._incomplete.pop(connection, None)
        self._idle.pop(connection, None)

    def note_idle(self, connection: ConnectionProtocol) -> None:
        """Note that a request is answered: the connection is idle, even if a head has begun."""
        self.note_request(connection)
        if connection.transport is not None:
            self._idle[connection] = None

    def note_sending(self, connection: ConnectionProtocol) -> None:
        """Note that an answer waits for its client to read."""
        size = connection.kept_transport.get_write_buffer_size()
        self._sending[connection] = (size, self._loop.time())

    def note_sent(self, connection: ConnectionProtocol) -> None:
        """Note that no answer waits any more."""
        self._sending.pop(connection, None)

    def stop_checking(self) -> None:
        """Stop checking timeouts."""
        self._sweeping.cancel()

    def _close(self, connection: ConnectionProtocol) -> None:
        self.note_request(connection)
        self.note_sent(connection)
        connection.kept_transport.abort()  # `close` would wait until the client has read its answer
        connection.force_close()

    def _sweep(self) -> None:
        """Close connections that exceed a timeout, and log how many were closed at the limit."""
        now = self._loop.time()
        latest = now - self._head_seconds
        late = list(takewhile(lambda item: item[1] < latest, self._incomplete.items()))
        for connection, (size, since) in list(self._sending.items()):
            if connection.kept_transport.get_write_buffer_size() < size:
                self.note_sent(connection)
                self.note_sending(connection)
            elif since < now - SEND_TIMEOUT_SECONDS:
                late.append((connection, since))
        for connection, _ in late:
            self._close(connection)
        if self._closed_count and now >= self._report_at:
            _log.warning(
                "%d connections were closed to keep descriptors free: at most %d are kept; "
                "raise the limit of open files (LimitNOFILE, ulimit -n), "
                "or check which clients open them",
                self._closed_count,
                self._limit,
            )
            self._closed_count, self._report_at = 0, now + 60.0  # one line a minute at the most
        self._sweeping = self._loop.call_later(min(1.0, self._head_seconds / 4), self._sweep)


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the system allows, within bounds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems allow less than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def max_connections() -> int:
    """Return the number of connections that this process may have.

    At least 128 descriptors are left for files, the store and its replicator, if there are enough.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    return max(limit - max(128, limit // 8), limit // 2)


@dataclass(slots=True)
class Server:
    """A running server."""

    runner: web.ServerRunner
    listeners: Sequence[asyncio.Server]
    connections: Connections
    port: int

    def stop_accepting(self) -> None:
        """Close the listeners; other processes go on accepting on a shared socket."""
        for listener in self.listeners:
            listener.close()

    async def stop(self) -> None:
        """Stop accepting, let running requests finish, close idle connections."""
        self.stop_accepting()
        ending = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._abort_connections)
        await self.runner.cleanup()
        self.connections.stop_checking()
        ending.cancel()

    def _abort_connections(self) -> None:
        for connection in self.runner.server.connections if self.runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()


async def listen(host: str, port: int) -> list[socket.socket]:
    """Open a socket for each address of `host` (port 0 chooses a free one). Raises OSError.

    An address family that this machine lacks, such as IPv6, is skipped. Sockets that systemd has
    opened are used instead (sd_listen_fds(3)): connections wait in them during a restart.
    """
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        return [
            socket.socket(fileno=number) for number in range(3, 3 + int(os.environ["LISTEN_FDS"]))
        ]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                for each in sockets:
                    each.close()
                raise
            missing = error
    if missing and not sockets:
        raise missing
    return sockets


def listen_privately(place: Path | int) -> socket.socket:
    """Open a loopback port, or a Unix socket for owner and group. Raises OSError.

    The socket file that a killed edge has left is replaced.
    """
    if isinstance(place, int):
        return socket.create_server(("127.0.0.1", place), backlog=BACKLOG)
    if place.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(place)) == errno.ECONNREFUSED:
                place.unlink()
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.bind(str(place))  # nobody can connect before it listens
        place.chmod(0o660)
    except OSError:
        opened.close()
        raise
    return opened


async def start_server(
    handler: Handler, sockets: Sequence[socket.socket], reject: Reject
) -> Server:
    """Serve on sockets that are open already, and may be shared with other processes."""
    loop = asyncio.get_running_loop()
    connections = Connections(max_connections(), HEAD_TIMEOUT_SECONDS)

    def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Request:
        connections.note_request(protocol)
        request = Request(message, payload, protocol, writer, task, loop)
        if message.url.absolute and message.method != hdrs.METH_CONNECT:
            request.target_host = message.url.host_subcomponent
        protocol.current_request = request, task
        return request

    answer = cast("Callable[[BaseRequest], Awaitable[web.StreamResponse]]", handler)
    server = web.Server(answer, request_factory=cast("Any", make_request))
    runner = web.ServerRunner(server, shutdown_timeout=GRACE_SECONDS)
    await runner.setup()
    factory = partial(
        ConnectionProtocol,
        connections,
        reject,
        server,
        loop=loop,
        access_log=None,  # disables aiohttp's own access log
        keepalive_timeout=75.0,  # common proxies close an idle connection after 60 s
        lingering_time=LINGER_SECONDS,
        auto_decompress=False,  # aiohttp would accept truncated bodies
        max_line_size=64 * 1024,  # a filter may list hundreds of identifiers
    )
    port = sockets[0].getsockname()[1]
    listeners = []
    for each in sockets:
        create: Any = loop.create_server
        if each.family == socket.AF_UNIX:  # other workers may still use its file
            create = partial(loop.create_unix_server, **_KEEP_SOCKET_FILE)
        # An event loop also accepts up to `backlog` connections in one turn: keep that small.
        listeners.append(await create(factory, sock=each, backlog=32))
        each.listen(BACKLOG)
    return Server(runner, listeners, connections, port)


def handle_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets instead of ending the process."""
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    return ending


async def serve_until(
    ending: asyncio.Event, servers: Sequence[Server], drain: Callable[[], None]
) -> None:
    """Serve until the event, then report not ready for a while, then stop."""
    await ending.wait()
    drain()
    _log.info("stopping: requests in progress are answered first")
    await asyncio.sleep(DRAIN_SECONDS)
    for each in servers:
        each.stop_accepting()
    await asyncio.sleep(0.1)  # for requests on the connections accepted last
    await asyncio.gather(*(each.stop() for each in servers))
