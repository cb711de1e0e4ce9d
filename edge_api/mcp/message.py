"""Parses and validates one message to the MCP endpoint, as its revision requires.

Revisions up to 2025-11-25 open with a handshake, which is forgotten at once; from 2026-07-28 on
each request has all about itself in its body, and again in its headers. The header alone decides
which of both is meant.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from multidict import CIMultiDictProxy
from pydantic import ValidationError

from edge_api.mcp.operations import ID_RANGE, MAX_BATCH, MAX_ID_LEN

DEFAULT_VERSION: Final = "2025-03-26"
"""The revision of a client without the header (2025-06-18, transports)."""
BATCHING: Final = "2025-03-26"  # the revision with batches

_FORMAT: Final = "Send one JSON-RPC 2.0 request or notification: an object with jsonrpc and method"
_BATCH: Final = (
    f"Send one message: a batch is of revision {BATCHING} alone, of 1 to {MAX_BATCH} messages, "
    "without initialize"
)
_ID: Final = f"id: must be an integer of 64 bits, or a string of {MAX_ID_LEN} characters or fewer"

Headers = CIMultiDictProxy[str]


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

    def connection(self) -> Connection:
        """Return the SDK's connection, which lasts for this request."""
        if self.route is None:
            return Connection.from_envelope(self.version, None, None)
        return Connection.from_envelope(
            self.version, self.route.client_info, self.route.client_capabilities
        )


def read_message(message: Any, headers: Headers, server: Server[Any]) -> Call | None:
    """Return the request, or `None` for a notification. Raises Rejection."""
    if not isinstance(message, dict):
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_FORMAT))
    if "id" not in message:
        _check_notification(message, headers)
        return None
    request = _check_request(message)
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
        return Call(request.id, request.method, request.params, version or DEFAULT_VERSION, None)
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


def decode(raw: bytes, headers: Headers) -> Any:
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
        if headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_VERSION) != BATCHING or not is_valid:
            raise Rejection(ErrorData(code=INVALID_REQUEST, message=_BATCH))
    return decoded


def _check_version(version: str, request_id: RequestId | None = None) -> None:
    """Raise Rejection for an unknown revision."""
    unsupported = unsupported_protocol_version_rejection(version)
    if unsupported is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        known = ", ".join(KNOWN_PROTOCOL_VERSIONS)
        message = f"MCP-Protocol-Version: {version} is not supported; send one of {known}"
        error = _error(replace(unsupported, message=message))
        data = {**(error.data or {}), "supported": list(KNOWN_PROTOCOL_VERSIONS)}
        raise Rejection(error.model_copy(update={"data": data}), request_id)


def _check_notification(message: Mapping[str, Any], headers: Headers) -> None:
    """Raise Rejection for an invalid notification; without a session it has no effect."""
    try:
        JSONRPCNotification.model_validate(message)
    except ValidationError:
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_FORMAT)) from None
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
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_ID))
    try:
        return JSONRPCRequest.model_validate(message)
    except ValidationError:
        raise Rejection(ErrorData(code=INVALID_REQUEST, message=_FORMAT)) from None


def _route(
    message: Mapping[str, Any], headers: Headers
) -> InboundModernRoute | InboundLadderRejection:
    """Return the route of a request, or a rejection if its body and its headers disagree."""
    repeated = find_duplicated_routing_header(headers.items())
    if repeated is not None:
        return InboundLadderRejection(HEADER_MISMATCH, f"{repeated} header appears more than once")
    lowered = {name.lower(): value for name, value in headers.items()}
    return classify_inbound_request(message, headers=lowered)


def _compare_arguments(
    request: JSONRPCRequest, headers: Headers, server: Server[Any]
) -> InboundLadderRejection | None:
    """Return the error of headers that repeat arguments of a tool, if there is one."""
    find, params = server.get_tool_input_schema, request.params or {}
    name, arguments = params.get("name"), params.get("arguments") or {}
    if find is None or request.method != "tools/call" or not isinstance(name, str):
        return None
    schema = find(name)
    if schema is None or not isinstance(arguments, dict):
        return None
    return validate_mcp_param_headers(schema, arguments, headers)


def _error(rejection: InboundLadderRejection) -> ErrorData:
    return ErrorData(code=rejection.code, message=rejection.message, data=rejection.data)
