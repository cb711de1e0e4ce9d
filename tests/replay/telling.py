"""An answer as the recording has it: what the edge decided, and nothing that a theme or build did.

A body of the built site is compared with the file on disk, and told by the file's name. A page that
the edge renders is told by its outline. Everything else is told as it is, or if it is long by
length, digest and beginning.
"""

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
"""Characters from which on a text is told by length, digest and beginning."""
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
_REQUEST_ID = "<request id>"
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
    """Return a JSON value in which long parts are told by length, digest and beginning."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONG:
        return value
    if isinstance(value, dict) and depth and len(value) < _MOST_MEMBERS:
        return {name: shorten_json(part, depth - 1) for name, part in value.items()}
    return shorten(value if isinstance(value, str) else text)


class Teller:
    """Tells the answers of one walk."""

    def __init__(self, names: Names, site: Path) -> None:
        self._names = names
        self._site = site
        self._told: set[str] = set()

    def tell(self, method: str, answer: Answer) -> Json:
        """Return the entry of an answer: status, headers in two groups, and body."""
        kind, coding = answer.kind, answer.header("content-encoding")
        self._learn_cookies(answer)
        raw = _decode(answer.body, coding, whole=answer.status != HTTPStatus.PARTIAL_CONTENT)
        file = self._file_of(answer, raw) if raw else ""
        told = self._tell_body(kind, raw, file)
        is_odd = bool(file or "html" in kind or coding or told != self._plain(raw))
        lines = sorted(
            f"{name}: {self._header(name, value, answer, method, odd=is_odd)}"
            for name, value in answer.headers
            if name.lower() not in _LEFT_OUT
        )
        entry: Json = {
            "status": answer.status,
            "own": [line for line in lines if _is_own(line)],
            "shared": [line for line in lines if not _is_own(line)],
        }
        if method != "HEAD" and answer.body:
            entry["body"] = self._once(told, self._shorten(kind, told, file))
        if answer.closed:
            entry["closed"] = True
        tokens = self._names.new_tokens()
        return {**entry, **({"tokens": tokens} if tokens else {})}

    def _once(self, told: str, short: Any) -> Any:
        """Return a shortened body, or where the walk has it already only its digest."""
        if len(told) <= LONG:
            return short
        name = digest(told)
        is_known = name in self._told
        self._told.add(name)
        return f"as before, {name}" if is_known else short

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
        told = self._names.apply(outline(text) if "html" in kind else text)
        return re.sub(r"try again in \d+ seconds?", "try again in <some> seconds", told)

    def _shorten(self, kind: str, told: str, file: str) -> Any:
        if "json" not in kind or file:
            return shorten(told)
        try:
            value = json.loads(told)
        except ValueError:
            return shorten(told)
        short = shorten_json(value)
        return short if len(told) <= LONG else {"digest": digest(told), "members": short}

    def _header(self, name: str, value: str, answer: Answer, method: str, *, odd: bool) -> str:
        """Return the value of a header; `odd`: the body is not the same in each build or play."""
        lower, is_head = name.lower(), method == "HEAD"
        if lower == "x-request-id" and re.fullmatch(r"[0-9a-f]{16}", value):
            value = _REQUEST_ID
        elif lower == "etag" and (odd or is_head):
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
