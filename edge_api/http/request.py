"""A request: its id, its header fields, and what its answer has to carry."""

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
    """aiohttp's request; attributes take the place of its mapping, which costs more."""

    request_id = ""
    """The id that the answer repeats."""
    is_last = False
    """Whether the connection is to end with the answer, since the service is about to."""
    cancel_on_disconnect = False
    """Whether what answers it stops when its client goes away."""
    always: Headers = ()
    """Headers that the origin gives to each of its answers."""
    limits: Mapping[str, str] = MappingProxyType({})
    """The rate-limit fields of its answer."""
    extra_lines = b""
    """Those as lines, and what belongs to this answer alone."""


ID_HEADER = istr("X-Request-ID")
_ACCEPTED = re.compile(r"[A-Za-z0-9-]{8,64}")
_PROCESS = secrets.token_hex(4)  # tells apart the ids of different processes
_numbers = itertools.count(secrets.randbits(16))
_current: ContextVar[str] = ContextVar("request_id", default="-")


def mark(request: Request) -> None:
    """Give the request the id that it brought, if that is well formed, or a new one."""
    request_id = request.headers.get(ID_HEADER)
    if request_id is None or _ACCEPTED.fullmatch(request_id) is None:
        request_id = f"{_PROCESS}{next(_numbers):08x}"
    request.request_id = request_id
    _current.set(request_id)


class RequestIdFilter(logging.Filter):
    """Puts the id of the current request into each log record, as `request_id`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; keep every record."""
        record.request_id = _current.get()
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
