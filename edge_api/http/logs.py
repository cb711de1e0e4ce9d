"""The log, with one line per record and the id of its request, and the access log."""

import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import orjson
from aiohttp import web

from edge_api.http.response import PreparedResponse, Request, add_request_id


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object, with the worker's number if there are several."""

    converter = staticmethod(time.gmtime)

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._worker_fields = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%SZ"),
            "level": record.levelname.lower(),
            **self._worker_fields,
            "request_id": getattr(record, "request_id", "-"),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(log_format: str, worker: int | None = None) -> None:
    """Write records to standard error as `text` or `json`, with the number of this `worker`."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonFormatter(worker))
    else:
        prefix = "" if worker is None else f"[{worker}] "
        formatter = logging.Formatter(
            f"%(asctime)s %(levelname)-7s {prefix}%(request_id)s %(name)s: %(message)s",
            "%Y-%m-%dT%H:%M:%SZ",
        )
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
    handler.addFilter(add_request_id)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # not each change
    access = logging.getLogger("edge_api.access")
    access.handlers, access.propagate = [logging.StreamHandler(sys.stdout)], False


# The part of a path after `/shared/` or `/desk/link/` is a token, which no log may have.
_SLASH: Final = re.compile(r"([/\\]|%(?:25)*(?:2f|5c))", re.IGNORECASE)
_TOKEN_FOLDER: Final = re.compile(r"\W*(shared|desk|link)(?:[^\w-].*)?", re.IGNORECASE | re.DOTALL)
_log = logging.getLogger("edge_api.access")


class AccessLog:
    """An `Observer` that writes a line for each request."""

    def __init__(self, log_format: str) -> None:
        """Take the format of the lines: `json`, or `combined` as Apache and nginx write it."""
        self._write = _format_json if log_format == "json" else _format_combined

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


def redact_path(raw_path: str) -> str:
    """Return a path as it was sent, with `-` for a token, however its folder is encoded."""
    is_desk, parts = False, _SLASH.split(raw_path)
    for at, part in enumerate(parts):
        found = _TOKEN_FOLDER.fullmatch(unquote(re.sub("%(?:25)+", "%", part)))
        name = found[1].casefold() if found else ""
        is_desk |= name == "desk"
        if name == "shared" or (is_desk and name == "link"):
            has_more = "".join(parts[at:]).strip("/").casefold() != name
            return "".join((*parts[:at], name, "/-")) if has_more else raw_path
    return raw_path


def _format_combined(entry: Mapping[str, Any]) -> str:
    at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(entry["time"]))
    line = f"{entry['method']} {entry['path']} HTTP/{entry['version']}"
    quoted = "".join(
        each if each.isprintable() and each not in '"\\' else f"\\x{ord(each):02x}"
        for each in entry["agent"]
    )
    return f'- - - [{at}] "{line}" {entry["status"]} {entry["bytes"] or "-"} "-" "{quoted}"'


def _format_json(entry: Mapping[str, Any]) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry["time"]))
    return orjson.dumps({**entry, "time": at}).decode()
