"""The access log: one line a request, without a query, an address, a body or a credential."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from edge_api.http.request import Request
from edge_api.http.response import PreparedResponse

_TOKEN_FOLDERS: Final = ("/shared/", "/desk/link/")  # what follows these in a path is a token
_log = logging.getLogger("edge_api.access")


class AccessLog:
    """Writes a line for each request, as an observer of all of them."""

    def __init__(self, log_format: str) -> None:
        """`log_format` is `combined`, the format of web servers, or `json`."""
        self._write: Callable[[Mapping[str, Any]], str] = _FORMATTERS[log_format]

    def __call__(
        self, request: Request, route: str, response: web.StreamResponse, seconds: float
    ) -> None:
        """Write the line of one request."""
        size = response.body_length
        if isinstance(response, PreparedResponse):
            size = len(response.sent_body)
        entry = {
            "time": time.time(),
            "method": request.method,
            "path": redact_path(request.rel_url.raw_path),
            "operation": route,
            "status": response.status,
            "bytes": 0 if request.method == "HEAD" else size,
            "seconds": round(seconds, 6),
            "request_id": request.request_id,
            "agent": request.headers.get("User-Agent", "-"),
            "version": f"{request.version.major}.{request.version.minor}",
        }
        _log.info("%s", self._write(entry))


def redact_path(path: str) -> str:
    """Return a path with `-` in place of a token."""
    for folder in _TOKEN_FOLDERS:
        if path.startswith(folder):
            return f"{folder}-"
    return path


def _combined(entry: Mapping[str, Any]) -> str:
    at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(entry["time"]))
    line = f"{entry['method']} {entry['path']} HTTP/{entry['version']}"
    quoted = "".join(_escape(each) for each in entry["agent"])
    return f'- - - [{at}] "{line}" {entry["status"]} {entry["bytes"] or "-"} "-" "{quoted}"'


def _escape(character: str) -> str:
    is_plain = character.isprintable() and character not in '"\\'
    return character if is_plain else f"\\x{ord(character):02x}"


def _json(entry: Mapping[str, Any]) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry["time"]))
    return orjson.dumps({**entry, "time": at}).decode()


_FORMATTERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "combined": _combined,
    "json": _json,
}
