"""From a request to an operation and back: identify, count, authorise, decode, do, encode.

Each step goes on or raises Problem; none calls an earlier one. What an operation means is not
known here.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import orjson
from pydantic import BaseModel

from edge_api.auth.actor import Actor
from edge_api.auth.rate_limits import AUTHENTICATED, Quota
from edge_api.db.problems import Problem
from edge_api.http.body import check_media_type, decode, read_bytes
from edge_api.http.conditional import DocumentAnswers, compress
from edge_api.http.headers import API_HEADERS, PAGE_HEADERS, page_headers
from edge_api.http.request import Callers, Fields, Request, secret_of
from edge_api.http.response import PreparedResponse, tell_limits
from edge_api.operation.model import Operation, OperationRequest, authorise, check_query
from edge_api.operation.result import Document, OperationResult, Page
from edge_api.operation.service import Service
from edge_api.schema.site_policy import Headers

_ALLOWED_HEADERS: Final = (
    "Authorization, X-API-Key, Content-Type, Idempotency-Key, Prefer, Accept, X-Request-ID, "
    "If-None-Match, Range, If-Range, Cache-Control, "
    "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"
)
_SECONDS: Final = 86400
"""How long a browser may remember that it may ask; browsers cap it themselves."""


def preflight(allow: str) -> PreparedResponse:
    """Return the answer to `OPTIONS`: any origin may ask, without cookies (Fetch, 3.2)."""
    headers = [
        ("Allow", allow),
        ("Access-Control-Allow-Methods", allow),
        ("Access-Control-Allow-Headers", _ALLOWED_HEADERS),
        ("Access-Control-Max-Age", str(_SECONDS)),
        *API_HEADERS,
    ]
    return PreparedResponse(204, headers)


def options(allow: str) -> PreparedResponse:
    """Return the answer to `OPTIONS` where no other origin's script has any business."""
    return PreparedResponse(204, [("Allow", allow), *PAGE_HEADERS])


class Endpoint:
    """One declared operation, ready to answer requests."""

    def __init__(
        self,
        operation: Operation,
        service: Service,
        documents: DocumentAnswers,
        callers: Callers,
    ) -> None:
        self.operation = operation
        self._service = service
        self._documents = documents
        self._callers = callers

    async def answer(self, request: Request, path: Mapping[str, str]) -> PreparedResponse:
        """Return the answer to a request. Raises Problem."""
        operation = self.operation
        actor = None if operation.credential == "none" else await self._actor(request)
        address = await self._admit(request, actor)
        if operation.check_names is not None:
            operation.check_names(request.query)
        ask = OperationRequest(
            actor=actor,
            address=address,
            path=path,
            query=read_query(operation.query, request) if operation.query else None,
            pairs=tuple(request.query.items()) if request.rel_url.raw_query_string else (),
            body=await self._body(request) if operation.body else None,
            headers=Fields(request.headers),
        )
        request.ends_with_client = operation.ends_with_client
        reply = await operation.handler(self._service, ask)
        if isinstance(reply.value, Document):
            return await self._documents.answer(reply.value, request, _always(reply))
        reply.headers = tell_limits(request, reply.headers)
        response = encode(reply)
        if operation.is_page or operation.hands_out_secrets:
            return response
        return await compress(response, request)

    async def _actor(self, request: Request) -> Actor | None:
        """Return whose credential was sent, if it need be or was. Raises Problem."""
        if self.operation.credential == "optional" and secret_of(request.headers) is None:
            return None
        _, actor = await self._callers.identify(request)
        return actor

    async def _admit(self, request: Request, actor: Actor | None) -> str:
        """Count the request and let it go on; return the address where it is counted by that."""
        if actor is not None:
            _tell(request, self._service.limiter.count(AUTHENTICATED, actor.holder))
            authorise(self.operation, self._service.access, actor)
            return ""
        if not self.operation.limit:
            return ""
        address = self._callers.address_of(request)
        _tell(request, await self._service.limiter.hit(self.operation.limit, address))
        return address

    async def _body(self, request: Request) -> Any:
        body = self.operation.body
        assert body is not None  # noqa: S101  the caller looked
        check_media_type(request, body)
        raw = await read_bytes(request, body.most)
        if body.verify_signature is not None:
            body.verify_signature(self._service, Fields(request.headers), raw)
        return decode(raw, body)


def _tell(request: Request, quota: Quota | None) -> None:
    """Put what is left of a limit into the headers of the answer."""
    if quota is not None:
        tell_limits(request, quota.headers)


def read_query(model: type[BaseModel], request: Request) -> BaseModel:
    """Return the checked query; parameters that the model does not know are ignored.

    Raises Problem `invalid` that names the faulty parameter.
    """
    if not request.rel_url.raw_query_string:
        return _default(model)
    query = request.rel_url.query
    known = {name: query.getall(name) for name in model.model_fields if name in query}
    for name, values in known.items():
        if len(values) > 1:
            raise Problem("invalid", f"{name}: stands more than once")
    return check_query(model, {name: values[0] for name, values in known.items()})


@cache
def _default(model: type[BaseModel]) -> BaseModel:
    """Return what a request without a query asks for."""
    return model()


def encode(reply: OperationResult) -> PreparedResponse:
    """Return a reply in its wire form."""
    body = reply.value if isinstance(reply.value, bytes) else orjson.dumps(reply.value)
    headers = [
        ("Content-Type", reply.media_type),
        ("Cache-Control", reply.cache_control),
        *_always(reply),
        *reply.headers.items(),
    ]
    return PreparedResponse(reply.status, headers, body)


def _always(reply: OperationResult) -> Headers:
    return page_headers(reply.form_action) if isinstance(reply, Page) else API_HEADERS
