"""The MCP endpoint as HTTP sees it: who may ask, and answers as server-sent events.

The SDK, which takes long to load and much room, is loaded with the first message that is let in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.http.admission import Admitted
from edge_api.http.body import check_media_type, read_bytes
from edge_api.http.conditional import compress
from edge_api.http.headers import API_HEADERS
from edge_api.http.request import Request, joined_header
from edge_api.http.response import PreparedResponse, StreamedResponse
from edge_api.mcp.caller import Caller, Slots
from edge_api.mcp.operations import BODY, MCP
from edge_api.operation.model import AnyOperation
from edge_api.operation.negotiation import media_weight
from edge_api.operation.result import JSON
from edge_api.schema.site_policy import Headers

TICK_SECONDS: Final = 1.0
"""How often it is looked whether anybody still reads, and whether the credential is still good."""
PING_SECONDS: Final = 15.0
"""After which a silent stream says something, since proxies close what is idle."""
WRITE_SECONDS: Final = 20.0
"""How long a client may take to read what it is sent."""
OUTBOX_MOST: Final = 64
"""Events that are queued for a slow reader before their producer has to wait."""

_PING: Final = b": ping\n\n"
_HEADERS: Final[Headers] = (
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-store, no-transform"),
    ("X-Accel-Buffering", "no"),
    *API_HEADERS,
)

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One message to the client."""

    message: Message
    is_last: bool = False


EventQueue = asyncio.Queue[Event]
Work = Callable[[EventQueue], Awaitable[Message]]
"""Puts events into the outbox and returns the last message; raises nothing but cancellation."""


