"""One operation as an endpoint: admit the request, decode it, run the handler, encode the result.

Admission checks address, credential, rate limit and scope. Documents have validators and content
codings.
"""

import asyncio
import gzip
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import brotli
import orjson
from aiohttp import web
from aiohttp.hdrs import ACCEPT_ENCODING, IF_NONE_MATCH
from multidict import CIMultiDictProxy, istr
from pydantic import BaseModel

from edge_api.auth.actor import Actor
from edge_api.auth.client_address import client_address
from edge_api.auth.rate_limits import AUTHENTICATED, Quota
from edge_api.db.caches import SizedCache
from edge_api.db.problems import Problem
from edge_api.health import Health
from edge_api.http.body import check_media_type, decode, read_bytes, read_parts
from edge_api.http.response import (
    API_HEADERS,
    PAGE_HEADERS,
    PREVIEW_HEADERS,
    PRIVATE_HEADERS,
    HeaderFields,
    PreparedResponse,
    Request,
    StreamedResponse,
    joined_header,
    move_limit_headers,
    page_headers,
    report_internal_error,
)
from edge_api.operation.model import (
    MULTIPART,
    AnyOperation,
    Body,
    Document,
    HtmlResult,
    OperationRequest,
    OperationResult,
    Service,
    authorise,
    check_query,
)
from edge_api.operation.negotiation import best_coding
from edge_api.schema.site_policy import Header, Headers

API_KEY_HEADER: Final = istr("X-API-Key")
_AUTHORIZATION: Final = istr("Authorization")
_NO_VALUES: Final[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """The sender of a request that passed admission."""

    actor: Actor | None = None
    """The holder of the credential; `None` if none was sent and none is required."""
    secret: str = ""
    """The credential that was sent."""
    address: str = ""
    """The client's address as rate limits count it; empty where nothing is counted by it."""


UNAUTHENTICATED: Final = Admitted()


class Admission:
    """Checks the sender of each request to an operation."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._trusted = service.settings.trusted_proxies
        self._health = service[Health]

    async def admit(self, operation: AnyOperation, request: Request) -> Admitted:
        """Count the request and return its sender. Raises Problem.

        A request with a credential counts against the limit of its holder, and without one against
        that of the operation, by the client's address; an invalid one counts against `failed_auth`.
        """
        if operation.check_sender is not None:
            operation.check_sender(
                self._service, HeaderFields(request.headers), request.remote or ""
            )
        secret = None if operation.credential == "none" else read_credential(request.headers)
        if secret is None and operation.credential != "required":
            return await self._admit_anonymous(operation, request)
        actor = await self._identify(operation, request, secret)
        self.count(request, actor)
        authorise(operation, self._service.authenticator, actor, operation.audience)
        return Admitted(actor, secret or "")

    async def _admit_anonymous(self, operation: AnyOperation, request: Request) -> Admitted:
        if not operation.limit and not operation.limits_by_address:
            return UNAUTHENTICATED
        address = self._address_of(request)
        if operation.limit:
            _set_limit_headers(request, await self._service.limiter.hit(operation.limit, address))
        return Admitted(address=address)

    async def _identify(
        self, operation: AnyOperation, request: Request, secret: str | None
    ) -> Actor:
        authenticator = self._service.authenticator
        try:
            if secret is None:
                raise authenticator.missing_credential(operation.audience)
            return await authenticator.authenticate(secret, operation.audience)
        except Problem as problem:
            if problem.code == "unauthenticated":
                await self._service.limiter.hit("failed_auth", self._address_of(request))
            raise

    def count(self, request: Request, actor: Actor) -> None:
        """Count a request, or another message of its batch. Raises Problem `too_many_requests`."""
        _set_limit_headers(request, self._service.limiter.count(AUTHENTICATED, actor.limit_key))

    async def is_still_valid(self, operation: AnyOperation, secret: str) -> bool:
        """Return whether a credential is still valid for an operation whose answer is a stream."""
        try:
            actor = await self._service.authenticator.authenticate(secret, operation.audience)
        except Problem:
            return False
        return operation.scope is None or operation.scope in actor.scopes

    def _address_of(self, request: Request) -> str:
        caller = client_address(request.remote or "", request.headers, self._trusted)
        if caller.untrusted_forwarding:
            self._health.untrusted_forwarding = True
        return caller.key


def _set_limit_headers(request: Request, quota: Quota | None) -> None:
    if quota is not None:
        move_limit_headers(request, quota.headers)


def read_credential(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the credential that was sent, or `None` (RFC 6750, section 2.1).

    Raises Problem `invalid` for two that differ; other schemes than Bearer are ignored.
    """
    keys = headers.getall(API_KEY_HEADER, _NO_VALUES)
    authorizations = headers.getall(_AUTHORIZATION, _NO_VALUES)
    if len(keys) == 1 and not authorizations:  # the usual case, answered without parsing
        return keys[0].strip()
    parts = [value.strip().partition(" ") for value in authorizations]
    tokens = [token.strip() for scheme, _, token in parts if scheme.lower() == "bearer"]
    if not keys and not tokens:
        return None
    first, *others = (*(key.strip() for key in keys), *tokens)
    if any(other != first for other in others):
        raise Problem("invalid", "Two different credentials were sent: send one")
    return first


_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\U0010ffff]*")')
_TAGS: Final = re.compile(rf"(?:[ \t]*+(?:{_TAG.pattern}[ \t]*+)?(?:,|\Z))*+")
"""A list of ETags. Possessive, so that a header of blanks takes linear time."""


