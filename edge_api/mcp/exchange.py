"""Answers one MCP message with an SDK server, for all revisions.

The SDK classifies requests and runs them, so that the protocol's rules are the SDK's; HTTP, streams
and credentials are ours. The SDK takes long to load: nothing that starts the service may import
this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import orjson
from aiohttp import web
from mcp.server import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ErrorData, ProgressToken, RequestId

from edge_api.db.problems import Problem
from edge_api.http.errors import jsonrpc_error
from edge_api.http.headers import API_HEADERS
from edge_api.http.request import Request, joined_header
from edge_api.http.response import PreparedResponse, move_limit_headers
from edge_api.mcp.message import Call, Rejection, decode, read_message
from edge_api.mcp.transport import Caller, Event, EventQueue, Message, ResponseStream
from edge_api.operation.negotiation import media_weight
from edge_api.operation.result import JSON, NO_STORE

LISTEN: Final = "subscriptions/listen"
EVENTS: Final = "text/event-stream"

_ACCEPTED_RESPONSE: Final = PreparedResponse(202, [("Cache-Control", NO_STORE), *API_HEADERS])
"""The answer to notifications."""
_HTTP_STATUSES: Final = (401, 403, 429, 503)
"""Statuses of problems that are HTTP statuses in every revision."""


@dataclass
class RequestContext:
    """The SDK's `DispatchContext`; without a session it cannot send requests to the client."""

    transport: TransportContext
    request_id: RequestId
    message_metadata: ServerMessageMetadata
    progress_token: ProgressToken | None
    events: EventQueue | None
    """The queue of events before the answer; `None` if the answer is no stream."""
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002  the SDK's shape
        opts: CallOptions | None = None,  # noqa: ARG002  likewise
    ) -> dict[str, Any]:
        """Raise NoBackChannelError: there is no session."""
        raise NoBackChannelError(method)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002  the SDK's shape
    ) -> None:
        """Send a notification, if the request has a stream."""
        if self.events is not None:
            given = {} if params is None else {"params": dict(params)}
            await self.events.put(Event({"jsonrpc": "2.0", "method": method, **given}))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Send the progress of the request, if the client asked for it."""
        if self.progress_token is None:
            return
        members = {"progress": progress, "total": total, "message": message}
        known = {name: value for name, value in members.items() if value is not None}
        params = {"progressToken": self.progress_token, **known}
        await self.notify("notifications/progress", params)


class SdkMessageHandler:
    """Answers messages with one SDK server, whose handlers get the `Caller` as `ctx.request`."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def answer(
        self, request: Request, raw: bytes, caller: Caller, stream: ResponseStream
    ) -> web.StreamResponse:
        """Return the answer to a message or a batch; each message of a batch is rate-limited."""
        try:
            decoded = decode(raw, request.headers)
            if isinstance(decoded, list):
                return await self._answer_batch(decoded, request, caller)
            call = read_message(decoded, request.headers, self._server)
        except Rejection as rejection:
            status = ERROR_CODE_HTTP_STATUS[rejection.error.code]
            return _json_response(status, _error_message(rejection.request_id, rejection.error))
        if call is None:
            return _ACCEPTED_RESPONSE
        try:
            return await RequestExecution(self._server, call, request, caller).answer(stream)
        except Problem as problem:  # no stream can be had; the client waits for this id
            return _json_response(problem.status, jsonrpc_error(problem, call.id), problem.headers)

    async def _answer_batch(
        self, decoded: list[Any], request: Request, caller: Caller
    ) -> PreparedResponse:
        for _ in decoded[1:]:
            caller.count()
        answers: list[Message] = []
        for message in decoded:
            try:
                call = read_message(message, request.headers, self._server)
            except Rejection as rejection:
                answers.append(_error_message(rejection.request_id, rejection.error))
                continue
            if call is not None:
                execution = RequestExecution(self._server, call, request, caller)
                answers.append(await execution.run(None))
                move_limit_headers(request, execution.problem.headers if execution.problem else {})
        return _json_response(200, answers) if answers else _ACCEPTED_RESPONSE


class RequestExecution:
    """The execution of one request."""

    def __init__(self, server: Server[Any], call: Call, request: Request, caller: Caller) -> None:
        self._server = server
        self._call = call
        self._request = request
        self._caller = caller
        self.problem: Problem | None = None

    async def answer(self, stream: ResponseStream) -> web.StreamResponse:
        """Return JSON, or a stream if events come before the answer. Raises Problem."""
        is_endless = self._call.method == LISTEN and self._call.route is not None
        wants_events = media_weight(joined_header(self._request.headers, "Accept") or "*/*", EVENTS)
        if is_endless and not wants_events:
            raise Problem("not_acceptable", f"Accept {EVENTS}: the answer is a stream of events")
        if is_endless or (wants_events and self._progress_token is not None):
            answer = await stream.run(self.run, is_endless=is_endless)
        else:
            answer = await self.run(None)
        return answer if isinstance(answer, web.StreamResponse) else self._as_json(answer)

    @property
    def _progress_token(self) -> str | int | None:
        return progress_token_from_params(self._call.params)

    async def run(self, events: EventQueue | None) -> Message:
        """Return the last message, also after an error."""
        headers = self._request.headers
        context = RequestContext(
            TransportContext(kind="streamable-http", can_send_request=False, headers=headers),
            self._call.id,
            ServerMessageMetadata(request_context=self._caller),
            self._progress_token,
            events,
        )
        try:
            result = await serve_one(
                self._server,
                context,
                self._call.method,
                self._call.params,
                connection=self._call.connection(),
                lifespan_state={},
            )
        except Problem as problem:
            self.problem = problem
            return jsonrpc_error(problem, self._call.id)
        except Exception as error:  # noqa: BLE001  the SDK distinguishes its own errors from others
            return _error_message(self._call.id, modern_error_data(error))
        return {"jsonrpc": "2.0", "id": self._call.id, "result": result}

    def _as_json(self, message: Message) -> PreparedResponse:
        """Return a message as JSON, with the HTTP status of its problem in its revision."""
        problem = self.problem
        if problem is not None and problem.status in _HTTP_STATUSES:
            return _json_response(
                problem.status, message, move_limit_headers(self._request, problem.headers)
            )
        if self._call.route is None or "error" not in message:
            return _json_response(200, message)
        return _json_response(ERROR_CODE_HTTP_STATUS.get(message["error"]["code"], 200), message)


def _error_message(request_id: str | int | None, error: ErrorData) -> Message:
    content = error.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"jsonrpc": "2.0", "id": request_id, "error": content}


def _json_response(
    status: int, message: Message | list[Message], headers: Mapping[str, str] | None = None
) -> PreparedResponse:
    base = [("Content-Type", JSON), ("Cache-Control", NO_STORE), *API_HEADERS]
    return PreparedResponse(status, [*base, *(headers or {}).items()], orjson.dumps(message))