class EventStream:
    """The answer to one request as server-sent events (WHATWG HTML, section 9.2)."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.response = StreamedResponse(request, 200, (*_HEADERS, *_own_headers(request)))

    @property
    def has_begun(self) -> bool:
        """Whether anything was sent, so that the answer cannot be anything else any more."""
        return self.response.prepared

    async def send(self, data: bytes) -> None:
        """Send one event. Raises OSError when the client is gone, or reads nothing for long."""
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self.response.prepare(self._request)
                await self.response.write(data)
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise

    async def end(self) -> web.StreamResponse:
        """Say that nothing follows, if anybody is there to hear it."""
        with suppress(OSError):
            await self.response.prepare(self._request)
            await self.response.write_eof()
        return self.response


def _own_headers(request: Request) -> Headers:
    """Return the fields of this answer alone, which stand on the request as lines."""
    lines = request.extra_header_lines.decode("latin-1").splitlines()
    pairs = (line.partition(": ") for line in lines)
    return tuple((name, value) for name, _, value in pairs)


class ResponseStream:
    """One request whose answer becomes a stream when something is said before its end."""

    def __init__(
        self, request: Request, caller: Caller, slots: Slots, is_draining: Callable[[], bool]
    ) -> None:
        self._request = request
        self._caller = caller
        self._slots = slots
        self._is_draining = is_draining
        self._outbox = EventQueue(OUTBOX_MOST)
        self._stream: EventStream | None = None
        self._is_mute = False
        self._silence = 0.0
        self._farewell = False

    async def hold(self, work: Work, *, is_endless: bool) -> Message | web.StreamResponse:
        """Return the last message if it was the only one, or the stream that all of them were in.

        `is_endless`: it lasts until one side ends it, so a stream must be free. Else none is
        needed: where all are taken, what would be said before the answer is left out. Raises
        Problem of `Slots.hold`.
        """
        with ExitStack() as slot:
            if is_endless:
                self._open(slot)
            task = asyncio.create_task(self._do(work))
            try:
                return await self._pass_on(slot, is_endless=is_endless)
            except OSError:  # nobody is left to read
                return EventStream(self._request).response
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _do(self, work: Work) -> None:
        await self._outbox.put(Event(await work(self._outbox), is_last=True))

    async def _pass_on(self, slot: ExitStack, *, is_endless: bool) -> Message | web.StreamResponse:
        """Send events until the last, or until there is no reason to go on. Raises OSError."""
        while True:
            event = await self._next()
            if event is None:
                if not await self._goes_on(slot, is_endless=is_endless):
                    return await (self._stream or EventStream(self._request)).end()
            elif is_endless and not await self._caller.holds():
                return await (self._stream or EventStream(self._request)).end()
            elif not event.is_last:
                await self._say(slot, _encode(event.message))
            elif self._stream is None or not self._stream.has_begun:
                return event.message
            else:
                await self._stream.send(_encode(event.message))
                return await self._stream.end()

    async def _next(self) -> Event | None:
        """Return the next event, or nothing after a while."""
        try:
            async with asyncio.timeout(TICK_SECONDS):
                event = await self._outbox.get()
        except TimeoutError:
            self._silence += TICK_SECONDS
            return None
        self._silence = 0.0
        return event

    async def _goes_on(self, slot: ExitStack, *, is_endless: bool) -> bool:
        """Return whether there is a reason to wait for more; when it is due, say that we still do.

        When the service is about to end, there is one tick in which the last message may come.
        """
        transport = self._request.transport
        if transport is None or transport.is_closing() or self._farewell:
            return False
        if not await self._caller.holds():
            return False
        self._farewell = is_endless and self._is_draining()
        if self._silence >= PING_SECONDS:
            self._silence = 0.0
            await self._say(slot, _PING)
        return True

    async def _say(self, slot: ExitStack, data: bytes) -> None:
        if not self._is_mute and self._stream is None:
            try:
                self._open(slot)
            except Problem:
                self._is_mute = True
        if self._stream is not None:
            await self._stream.send(data)

    def _open(self, slot: ExitStack) -> None:
        """Take a stream. Raises Problem of `Slots.hold`."""
        slot.enter_context(self._slots.hold(self._caller.actor.limit_key))
        self._stream = EventStream(self._request)


def _encode(message: Message) -> bytes:
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"


class MessageHandler(Protocol):
    """Answers messages; `mcp.exchange` has the only one."""

    async def answer(
        self, request: Request, raw: bytes, caller: Caller, conversation: ResponseStream
    ) -> web.StreamResponse:
        """Return the answer to one message, or to a batch of them."""


Load = Callable[[], MessageHandler]
"""Loads the SDK, which takes half a second, and returns what answers."""


class CredentialChecker(Protocol):
    """Looks after a request that was admitted: `http.admission` has it."""

    async def is_still_valid(self, operation: AnyOperation, secret: str) -> bool:
        """Return whether its credential is still good."""

    def count(self, request: Request, actor: Actor) -> None:
        """Count one more message of it. Raises Problem."""


class McpEndpoint:
    """Answers the messages that the operation `mcp` takes.

    `load` is called once, in a thread.
    """

    def __init__(
        self, admission: CredentialChecker, load: Load, *, is_draining: Callable[[], bool]
    ) -> None:
        self.slots = Slots()
        self._admission = admission
        self._load = load
        self._is_draining = is_draining
        self._exchange: MessageHandler | None = None
        self._turn = asyncio.Lock()

    async def answer(
        self, request: Request, _path: Mapping[str, str], admitted: Admitted
    ) -> web.StreamResponse:
        """Answer one message, or a batch of them. Raises Problem."""
        check_media_type(request, BODY)
        if media_weight(joined_header(request.headers, "Accept") or "*/*", JSON) == 0:
            raise Problem("not_acceptable", f"Accept {JSON}, and text/event-stream beside it")
        raw = await read_bytes(request, BODY.max_bytes)
        exchange = self._exchange or await self._loaded()
        caller = self._caller(request, admitted)
        conversation = ResponseStream(request, caller, self.slots, self._is_draining)
        answer = await exchange.answer(request, raw, caller, conversation)
        if isinstance(answer, PreparedResponse):
            return await compress(answer, request)
        return answer

    def _caller(self, request: Request, admitted: Admitted) -> Caller:
        actor = admitted.actor
        assert actor is not None  # noqa: S101  the operation requires a credential
        return Caller(
            actor,
            partial(self._admission.is_still_valid, MCP, admitted.secret),
            partial(self._admission.count, request, actor),
        )

    async def _loaded(self) -> MessageHandler:
        async with self._turn:
            if self._exchange is None:
                self._exchange = await asyncio.to_thread(self._load)
            return self._exchange


def load_exchange(make_server: str, *parts: Any) -> MessageHandler:
    """Load the SDK and return what answers for one of our servers.

    `make_server` is a module with a function of that name, which takes `parts`.
    """
    server = import_module(make_server).make_server(*parts)
    exchange: MessageHandler = import_module("edge_api.mcp.exchange").SdkMessageHandler(server)
    return exchange
