"""Parses one MCP message, as its revision requires, and answers it with an SDK server.

Revisions up to 2025-11-25 open with a handshake, of which nothing is kept; from 2026-07-28 on the
body and headers of each request describe it completely. The protocol's rules are the SDK's;
HTTP, streams and credentials are ours. The SDK takes long to load: nothing that starts the service
may import this module.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio
import orjson
from aiohttp import web
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCNotification,
    JSONRPCRequest,
    ProgressToken,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from multidict import CIMultiDictProxy
from pydantic import ValidationError

from edge_api.db.problems import Problem
from edge_api.http.response import (
    API_HEADERS,
    PreparedResponse,
    Request,
    joined_header,
    jsonrpc_error,
    move_limit_headers,
)
from edge_api.mcp.operations import ID_RANGE, MAX_BATCH, MAX_ID_LEN
from edge_api.mcp.transport import Caller, Event, EventQueue, Message, ResponseStream
from edge_api.operation.model import JSON, NO_STORE
from edge_api.operation.negotiation import media_weight

DEFAULT_REVISION: Final = "2025-03-26"
"""The revision of a client that sends no `MCP-Protocol-Version` (2025-06-18, transports)."""
BATCH_REVISION: Final = "2025-03-26"  # the revision with batches

_INVALID_FORMAT: Final = (
    "Send one JSON-RPC 2.0 request or notification: an object with jsonrpc and method"
)

RequestHeaders = CIMultiDictProxy[str]


class Rejection(Exception):  # noqa: N818  a rejected message is no error of ours
    """A rejected message: the error, and the id if it is known."""

    def __init__(self, error: ErrorData, request_id: RequestId | None = None) -> None:
        self.error = error
        self.request_id = request_id
        super().__init__(error.message)


@dataclass(frozen=True, slots=True)
class Call:
    """One well-formed request, and its revision."""

    id: RequestId
    method: str
    params: Mapping[str, Any] | None
    version: str
    route: InboundModernRoute | None  # `None` for the revisions with a handshake


def read_message(message: Any, headers: RequestHeaders, server: Server[Any]) -> Call | None:
    """Return the request, or `None` for a notification. Raises Rejection."""
    if not isinstance(message, dict):
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_INVALID_FORMAT))
    if "id" not in message:
        _check_notification(message, headers)
        return None
    request = _check_request(message)
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
        return Call(request.id, request.method, request.params, version or DEFAULT_REVISION, None)
    meta = (request.params or {}).get("_meta")
    if not (isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta):
        _check_version(version, request.id)  # there is no envelope to compare the headers with
    route = _route(message, headers)
    if isinstance(route, InboundModernRoute):
        rejection = _compare_arguments(request, headers, server)
        if rejection is None:
            return Call(request.id, request.method, request.params, route.protocol_version, route)
        route = rejection
    raise Rejection(_error(route), request.id)


def decode(raw: bytes, headers: RequestHeaders) -> Any:
    """Return the message of a body, or the list of a batch (2025-03-26). Raises Rejection."""
    try:
        decoded = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Rejection(
            ErrorData(code=PARSE_ERROR, message="The body is no JSON in UTF-8")
        ) from None
    if isinstance(decoded, list):
        methods = [each.get("method") for each in decoded if isinstance(each, dict)]
        is_valid = 0 < len(decoded) <= MAX_BATCH and "initialize" not in methods
        if (
            headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_REVISION) != BATCH_REVISION
            or not is_valid
        ):
            raise Rejection(
                ErrorData(
                    code=INVALID_REQUEST,
                    message=f"Send one message: a batch is of revision {BATCH_REVISION} alone, of "
                    f"1 to {MAX_BATCH} messages, without initialize",
                )
            )
    return decoded


def _check_version(version: str, request_id: RequestId | None = None) -> None:
    """Raise Rejection for an unknown revision."""
    unsupported = unsupported_protocol_version_rejection(version)
    if unsupported is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        known = ", ".join(KNOWN_PROTOCOL_VERSIONS)
        message = f"MCP-Protocol-Version: {version} is not supported; send one of {known}"
        raise Rejection(_error(replace(unsupported, message=message)), request_id)


def _check_notification(message: Mapping[str, Any], headers: RequestHeaders) -> None:
    """Raise Rejection for an invalid notification; without a session it has no effect."""
    try:
        JSONRPCNotification.model_validate(message)
    except ValidationError:
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_INVALID_FORMAT)) from None
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is not None:
        _check_version(version)


def _check_request(message: Mapping[str, Any]) -> JSONRPCRequest:
    given = message["id"]
    # JSON knows one kind of number: 1.0 is 1. Integers over 64 bits come as floats too.
    if isinstance(given, float) and given.is_integer() and abs(given) < ID_RANGE.stop:
        message = {**message, "id": int(given)}
    given = message["id"]
    is_text = isinstance(given, str) and len(given) <= MAX_ID_LEN
    is_number = isinstance(given, int) and not isinstance(given, bool) and given in ID_RANGE
    if not (is_text or is_number):
        raise Rejection(
            ErrorData(
                code=INVALID_REQUEST,
                message="id: must be an integer of 64 bits, or a string of "
                f"{MAX_ID_LEN} characters or fewer",
            )
        )
    try:
        return JSONRPCRequest.model_validate(message)
    except ValidationError:
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_INVALID_FORMAT)) from None


def _route(
    message: Mapping[str, Any], headers: RequestHeaders
) -> InboundModernRoute | InboundLadderRejection:
    """Return the route of a request, or a rejection if its body and its headers disagree."""
    repeated = find_duplicated_routing_header(headers.items())
    if repeated is not None:
        return InboundLadderRejection(HEADER_MISMATCH, f"{repeated} header appears more than once")
    lowered = {name.lower(): value for name, value in headers.items()}
    return classify_inbound_request(message, headers=lowered)


def _compare_arguments(
    request: JSONRPCRequest, headers: RequestHeaders, server: Server[Any]
) -> InboundLadderRejection | None:
    """Return a rejection if headers differ from the arguments of the tool that they copy."""
    find, params = server.get_tool_input_schema, request.params or {}
    name, arguments = params.get("name"), params.get("arguments") or {}
    if find is None or request.method != "tools/call" or not isinstance(name, str):
        return None
    schema = find(name)
    if schema is None or not isinstance(arguments, dict):
        return None
    return validate_mcp_param_headers(schema, arguments, headers)


def _error(rejection: InboundLadderRejection) -> ErrorData:
    data = rejection.data
    if isinstance(data, dict) and "supported" in data:  # the SDK omits those with a handshake
        data = {**data, "supported": list(KNOWN_PROTOCOL_VERSIONS)}
    return ErrorData(code=rejection.code, message=rejection.message, data=data)


EVENT_STREAM: Final = "text/event-stream"

_ACCEPTED_RESPONSE: Final = PreparedResponse(202, [("Cache-Control", NO_STORE), *API_HEADERS])
"""The answer to notifications."""


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
        opts: CallOptions | None = None,  # noqa: ARG002  the SDK's shape
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


async def answer_message(
    find_server: Callable[[], Server[Any]],
    request: Request,
    raw: bytes,
    caller: Caller,
    stream: ResponseStream,
) -> web.StreamResponse:
    """Return the answer to a message or a batch; each message of a batch is rate-limited.

    The handlers of the server get the `Caller` as `ctx.request`.
    """
    server = find_server()
    try:
        decoded = decode(raw, request.headers)
        if isinstance(decoded, list):
            return await _answer_batch(server, decoded, request, caller)
        call = read_message(decoded, request.headers, server)
    except Rejection as rejection:
        status = ERROR_CODE_HTTP_STATUS[rejection.error.code]
        return _json_response(status, _error_message(rejection.request_id, rejection.error))
    if call is None:
        return _ACCEPTED_RESPONSE
    try:
        return await RequestExecution(server, call, request, caller).answer(stream)
    except Problem as problem:  # no stream is free; the client waits for this id
        return _json_response(problem.status, jsonrpc_error(problem, call.id), problem.headers)


async def _answer_batch(
    server: Server[Any], decoded: list[Any], request: Request, caller: Caller
) -> PreparedResponse:
    for _ in decoded[1:]:
        caller.count_message()
    answers: list[Message] = []
    for message in decoded:
        try:
            call = read_message(message, request.headers, server)
        except Rejection as rejection:
            answers.append(_error_message(rejection.request_id, rejection.error))
            continue
        if call is not None:
            execution = RequestExecution(server, call, request, caller)
            answers.append(await execution.run(None))
            move_limit_headers(request, execution.problem.headers if execution.problem else {})
    return _json_response(200, answers) if answers else _ACCEPTED_RESPONSE


class RequestExecution:
    """Runs one request on an SDK server, and makes JSON or a stream of its result."""

    def __init__(self, server: Server[Any], call: Call, request: Request, caller: Caller) -> None:
        self._server = server
        self._call = call
        self._request = request
        self._caller = caller
        self.problem: Problem | None = None

    async def answer(self, stream: ResponseStream) -> web.StreamResponse:
        """Return JSON, or a stream if events come before the answer. Raises Problem."""
        is_endless = self._call.method == "subscriptions/listen" and self._call.route is not None
        wants_events = media_weight(
            joined_header(self._request.headers, "Accept") or "*/*", EVENT_STREAM
        )
        if is_endless and not wants_events:
            raise Problem(
                "not_acceptable", f"Accept {EVENT_STREAM}: the answer is a stream of events"
            )
        if is_endless or (wants_events and self._progress_token is not None):
            answer = await stream.run(self.run, is_endless=is_endless)
        else:
            answer = await self.run(None)
        return answer if isinstance(answer, web.StreamResponse) else self._as_json(answer)

    @property
    def _progress_token(self) -> str | int | None:
        return progress_token_from_params(self._call.params)

    async def run(self, events: EventQueue | None) -> Message:
        """Return the response of JSON-RPC, which has the error if the request fails."""
        headers, route = self._request.headers, self._call.route
        about = (route.client_info, route.client_capabilities) if route else (None, None)
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
                connection=Connection.from_envelope(self._call.version, *about),
                lifespan_state={},
            )
        except Problem as problem:
            self.problem = problem
            return jsonrpc_error(problem, self._call.id)
        except Exception as error:  # noqa: BLE001  the SDK distinguishes its own errors from others
            return _error_message(self._call.id, modern_error_data(error))
        return {"jsonrpc": "2.0", "id": self._call.id, "result": result}

    def _as_json(self, message: Message) -> PreparedResponse:
        """Return a message as JSON, with the HTTP status that its revision has for an error."""
        problem = self.problem
        # These are HTTP statuses in every revision.
        if problem is not None and problem.status in (401, 403, 429, 503):
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
