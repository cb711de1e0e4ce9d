"""A request: its id, its header fields, and headers for its answer."""

import itertools
import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

from aiohttp.web_request import BaseRequest
from multidict import CIMultiDictProxy, istr

from edge_api.schema.site_policy import Headers


class Request(BaseRequest):
    """aiohttp's request with attributes, which are faster than its mapping."""

    request_id = ""
    """The id that the answer repeats."""
    closes_connection = False
    """Whether the connection closes after the answer, since the service is stopping."""
    cancel_on_disconnect = False
    """Whether its handler is cancelled when the client disconnects."""
    origin_headers: Headers = ()
    """Headers for every answer of this origin."""
    limit_headers: Mapping[str, str] = MappingProxyType({})
    """The rate-limit fields of its answer."""
    extra_header_lines = b""
    """Both as header lines, with others for this answer alone."""


ID_HEADER = istr("X-Request-ID")
_VALID_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_PROCESS = secrets.token_hex(4)  # tells apart the ids of different processes
_counter = itertools.count(secrets.randbits(16))
_current_id: ContextVar[str] = ContextVar("request_id", default="-")


def assign_request_id(request: Request) -> None:
    """Set the request's id: the one in its header if that is well formed, else a new one."""
    request_id = request.headers.get(ID_HEADER)
    if request_id is None or _VALID_ID.fullmatch(request_id) is None:
        request_id = f"{_PROCESS}{next(_counter):08x}"
    request.request_id = request_id
    _current_id.set(request_id)


def add_request_id(record: logging.LogRecord) -> bool:
    """Put the id of the current request into a log record, as `request_id`; drop no record."""
    record.request_id = _current_id.get()
    return True


class HeaderFields(Mapping[str, str]):
    """Header fields by name, whatever its case; one on several lines is one list."""

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