def etag_matches(condition: str, etag: str) -> bool:
    """Return whether a well-formed `If-None-Match` weakly matches `etag` (RFC 9110, 8.8.3.2)."""
    if condition == etag or condition.strip() == "*":
        return True
    is_list = _TAGS.fullmatch(condition) is not None
    return is_list and etag.removeprefix("W/") in _TAG.findall(condition)


COMPRESSION_THRESHOLD: Final = 1024  # smaller bodies are not compressed: that would save no packet

ENCODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "br": lambda body: brotli.compress(body, quality=5),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
"""Encoders of responses made at run time; a build has the time to compress harder."""


class DocumentResponses:
    """The responses to requests for documents, made on first use and cached."""

    def __init__(self, cache: SizedCache[PreparedResponse]) -> None:
        self._cache = cache

    async def answer(
        self, document: Document, request: Request, common: Headers = API_HEADERS
    ) -> PreparedResponse:
        """Return `document` in the best coding with `common` headers, or 304 (RFC 9110, 13.2)."""
        coding = _coding(document.body, request)
        condition = joined_header(request.headers, IF_NONE_MATCH)
        if condition is not None and etag_matches(condition, coded_etag(document.etag, coding)):
            return PreparedResponse(304, _validators(document, coding, common))
        return self._cache.get((id(document), coding)) or await self._make(document, coding, common)

    async def _make(self, document: Document, coding: str, common: Headers) -> PreparedResponse:
        coder = ENCODERS.get(coding)
        body = await asyncio.to_thread(coder, document.body) if coder else document.body
        coded = [("Content-Encoding", coding)] if coding else []
        content = [("Content-Type", document.media_type), *coded]
        response = PreparedResponse(200, [*content, *_validators(document, coding, common)], body)
        if document.is_cached:
            size = len(body) + len(document.body)
            self._cache.put((id(document), coding), response, size, owner=document)
        return response


def coded_etag(etag: str, coding: str) -> str:
    """Return the ETag of a document in one coding: each is a representation of its own."""
    return f'{etag[:-1]}-{coding}"' if coding else etag


def _coding(body: bytes, request: Request) -> str:
    accepted = joined_header(request.headers, ACCEPT_ENCODING)
    if accepted is None or len(body) <= COMPRESSION_THRESHOLD:
        return ""
    return best_coding(accepted, tuple(ENCODERS))


