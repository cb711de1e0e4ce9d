"""An answer as the recording has it: what the edge decided, and nothing that a theme or build did.

A body of the built site is compared with the file on disk, and recorded as its name. Bodies of
OAuth, of MCP and of errors are recorded whole, or if they are long by length, digest and
beginning. Every other one is asserted by another test, and recorded by its shape and a digest: a
new column or operation changes shapes, which are stored once, and not each walk that meets it.
"""

import csv
import gzip
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any

import brotli

from tests.replay.client import Answer
from tests.replay.names import Names
from tests.replay.outline import outline

Json = dict[str, Any]

LONG = 300
"""Characters from which on a text is recorded by length, digest and beginning."""
_SHOWN = 120
_MOST_MEMBERS = 200
_OWN = frozenset(
    {
        "allow",
        "content-location",
        "content-range",
        "etag",
        "idempotency-replayed",
        "location",
        "ratelimit",
        "retry-after",
        "set-cookie",
    }
)
"""Headers that say something of one answer. A recording has each set of all others once."""
_LEFT_OUT = frozenset({"date"})
_OF_LONG_BODIES = "Vary: Accept-Encoding"
"""Left out: a row gets it that grows by a column; `tests/edge/test_http_rules.py` asserts it."""
_REQUEST_ID = "<request id>"
_WHOLE = re.compile(
    r"/api/public/oauth/|/\.well-known/oauth-|/\.well-known/jwks\.json|/api/public/mcp$"
)
"""The paths whose bodies are recorded whole."""
_DESCRIBED = re.compile(
    r"/api/public/v1/?$|/api/public/v1/openapi\.json|/docs/|/\.well-known/|/api/public/mcp/"
)
"""The paths of documents about operations and columns: what they say belongs to their shape."""
NOW = "now"
"""The member of an entry with a body that has a digest: to be read, and not compared."""
_DEPTH = 4
_SPANS = 100
"""Bytes from the beginning of a file up to which positions do not depend on its size."""


def digest(text: str) -> str:
    """Return the beginning of a text's SHA-256."""
    return sha256(text.encode()).hexdigest()[:16]


def shorten(text: str) -> str:
    """Return a text, or if it is long its length, digest and beginning."""
    if len(text) <= LONG:
        return text
    return f"{len(text)} characters, {digest(text)}: {text[:_SHOWN]}"


def shorten_json(value: Any, depth: int = 2) -> Any:
    """Return a JSON value in which long parts are length, digest and beginning."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONG:
        return value
    if isinstance(value, dict) and depth and len(value) < _MOST_MEMBERS:
        return {name: shorten_json(part, depth - 1) for name, part in value.items()}
    return shorten(value if isinstance(value, str) else text)


def outline_json(value: Any, depth: int = _DEPTH) -> Any:
    """Return the shape of a JSON value: names of members and kinds of values."""
    if isinstance(value, dict):
        parts = {name: outline_json(part, depth - 1) for name, part in value.items()}
        return parts if depth else "object"
    if isinstance(value, list):
        shapes = [outline_json(part, depth - 1) for part in value] if depth else []
        return [shape for at, shape in enumerate(shapes) if shape not in shapes[:at]]
    kinds = {str: "text", bool: "boolean", int: "number", float: "number"}
    return kinds.get(type(value), "null")


def without_nulls(value: Any) -> Any:
    """Return a JSON value without members that are null: a new column has nothing else yet."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


