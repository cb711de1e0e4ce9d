"""One operation as an endpoint: decode the request, run the handler, encode the result."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from pydantic import BaseModel

from edge_api.db.problems import Problem
from edge_api.http.admission import Admitted
from edge_api.http.body import check_media_type, decode, read_bytes
from edge_api.http.conditional import DocumentResponses, compress
from edge_api.http.headers import API_HEADERS, PAGE_HEADERS, PRIVATE_HEADERS, page_headers
from edge_api.http.request import HeaderFields, Request
from edge_api.http.response import PreparedResponse, move_limit_headers
from edge_api.operation.model import AnyOperation, Body, OperationRequest, check_query
from edge_api.operation.result import Document, HtmlResult, OperationResult
from edge_api.operation.service import Service
from edge_api.schema.site_policy import Headers

_ALLOWED_HEADERS: Final = (
    "Authorization, X-API-Key, Content-Type, Idempotency-Key, Prefer, Accept, X-Request-ID, "
    "If-None-Match, Range, If-Range, Cache-Control, "
    "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"
)
_PREFLIGHT_MAX_AGE: Final = 86400
"""Seconds that browsers may cache the permission."""


def preflight_response(allow: str) -> PreparedResponse:
    """Return the answer to `OPTIONS`: any origin may ask, without cookies (Fetch, 3.2)."""
    headers = [
        ("Allow", allow),
        ("Access-Control-Allow-Methods", allow),
        ("Access-Control-Allow-Headers", _ALLOWED_HEADERS),
        ("Access-Control-Max-Age", str(_PREFLIGHT_MAX_AGE)),
        *API_HEADERS,
    ]
    return PreparedResponse(204, headers)


def options_response(allow: str) -> PreparedResponse:
    """Return the answer to `OPTIONS` of a path that no other origin's script may call."""
    return PreparedResponse(204, [("Allow", allow), *PAGE_HEADERS])


class Endpoint:
    """One declared operation, ready to answer requests."""

    def __init__(
        self, operation: AnyOperation, service: Service, documents: DocumentResponses
    ) -> None:
        self.operation = operation
        self._service = service
        self._documents = documents

    async def answer(
        self, request: Request, path: Mapping[str, str], admitted: Admitted
    ) -> PreparedResponse:
        """Return the answer to a request that was admitted. Raises Problem."""
        operation = self.operation
        if operation.check_query_names is not None:
            operation.check_query_names(request.query)
        asked = OperationRequest(
            actor=admitted.actor,
            address=admitted.address,
            path=path,
            query=read_query(operation.query, request) if operation.query else None,
            pairs=tuple(request.query.items()) if request.rel_url.raw_query_string else (),
            body=await self._body(request, operation.body) if operation.body else None,
            headers=HeaderFields(request.headers),
        )
        request.cancel_on_disconnect = operation.cancel_on_disconnect
        result = await operation.handler(self._service, asked)
        if isinstance(result.value, Document):
            return await self._documents.answer(result.value, request, _base_headers(result))
        result.headers = move_limit_headers(request, result.headers)
        response = encode(result)
        is_private = isinstance(result, HtmlResult) and result.is_private
        if (operation.is_page and not is_private) or operation.returns_secret:
            return response
        return await compress(response, request)

    async def _body(self, request: Request, body: Body[Any]) -> Any:
        check_media_type(request, body)
        raw = await read_bytes(request, body.max_bytes)
        if body.verify_signature is not None:
            body.verify_signature(self._service, HeaderFields(request.headers), raw)
        return decode(raw, body)


def read_query(model: type[BaseModel], request: Request) -> BaseModel:
    """Return the checked query without unknown parameters. Raises Problem `invalid`."""
    query = request.rel_url.query
    known = {name: query.getall(name) for name in model.model_fields if name in query}
    for name, values in known.items():
        if len(values) > 1:
            raise Problem("invalid", f"{name}: is given more than once")
    return check_query(model, {name: values[0] for name, values in known.items()})


def encode(result: OperationResult) -> PreparedResponse:
    """Return the result as a response."""
    body = result.value if isinstance(result.value, bytes) else orjson.dumps(result.value)
    headers = [
        *([("Content-Type", result.media_type)] if result.media_type else []),
        ("Cache-Control", result.cache_control),
        *_base_headers(result),
        *result.headers.items(),
    ]
    return PreparedResponse(result.status, headers, body)


def _base_headers(result: OperationResult) -> Headers:
    if not isinstance(result, HtmlResult):
        return API_HEADERS
    return PRIVATE_HEADERS if result.is_private else page_headers(result.form_action)