async def compress(answer: PreparedResponse, request: Request) -> PreparedResponse:
    """Return an uncached answer, compressed if it is above `COMPRESSION_THRESHOLD`."""
    if len(answer.sent_body) <= COMPRESSION_THRESHOLD:
        return answer
    varies = ("Vary", "Accept-Encoding")
    coding = _coding(answer.sent_body, request)
    if not coding:
        return answer.with_headers(varies)
    body = await asyncio.to_thread(ENCODERS[coding], answer.sent_body)
    return answer.with_headers(varies, ("Content-Encoding", coding), body=body)


def _validators(document: Document, coding: str, common: Headers) -> list[Header]:
    return [
        ("ETag", coded_etag(document.etag, coding)),
        ("Cache-Control", document.cache_control),
        ("Vary", ", ".join((*document.varies, "Accept-Encoding"))),
        *document.headers,
        *common,
    ]


def preflight_response(allow: str) -> PreparedResponse:
    """Return the answer to `OPTIONS`: any origin may ask, without cookies (Fetch, 3.2)."""
    headers = [
        ("Allow", allow),
        ("Access-Control-Allow-Methods", allow),
        (
            "Access-Control-Allow-Headers",
            (
                "Authorization, X-API-Key, Content-Type, Idempotency-Key, Prefer, Accept, "
                "X-Request-ID, If-Match, If-None-Match, Range, If-Range, Cache-Control, "
                "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"
            ),
        ),
        ("Access-Control-Max-Age", "86400"),  # seconds that browsers may cache the permission
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
    ) -> web.StreamResponse:
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
        if isinstance(parts := result.value, AsyncGenerator):
            async with aclosing(parts):
                result.value, more = await anext(parts), await anext(parts, b"")
                if more:
                    return await _stream(result, request, (result.value, more), parts)
        response = encode(result)
        is_private = isinstance(result, HtmlResult) and result.is_private
        if (operation.is_page and not is_private) or operation.returns_secret:
            return response
        return await compress(response, request)

    async def _body(self, request: Request, body: Body[Any]) -> Any:
        too_large = (
            "Nothing was sent, as this is far too long: go back to what you typed, shorten it, and "
            "send it again"
            if self.operation.is_page
            else ""
        )
        if body.limit_files is not None and request.content_type == MULTIPART:
            most = await body.limit_files(self._service, HeaderFields(request.headers))
            return await read_parts(request, body.max_bytes, most, too_large)
        check_media_type(request, body)
        raw = await read_bytes(request, body.max_bytes, too_large)
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
    return PreparedResponse(result.status, _headers_of(result), body)


def _headers_of(result: OperationResult) -> list[Header]:
    return [
        *([("Content-Type", result.media_type)] if result.media_type else []),
        ("Cache-Control", result.cache_control),
        *_base_headers(result),
        *result.headers.items(),
    ]


async def _stream(
    result: OperationResult,
    request: Request,
    first: Sequence[bytes],
    rest: AsyncGenerator[bytes, None],
) -> StreamedResponse:
    """Send the parts of a body as they are made; for HEAD, send only the head."""
    own = (*_headers_of(result), *request.origin_headers, *request.limit_headers.items())
    response = StreamedResponse(request, result.status, own)
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            for part in first:
                await response.write(part)
            async for part in rest:
                await response.write(part)
        await response.write_eof()
    except Exception as error:  # noqa: BLE001  after the head, only this shows that rows are missing
        if request.transport is not None:
            request.transport.abort()
        if not isinstance(error, OSError):  # an OSError: the client is gone
            report_internal_error(error)
    return response


def _base_headers(result: OperationResult) -> Headers:
    if not isinstance(result, HtmlResult):
        return API_HEADERS
    if result.is_preview:
        return PREVIEW_HEADERS
    return PRIVATE_HEADERS if result.is_private else page_headers(result.form_action)
