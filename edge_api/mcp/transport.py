"""The HTTP side of the MCP endpoint: requests, and answers as server-sent events.

The SDK is large and slow to load, so it is loaded when an agent reads the first document about the
service, or sends the first admitted message.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.http.body import check_media_type, read_bytes
from edge_api.http.endpoint import Admission, Admitted, compress
from edge_api.http.response import (
    API_HEADERS,
    PreparedResponse,
    Request,
    StreamedResponse,
    joined_header,
)
from edge_api.mcp.operations import BODY, MAX_DRAFT_MESSAGE_BYTES, MCP
from edge_api.operation.model import JSON
from edge_api.operation.negotiation import media_weight
from edge_api.schema.site_policy import Headers

CHECK_SECONDS: Final = 1.0
"""The time between two checks of the connection and the credential while a stream is open."""
PING_INTERVAL_SECONDS: Final = 15.0
"""The time after which an idle stream sends a comment, since proxies close idle connections."""
WRITE_TIMEOUT_SECONDS: Final = 20.0  # the time for a client to read an event

_HEADERS: Final[Headers] = (
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-store, no-transform"),
    ("X-Accel-Buffering", "no"),
    *API_HEADERS,
)

MAX_STREAMS: Final = 200  # open streams of all clients together
MAX_STREAMS_PER_CREDENTIAL: Final = 8


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of an admitted request."""

    actor: Actor
    is_valid: Callable[[], Awaitable[bool]]
    """Returns whether the credential is still valid; called while a stream is open."""
    count_message: Callable[[], None]
    """Counts one more message of the request against its rate limit.

    Raises Problem `too_many_requests`.
    """


class StreamLimit:
    """Limits the number of open streams."""

    def __init__(
        self, limit: int = MAX_STREAMS, per_credential: int = MAX_STREAMS_PER_CREDENTIAL
    ) -> None:
        self._limit = limit
        self._per_credential = per_credential
        self._open: Counter[str] = Counter()

    @property
    def open_count(self) -> int:
        """The number of open streams."""
        return self._open.total()

    @contextmanager
    def acquire(self, key: str) -> Iterator[None]:
        """Count one stream of the credential with the limit key `key` until the context ends.

        Raises Problem `too_many_requests` if it has too many, `unavailable` if all
        streams are taken.
        """
        headers = {"Retry-After": "30"}
        if self._open[key] >= self._per_credential:
            raise Problem(
                "too_many_requests",
                f"{self._per_credential} streams are open with this credential: close one first",
                headers=headers,
            )
        if self.open_count >= self._limit:
            raise Problem("unavailable", "All streams are taken: try again later", headers=headers)
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


