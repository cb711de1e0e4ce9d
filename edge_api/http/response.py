"""Requests with their ids, responses that are serialized once, and problems as responses.

Only the date, the request's id and its rate limit are added to a prepared response's bytes.
This bypasses aiohttp's header machinery, which costs as much as everything else together. A problem
becomes a response in the error format of its operation. `schema.site_policy` has the headers that
a preview sends too.
"""

import itertools
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, cast

import orjson
from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict, CIMultiDictProxy, istr

from edge_api.db.problems import Problem
from edge_api.operation.model import (
    HTML,
    JSON,
    MARKDOWN,
    NO_STORE,
    ErrorFormat,
    PageRenderer,
    escape_markdown,
)
from edge_api.operation.negotiation import prefers_markdown
from edge_api.schema import paths
from edge_api.schema.sentences import sentence
from edge_api.schema.site_policy import (
    COMMON_HEADERS,
    SAME_ORIGIN_RESOURCE,
    SITE_CSP,
    SITE_HEADERS,
    Header,
    Headers,
)

API_LINKS: Final = (
    f'<{paths.API_CATALOG}>; rel="api-catalog"',
    f'<{paths.OPENAPI}>; rel="service-desc"; type="application/json"',
    f'<{paths.DOCS}>; rel="service-doc"; type="text/html"',
    f'<{paths.AUDIENCES["rest"]}/readiness>; rel="status"; type="application/json"',
)
"""Links to the API's documents (RFC 8288, RFC 8631, RFC 9727), sent with every page."""

_LINK: Final[Header] = ("Link", ", ".join(API_LINKS))
PAGE_HEADERS: Final[Headers] = (*SITE_HEADERS, SAME_ORIGIN_RESOURCE, _LINK)
"""The headers of a page that the edge renders."""

ANY_ORIGIN: Final[Header] = ("Access-Control-Allow-Origin", "*")
API_HEADERS: Final[Headers] = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),  # data loads nothing
    *COMMON_HEADERS,
    SAME_ORIGIN_RESOURCE,
    ANY_ORIGIN,
    # Scripts of other origins may read these headers (Fetch, section 3.3.3).
    (
        "Access-Control-Expose-Headers",
        (
            "Content-Location, Content-Range, ETag, Idempotency-Replayed, Link, Location, "
            "RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-ID"
        ),
    ),
)
"""The headers of every answer of an operation, errors included."""

STRICT_TRANSPORT: Final[Header] = ("Strict-Transport-Security", "max-age=63072000")
"""Requires https for two years, for this host alone (RFC 6797); sent only by an https origin."""

