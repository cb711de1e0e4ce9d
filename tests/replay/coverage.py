"""Coverage of the walks: every operation of the OpenAPI document, and the problems of the edge."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.replay.client import Client
from tests.replay.recording import Json, Played

OPENAPI = "/api/public/v1/openapi.json"
_METHODS = ("get", "post", "patch", "delete")

PROBLEMS: Mapping[str, tuple[int, str]] = {
    "invalid": (400, ""),
    "unauthenticated": (401, ""),
    "forbidden": (403, "another site|Not allowed|denied|off|Origin"),
    "insufficient_scope": (403, "insufficient_scope"),
    "table_not_allowed": (403, "Table not allowed"),
    "not_found": (404, ""),
    "method_not_allowed": (405, ""),
    "not_acceptable": (406, ""),
    "body_timeout": (408, ""),
    "conflict": (409, "exists|already|used|revoked"),
    "stale": (412, ""),
    "locked": (423, ""),
    "unnamed": (428, ""),
    "in_progress": (409, "is running"),
    "too_large": (413, ""),
    "unsupported_media_type": (415, ""),
    "range_not_satisfiable": (416, ""),
    "misdirected": (421, ""),
    "idempotency_mismatch": (422, "Idempotency-Key"),
    "fetch_failed": (422, "has no page at|fetched"),
    "too_many_requests": (429, ""),
    "internal": (500, ""),
    "not_implemented": (501, ""),
    "unavailable": (503, ""),
}
"""The status of each problem, and what an answer with it says, as a regular expression."""


def read_operations(port: int) -> list[tuple[str, str]]:
    """Return method and path of every operation that an edge documents."""
    client = Client(port)
    client.send(f"GET {OPENAPI} HTTP/1.1\r\nHost: journal.test\r\n\r\n".encode())
    document: dict[str, Any] = json.loads(client.receive().body)
    client.close()
    return [
        (method.upper(), path)
        for path, entry in document["paths"].items()
        for method in _METHODS
        if method in entry
    ]


def missed_operations(operations: list[tuple[str, str]], played: Played) -> list[str]:
    """Return the operations to which no request was answered with success."""
    done = set(_successes(played))
    return [
        f"{method} {path}"
        for method, path in operations
        if not any(verb == method and _is_at(path, target) for verb, target in done)
    ]


def missed_problems(played: Played) -> list[str]:
    """Return the problems that no answer tells of."""
    return [
        code
        for code, (status, words) in PROBLEMS.items()
        if not any(
            entry.get("status") == status and re.search(words, str(entry))
            for entries in played.values()
            for entry in entries
        )
    ]


def _successes(played: Played) -> Iterator[tuple[str, str]]:
    for entries in played.values():
        for entry in entries:
            if "ask" in entry and _is_success(entry):
                method, _, target = entry["ask"].partition(" ")
                yield method, target.partition("?")[0]


def _is_success(entry: Json) -> bool:
    status: int = entry["status"]
    return 200 <= status < 400


def _is_at(path: str, target: str) -> bool:
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    return re.fullmatch(pattern, target) is not None