_PING: Final = b": ping\n\n"
Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One message to the client."""

    message: Message
    is_last: bool = False


EventQueue = asyncio.Queue[Event]
Producer = Callable[[EventQueue], Awaitable[Message]]
"""Puts events into the queue and returns the last message; raises nothing but cancellation."""


class ResponseStream:
    """The answer to one request, which becomes a stream if events come before the last message.

    The stream has server-sent events (WHATWG HTML, section 9.2).
    """

    def __init__(
        self, request: Request, caller: Caller, limit: StreamLimit, is_draining: Callable[[], bool]
    ) -> None:
        self._request = request
        self._caller = caller
        self._stream_limit = limit
        self._is_draining = is_draining
        # Events wait here for a slow client; when the queue is full, their producer waits.
        self._events = EventQueue(64)
        own = (*request.origin_headers, *request.limit_headers.items())
        self._response = StreamedResponse(request, 200, (*_HEADERS, *own))
        self._is_open = False
        self._drops_events = False
        self._idle_seconds = 0.0
        self._is_ending = False

    async def run(self, produce: Producer, *, is_endless: bool) -> Message | web.StreamResponse:
        """Return the last message if it was the only one, else the stream that has sent them all.

        If no stream is free, an endless answer raises as `StreamLimit.acquire`; another answer
        drops its progress events.
        """
        with ExitStack() as stack:
            if is_endless:
                self._open(stack)
            task = asyncio.create_task(self._produce(produce))
            try:
                return await self._forward(stack, is_endless=is_endless)
            except OSError:  # the client is gone
                return self._response
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _produce(self, produce: Producer) -> None:
        await self._events.put(Event(await produce(self._events), is_last=True))

    async def _forward(self, stack: ExitStack, *, is_endless: bool) -> Message | web.StreamResponse:
        """Send events up to the last, or until the stream has to end. Raises OSError."""
        while True:
            event = await self._next()
            if event is None:
                if not await self._keep_alive(stack, is_endless=is_endless):
                    return await self._end()
            elif is_endless and not await self._caller.is_valid():
                return await self._end()
            elif not event.is_last:
                await self._send(stack, _encode(event.message))
            elif not self._response.prepared:
                return event.message
            else:
                await self._write(_encode(event.message))
                return await self._end()

    async def _next(self) -> Event | None:
        """Return the next event, or `None` after `CHECK_SECONDS`."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                event = await self._events.get()
        except TimeoutError:
            self._idle_seconds += CHECK_SECONDS
            return None
        self._idle_seconds = 0.0
        return event

    async def _keep_alive(self, stack: ExitStack, *, is_endless: bool) -> bool:
        """Send a ping when it is due; return whether the stream should stay open.

        When the service shuts down, an endless stream waits one more interval for its last message.
        """
        transport = self._request.transport
        if transport is None or transport.is_closing() or self._is_ending:
            return False
        if not await self._caller.is_valid():
            return False
        self._is_ending = is_endless and self._is_draining()
        if self._idle_seconds >= PING_INTERVAL_SECONDS:
            self._idle_seconds = 0.0
            await self._send(stack, _PING)
        return True

    async def _send(self, stack: ExitStack, data: bytes) -> None:
        if not self._drops_events and not self._is_open:
            try:
                self._open(stack)
            except Problem:
                self._drops_events = True
        if self._is_open:
            await self._write(data)

    def _open(self, stack: ExitStack) -> None:
        """Open a stream. Raises as `StreamLimit.acquire`."""
        stack.enter_context(self._stream_limit.acquire(self._caller.actor.limit_key))
        self._is_open = True

    async def _write(self, data: bytes) -> None:
        """Send one event. Raises OSError if the client is gone or too slow."""
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
                await self._response.prepare(self._request)
                await self._response.write(data)
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise

    async def _end(self) -> web.StreamResponse:
        """End the response, if the client is still connected."""
        with suppress(OSError):
            await self._response.prepare(self._request)
            await self._response.write_eof()
        return self._response


def _encode(message: Message) -> bytes:
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"


MessageHandler = Callable[[Request, bytes, Caller, ResponseStream], Awaitable[web.StreamResponse]]
"""Answers one message, or a batch of them: `mcp.exchange.answer_message` with an SDK server."""


class McpEndpoint:
    """Answers the requests to the operation `mcp`.

    `load` loads the SDK, which takes half a second, and returns the handler. It is called once, in
    a thread.
    """

    def __init__(
        self,
        admission: Admission,
        load: Callable[[], MessageHandler],
        *,
        is_draining: Callable[[], bool],
    ) -> None:
        self.streams = StreamLimit()
        self._admission = admission
        self._load = load
        self._is_draining = is_draining
        self.handler: MessageHandler | None = None
        self._lock = asyncio.Lock()

    async def answer(
        self, request: Request, _path: Mapping[str, str], admitted: Admitted
    ) -> web.StreamResponse:
        """Answer one message, or a batch of them. Raises Problem."""
        check_media_type(request, BODY)
        if media_weight(joined_header(request.headers, "Accept") or "*/*", JSON) == 0:
            raise Problem("not_acceptable", f"Accept {JSON}, and text/event-stream beside it")
        actor = admitted.actor
        assert actor is not None  # noqa: S101  the operation requires a credential
        may_draft = "posts:draft" in actor.scopes
        raw = await read_bytes(request, MAX_DRAFT_MESSAGE_BYTES if may_draft else BODY.max_bytes)
        handler = self.handler or await self.prepare()
        caller = Caller(
            actor,
            partial(self._admission.is_still_valid, MCP, admitted.secret),
            partial(self._admission.count, request, actor),
        )
        stream = ResponseStream(request, caller, self.streams, self._is_draining)
        answer = await handler(request, raw, caller, stream)
        if isinstance(answer, PreparedResponse):
            return await compress(answer, request)
        return answer

    async def prepare(self) -> MessageHandler:
        """Return the handler, which the first call loads."""
        async with self._lock:
            if self.handler is None:
                self.handler = await asyncio.to_thread(self._load)
            return self.handler
