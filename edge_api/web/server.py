"""Listening and ending: sockets, malformed messages, and an end that loses no request."""

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest

from edge_api.schema.problems import Problem
from edge_api.web.errors import error_answer, problem_of
from edge_api.web.repeats import Conversation, Repeats
from edge_api.web.request import Request
from edge_api.web.trace import mark

KEEPALIVE_SECONDS: Final = 75.0
"""Longer than the 60 s after which common proxies let an idle connection go."""
DRAIN_SECONDS: Final = 2.0
"""How long new requests are still taken after the signal, while readiness already says no."""
GRACE_SECONDS: Final = 10.0
"""How long requests under way may take after that; then connections are broken off."""
LINGER_SECONDS: Final = 2.0
"""How long the rest of a refused body is still read, so that the answer to it arrives."""
BACKLOG: Final = 1024
REQUEST_LINE_MOST: Final = 64 * 1024
"""Bytes of a request line: a filter may list hundreds of identifiers."""

_NOT_HERE: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)

Handler = Callable[[Request], Awaitable[web.StreamResponse]]
"""What answers requests, and never raises."""

_log = logging.getLogger(__name__)


class Protocol(RequestHandler):
    """aiohttp's protocol, which need not read what it has read before.

    A message that it cannot parse gets an error of the service's shape.
    """

    def __init__(self, repeats: Repeats, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._conversation = Conversation(repeats)

    def data_received(self, data: bytes) -> None:
        """Answer a request that came before in the same bytes; read any other."""
        transport = cast("asyncio.Transport", self.transport)
        if not self._conversation.answer(data, transport):
            super().data_received(data)

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer, and note how it may be given again."""
        finished = await super().finish_response(request, resp, start_time)
        self._conversation.note(cast("Request", request), resp)
        return finished

    def close(self) -> None:
        """End the connection with the answer under way; nothing behind that is answered."""
        self._conversation.end()
        super().close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop what is done for nobody any more, where that is allowed."""
        request, task = cast("Request | None", self._current_request), self._task_handler
        super().connection_lost(exc)
        if request is not None and request.ends_with_client and task is not None:
            task.cancel()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  aiohttp's own words are not passed on
    ) -> web.StreamResponse:
        """Return the answer to what never reached a handler, and close the connection."""
        mark(cast("Request", request))
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was under way already")
        if status < 500 or exc is None:  # noqa: PLR2004  the client's faults
            return error_answer(Problem("invalid", _sentence(exc))).closing()
        return error_answer(problem_of(exc)).closing()

    def log_exception(self, *args: object, **more: Any) -> None:
        """Log a fault of ours: a body that its client spoiled is none, and was answered."""
        if not isinstance(more.get("exc_info"), RequestPayloadError):
            super().log_exception(*args, **more)


def _sentence(fault: BaseException | None) -> str:
    if isinstance(fault, LineTooLong):
        return "The request line or a header is too long"
    return "The request is not valid HTTP"


@dataclass(slots=True)
class Server:
    """A running server."""

    runner: web.ServerRunner
    listeners: Sequence[asyncio.Server]
    port: int

    def refuse(self) -> None:
        """Take no more connections; a socket that is shared goes on taking them for others."""
        for listener in self.listeners:
            listener.close()

    async def stop(self) -> None:
        """Take no more connections, let requests under way finish, close what is idle."""
        self.refuse()
        ending = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._break_off)
        await self.runner.cleanup()
        ending.cancel()

    def _break_off(self) -> None:
        """End what is left: a client that reads nothing would else hold the process."""
        for connection in self.runner.server.connections if self.runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()


async def listen(host: str, port: int) -> list[socket.socket]:
    """Open a socket for each address of `host` (port 0 chooses a free one). Raises OSError.

    An address of a kind that this machine has not, as IPv6 may be, is passed over beside others.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
        except OSError as error:
            if error.errno not in _NOT_HERE:
                close_all(sockets)
                raise
            missing = error
    if missing and not sockets:
        raise missing
    return sockets


def close_all(sockets: Sequence[socket.socket]) -> None:
    """Close sockets; those of other processes on the same port go on."""
    for each in sockets:
        each.close()


async def start(handler: Handler, host: str, port: int, repeats: Repeats | None = None) -> Server:
    """Listen on `host:port` (0 chooses a free port). Raises OSError when that cannot be."""
    return await start_on(handler, await listen(host, port), repeats)


async def start_on(
    handler: Handler, sockets: Sequence[socket.socket], repeats: Repeats | None = None
) -> Server:
    """Serve on sockets that are open already, and may be shared with other processes.

    Without `repeats` each request is read.
    """
    loop = asyncio.get_running_loop()
    answer = cast("Callable[[BaseRequest], Awaitable[web.StreamResponse]]", handler)
    server = web.Server(answer, request_factory=partial(Request, loop=loop))
    runner = web.ServerRunner(server, shutdown_timeout=GRACE_SECONDS)
    await runner.setup()
    factory = partial(
        Protocol,
        repeats or Repeats(lambda: None),
        server,
        loop=loop,
        access_log=None,  # that is how aiohttp switches it off
        keepalive_timeout=KEEPALIVE_SECONDS,
        lingering_time=LINGER_SECONDS,
        max_line_size=REQUEST_LINE_MOST,
    )
    port = sockets[0].getsockname()[1]
    listeners = [await loop.create_server(factory, sock=each, backlog=BACKLOG) for each in sockets]
    return Server(runner, listeners, port)


def heed_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets from now on, in place of ending the process."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    return told


async def serve_until(told: asyncio.Event, server: Server, drain: Callable[[], None]) -> None:
    """Serve until told to end; then say so in readiness for a while before ending."""
    await told.wait()
    drain()
    _log.info("ending: requests under way are answered first")
    await asyncio.sleep(DRAIN_SECONDS)
    await server.stop()