PRIVATE_HEADERS: Final[Headers] = (
    ("Content-Security-Policy", SITE_CSP),
    *(pair for pair in COMMON_HEADERS if pair[0] != "Referrer-Policy"),
    ("Referrer-Policy", "same-origin"),
    ("X-Robots-Tag", "noindex, nofollow"),
    SAME_ORIGIN_RESOURCE,
)
"""The headers of the owner's pages."""
_SHARED_DRAFT_VALUES: Final = {
    # The text may be a credential's: its forms must not reach the desk, whatever the theme allows.
    "Content-Security-Policy": SITE_CSP.replace("form-action 'self'", "form-action 'none'"),
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
SHARED_DRAFT_HEADERS: Final[Headers] = (
    ("Cache-Control", "no-store"),
    *((name, _SHARED_DRAFT_VALUES.get(name, value)) for name, value in PRIVATE_HEADERS),
)
"""The headers of shared drafts, whose addresses are secret: `Referrer-Policy` hides them."""
PREVIEW_HEADERS: Final[Headers] = tuple(
    pair
    for pair in SHARED_DRAFT_HEADERS
    if pair[0] not in ("Cache-Control", "X-Robots-Tag")  # the desk sends these with each page
)
"""The headers of a preview at the desk, whose text may be by somebody else."""


def page_headers(form_action: tuple[str, ...] = ()) -> Headers:
    """Return the headers of a page whose forms may also be sent to these origins (CSP 3, 6.4.1)."""
    if not form_action:
        return PAGE_HEADERS
    allowed = " ".join(("form-action 'self'", *form_action))
    policy = SITE_CSP.replace("form-action 'self'", allowed)
    return (("Content-Security-Policy", policy), *COMMON_HEADERS, SAME_ORIGIN_RESOURCE, _LINK)


def resource_policy(media_type: str) -> Header:
    """Return the header that lets other origins embed pictures and feeds, and no other file."""
    is_shared = media_type.startswith(("image/", "application/atom", "application/feed"))
    return ("Cross-Origin-Resource-Policy", "cross-origin") if is_shared else SAME_ORIGIN_RESOURCE


class Request(BaseRequest):
    """aiohttp's request with further attributes, which are faster than its mapping."""

    request_id = ""
    """The id of the request, which its answer repeats."""
    target_host = ""
    """The host of an absolute target, which counts in place of the header (RFC 9112, 3.2.2)."""
    closes_connection = False
    """Whether the connection closes after the answer, since the service is stopping."""
    cancel_on_disconnect = False
    """Whether the request's handler is cancelled when the client disconnects."""
    origin_headers: Headers = ()
    """Headers for every answer of this origin."""
    limit_headers: Mapping[str, str] = MappingProxyType({})
    """The rate-limit headers of its answer."""
    extra_header_lines = b""
    """`origin_headers` and `limit_headers`, serialized."""


ID_HEADER = istr("X-Request-ID")
_VALID_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_PROCESS_PREFIX = secrets.token_hex(4)  # distinguishes the ids of different processes
_counter = itertools.count(secrets.randbits(16))
_current_id: ContextVar[str] = ContextVar("request_id", default="-")


def assign_request_id(request: Request) -> None:
    """Set the request's id: the one in its header if that is well formed, else a new one."""
    request_id = request.headers.get(ID_HEADER)
    if request_id is None or _VALID_ID.fullmatch(request_id) is None:
        request_id = f"{_PROCESS_PREFIX}{next(_counter):08x}"
    request.request_id = request_id
    _current_id.set(request_id)


def add_request_id(record: logging.LogRecord) -> bool:
    """Put the id of the current request into a log record, as `request_id`; drop no record."""
    record.request_id = _current_id.get()
    return True


class HeaderFields(Mapping[str, str]):
    """Header fields by name, in any case; a repeated field is one comma-separated list."""

    def __init__(self, headers: CIMultiDictProxy[str]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = joined_header(self._headers, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


def joined_header(headers: CIMultiDictProxy[str], name: str) -> str | None:
    """Return every member of a list field on one line (RFC 9110, section 5.3); `None` if absent."""
    first = headers.get(name)
    if first is None:
        return None
    lines = headers.getall(name)
    return first if len(lines) == 1 else ", ".join(lines)


AnyResponse = web.StreamResponse
"""Any response of the service."""
_CLOSE: Final = ("Connection", "close")
"""Ends the connection after the answer (RFC 9112, section 9.6)."""
_LIMIT_FIELDS: Final = ("RateLimit-Policy", "RateLimit")


def header_lines(headers: Iterable[Header]) -> bytes:
    """Serialize headers (RFC 9112, section 5); a value ends at its first line break."""
    return b"".join(_line(name, value) for name, value in headers)


@lru_cache(1024)
def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}".splitlines()[0].encode("latin-1", "replace") + b"\r\n"


def move_limit_headers(request: Request, headers: Mapping[str, str]) -> Mapping[str, str]:
    """Move the rate-limit headers of an answer to the request; return the other headers."""
    if _LIMIT_FIELDS[0] not in headers:
        return headers
    limits = {name: headers[name] for name in _LIMIT_FIELDS}
    if earlier := request.limit_headers:
        limits = {name: _join_policies(earlier[name], headers[name]) for name in earlier}
    request.limit_headers = limits
    request.extra_header_lines = header_lines((*request.origin_headers, *limits.items()))
    if len(headers) == len(_LIMIT_FIELDS):  # as with nearly every request
        return {}
    return {name: value for name, value in headers.items() if name not in _LIMIT_FIELDS}


def _join_policies(*fields: str) -> str:
    """Join rate-limit headers into one list; of members for the same policy, the last counts."""
    items = [item for field in fields for item in field.split(", ")]
    return ", ".join({item.partition(";")[0]: item for item in items}.values())


class PreparedResponse(web.StreamResponse):
    """An immutable, serialized response."""

    def __init__(self, status: int, headers: Sequence[Header], body: bytes = b"") -> None:
        """Serialize the head."""
        super().__init__(status=status)
        self._sent_headers = headers
        self.sent_body = body
        self._stays_open = _CLOSE not in headers
        bodiless = status in (204, 304)
        announced = [] if bodiless else [("Content-Length", str(len(body)))]
        start_line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        self._head = start_line + header_lines((*headers, *announced))

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open after the response."""
        return self._stays_open

    def with_headers(self, *headers: Header, body: bytes | None = None) -> "PreparedResponse":
        """Return the same answer with more headers, and with another body if one is given."""
        sent = self.sent_body if body is None else body
        return PreparedResponse(self.status, [*self._sent_headers, *headers], sent)

    def closing(self) -> "PreparedResponse":
        """Return the same answer with `Connection: close`."""
        return self.with_headers(_CLOSE) if self._stays_open else self

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Write the whole answer; for HEAD, its head."""
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client is gone")
        typed = cast("Request", request)
        body = b"" if request.method == "HEAD" else self.sent_body
        lines, request_id = typed.extra_header_lines, typed.request_id.encode()
        date = _date_line(int(time.time()))
        head = self._head, lines, date, b"X-Request-ID: ", request_id, b"\r\n\r\n"
        if len(body) <= 16 * 1024:  # copying a small body is faster than writing it on its own
            transport.write(b"".join((*head, body)))
        else:
            transport.writelines((b"".join(head), body))
        if transport.get_write_buffer_size() > 64 * 1024:
            await request.writer.drain()  # wait for the client to read
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has written everything."""


class StreamedResponse(web.StreamResponse):
    """A response that is sent in pieces, with a known length or in chunks (RFC 9112, 7.1)."""

    def __init__(
        self, request: Request, status: int, headers: Headers, length: int | None = None
    ) -> None:
        super().__init__(status=status)
        is_delimited = length is not None or request.version >= HttpVersion11
        self._stays_open = request.keep_alive and not request.closes_connection and is_delimited
        self._is_chunked = length is None and is_delimited and request.method != "HEAD"
        own = [("X-Request-ID", request.request_id), ("Date", formatdate(usegmt=True))]
        if length is not None:
            own.append(("Content-Length", str(length)))
        if self._is_chunked:
            own.append(("Transfer-Encoding", "chunked"))
        if not self._stays_open:
            own.append(_CLOSE)
        elif request.version < HttpVersion11:
            own.append(("Connection", "keep-alive"))
        self._own_headers = CIMultiDict([*headers, *own])
        self._writer: AbstractStreamWriter | None = None
        self._is_over = False

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open after the response."""
        return self._stays_open

    @property
    def prepared(self) -> bool:
        """Whether its head was sent."""
        return self._writer is not None

    @property
    def body_length(self) -> int:
        """The number of bytes that were sent."""
        return self._writer.output_size if self._writer else 0

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Send the head, once."""
        if self._writer is None:
            self._writer = request.writer
            if self._is_chunked:
                self._writer.enable_chunking()
            major, minor = request.version
            line = f"HTTP/{major}.{minor} {self.status} {HTTPStatus(self.status).phrase}"
            await self._writer.write_headers(line, self._own_headers)
            self._writer.send_headers()
        return self._writer

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a piece; call `prepare` first."""
        assert self._writer is not None  # noqa: S101  an error of the caller
        await self._writer.write(data)

    async def write_eof(self, data: bytes = b"") -> None:
        """End the response, once."""
        if self._writer is not None and not self._is_over:
            self._is_over = True
            await self._writer.write_eof(data)


@lru_cache(1)
def _date_line(now: int) -> bytes:
    return f"Date: {formatdate(now, usegmt=True)}\r\n".encode()


_log = logging.getLogger(__name__)
_ERROR_TITLE: Final = sentence("This did not work")


def _postgrest_error(problem: Problem) -> dict[str, str | None]:
    """Return `error` and PostgREST's members; for an invalid credential only `error`."""
    if problem.code == "unauthenticated":
        return {"error": problem.message}
    return {
        "error": problem.message,
        "message": problem.message,
        "code": problem.sqlstate,
        "details": problem.details,
        "hint": problem.hint,
    }


def _oauth_error(problem: Problem) -> dict[str, str]:
    """Return the members of an OAuth error in its allowed characters (RFC 6749, section 5.2)."""
    description = re.sub(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]", "'", problem.message)
    return {"error": problem.oauth, "error_description": description}


def jsonrpc_error(problem: Problem, request_id: str | int | None = None) -> dict[str, Any]:
    """Return an error of JSON-RPC 2.0, section 5; `request_id` is `None` if it is not known."""
    is_ours = problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    error = {"code": -32603 if is_ours else -32600, "message": problem.message}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


_ERROR_MEMBERS: Mapping[ErrorFormat, Callable[[Problem], Mapping[str, Any]]] = {
    "postgrest": _postgrest_error,
    "oauth": _oauth_error,
    "jsonrpc": jsonrpc_error,
}


def error_response(problem: Problem, error_format: ErrorFormat = "plain") -> PreparedResponse:
    """Return the answer that reports a problem to the client."""
    headers = [
        ("Content-Type", JSON),
        ("Cache-Control", NO_STORE),
        *API_HEADERS,
        *problem.headers.items(),
    ]
    members = _ERROR_MEMBERS.get(error_format)
    findings = {"findings": problem.findings} if problem.findings else {}
    body = orjson.dumps(members(problem) if members else {"error": problem.message, **findings})
    return PreparedResponse(problem.status, headers, body)


def report_internal_error(error: BaseException) -> Problem:
    """Log an unexpected exception with its trace; return a problem without details."""
    _log.error("internal error", exc_info=error)
    return Problem("internal")


async def error_page(pages: PageRenderer, problem: Problem, accepted: str = "") -> PreparedResponse:
    """Return the error as a page, or as Markdown if `accepted` prefers that.

    If the page cannot be rendered, return the error as JSON.
    """
    media_type = MARKDOWN if prefers_markdown(accepted) else HTML
    try:
        if media_type == MARKDOWN:
            body = f"# {_ERROR_TITLE}\n\n{escape_markdown(problem.message)}.\n".encode()
        else:
            body = await pages.render(
                "notice", _ERROR_TITLE, sentences=[sentence("%(fault)s.", fault=problem.message)]
            )
    except Problem:
        return error_response(problem)
    own = (("Content-Type", media_type), *problem.headers.items(), ("Vary", "Accept"))
    return PreparedResponse(
        problem.status, (*own, ("Cache-Control", NO_STORE), *PAGE_HEADERS), body
    )