class Teller:
    """Tells the answers of one walk."""

    def __init__(self, names: Names, site: Path) -> None:
        self._names = names
        self._site = site

    def tell(self, method: str, answer: Answer, path: str = "") -> Json:
        """Return the entry of an answer: status, headers in two groups, and body."""
        kind, coding = answer.kind, answer.header("content-encoding")
        self._learn_cookies(answer)
        raw = _decode(answer.body, coding, whole=answer.status != HTTPStatus.PARTIAL_CONTENT)
        file = self._file_of(answer, raw) if raw else ""
        masked = self._tell_body(kind, raw, file)
        is_odd = bool(file or "html" in kind or coding or masked != self._plain(raw))
        lines = sorted(
            f"{name}: {self._header(name, value, answer, method, odd=is_odd)}"
            for name, value in answer.headers
            if name.lower() not in _LEFT_OUT and f"{name}: {value}" != _OF_LONG_BODIES
        )
        entry: Json = {
            "status": answer.status,
            "own": [line for line in lines if _is_own(line)],
            "shared": [line for line in lines if not _is_own(line)],
        }
        if method != "HEAD" and answer.body:
            is_whole = file or answer.status >= HTTPStatus.BAD_REQUEST or _WHOLE.match(path)
            entry |= (
                {"body": self._shorten(kind, masked, file)}
                if is_whole
                else tell_digest(kind, masked, described=_DESCRIBED.match(path) is not None)
            )
        if answer.closed:
            entry["closed"] = True
        tokens = self._names.new_tokens()
        return {**entry, **({"tokens": tokens} if tokens else {})}

    def _learn_cookies(self, answer: Answer) -> None:
        for name, value in answer.headers:
            found = re.match(r"[^=;]+=([^;]{16,})", value)
            if name.lower() == "set-cookie" and found:
                self._names.learn("cookie", found[1])

    def _plain(self, raw: bytes) -> str:
        return raw.decode("utf-8", "backslashreplace")

    def _tell_body(self, kind: str, raw: bytes, file: str) -> str:
        if file or not raw:
            return file
        text = self._plain(raw)
        masked = self._names.apply(outline(text) if "html" in kind else text)
        masked = re.sub(r"\bit has (?:\w+, )+\w+", "it has <columns>", masked)
        return re.sub(r"try again in \d+ seconds?", "try again in <some> seconds", masked)

    def _shorten(self, kind: str, masked: str, file: str) -> Any:
        if "json" not in kind or file:
            return shorten(masked)
        try:
            value = json.loads(masked)
        except ValueError:
            return shorten(masked)
        short = shorten_json(value)
        return short if len(masked) <= LONG else {"digest": digest(masked), "members": short}

    def _header(self, name: str, value: str, answer: Answer, method: str, *, odd: bool) -> str:
        """Return the value of a header; `odd`: the body is not the same in each build or play."""
        lower, is_head = name.lower(), method == "HEAD"
        if lower == "x-request-id" and re.fullmatch(r"[0-9a-f]{16}", value):
            value = _REQUEST_ID
        elif lower == "etag" and (odd or is_head or value.startswith('"')):
            value = self._names.learn("etag", value)
        elif lower == "content-length" and value != "0":
            value = "<length>"  # so many bytes have come
        elif lower == "content-range" and value.startswith("bytes"):
            value = _tell_range(value)
        elif lower == "ratelimit":
            value = re.sub(r";t=\d+", ";t=<seconds>", value)
        elif lower == "retry-after" and answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            value = "<seconds>"
        return self._names.apply(value)

    def _file_of(self, answer: Answer, raw: bytes) -> str:
        """Return which file of the site the body is, or is a part of; nothing if it is none."""
        if answer.status not in (200, 206, 404) or len(raw) < 2:
            return ""
        span = re.match(r"bytes (\d+)-(\d+)/(\d+)", answer.header("content-range"))
        for path, content in self._contents().items():
            if content == raw or (
                span
                and content[int(span[1]) : int(span[2]) + 1] == raw
                and len(content) == int(span[3])
            ):
                return f"{'part of ' if span else ''}the file {self._names.apply(path)}"
        return ""

    def _contents(self) -> Mapping[str, bytes]:
        if self._site not in _CONTENTS:
            files = sorted(path for path in self._site.rglob("*") if path.is_file())
            _CONTENTS[self._site] = {
                str(path.relative_to(self._site)): path.read_bytes() for path in files
            }
        return _CONTENTS[self._site]


_CONTENTS: dict[Path, Mapping[str, bytes]] = {}


def _read_csv(masked: str) -> Any:
    """Return the rows of a table; NULL is an empty cell."""
    rows = csv.DictReader(masked.splitlines())
    return [{name: text or None for name, text in row.items()} for row in rows]


def tell_digest(kind: str, masked: str, *, described: bool = False) -> Json:
    """Return shape and digest of a body; of a document that describes others both in its shape."""
    try:
        value = _read_csv(masked) if "csv" in kind else json.loads(masked)
    except ValueError:
        shape, name = "page" if "html" in kind else "text", digest(masked)
    else:
        shape = outline_json(value, 2 if described else _DEPTH)
        name = digest(json.dumps(without_nulls(value), ensure_ascii=False))
    parts = {"shape": {"digest": name, "members": shape}} if described else None
    return {**(parts or {"shape": shape, "digest": name}), NOW: masked}


def _is_own(line: str) -> bool:
    name, _, value = line.partition(": ")
    is_echo = name == "X-Request-ID" and value != _REQUEST_ID
    return is_echo or name.lower() in _OWN


def _tell_range(value: str) -> str:
    """Return a Content-Range in which positions near the end are counted from there."""
    size = int(value.rpartition("/")[2])

    def count(match: re.Match[str]) -> str:
        position = int(match[0])
        return match[0] if position < _SPANS else f"<size-{size - position}>"

    span, _, _ = value.rpartition("/")
    return f"{re.sub(r'[0-9]+', count, span)}/<size>"


def _decode(body: bytes, coding: str, *, whole: bool) -> bytes:
    if not (coding and body and whole):
        return body
    decoded = brotli.decompress(body) if coding == "br" else gzip.decompress(body)
    return bytes(decoded)
