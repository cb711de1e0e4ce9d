"""The id that follows one request: from its header into every log line and its answer."""

import itertools
import logging
import re
import secrets
from contextvars import ContextVar

from multidict import istr

from edge_api.web.request import Request

ID_HEADER = istr("X-Request-ID")
_ACCEPTED = re.compile(r"[A-Za-z0-9-]{8,64}")
_PROCESS = secrets.token_hex(4)
"""Tells the ids of this process from those of any other."""
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
