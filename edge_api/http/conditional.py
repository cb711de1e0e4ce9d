"""Documents with their validators: conditional requests, ranges and codings."""

import asyncio
import gzip
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

import brotli
from aiohttp.hdrs import ACCEPT_ENCODING, IF_NONE_MATCH

from edge_api.db.versioned_cache import SizedCache
from edge_api.http.headers import API_HEADERS
from edge_api.http.request import Request, joined_header
from edge_api.http.response import PreparedResponse
from edge_api.operation.negotiation import best_coding
from edge_api.operation.result import Document
from edge_api.schema.site_policy import Header, Headers

_ENTITY_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\U0010ffff]*"'
_LISTED_TAG: Final = re.compile(rf"[ \t]*+({_ENTITY_TAG})?[ \t]*+(?:,|\Z)")
"""Possessive, so that a header of nothing but blanks costs no more than its length."""
_RANGE: Final = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)", re.IGNORECASE)
_MAX_DIGITS: Final = 18  # no file is longer; Python refuses to read numbers of thousands of digits


def etag_matches(condition: str, etag: str) -> bool:
    """Return whether a well-formed `If-None-Match` names `etag`, compared weakly (8.8.3.2)."""
    if condition == etag or condition.strip() == "*":
        return True
    return etag.removeprefix("W/") in _opaque_tags(condition)


def _opaque_tags(condition: str) -> frozenset[str]:
    tags: set[str] = set()
    position = 0
    while position < len(condition):
        listed = _LISTED_TAG.match(condition, position)
        if listed is None:
            return frozenset()
        if listed[1]:
            tags.add(listed[1].removeprefix("W/"))
        position = max(listed.end(), position + 1)
    return frozenset(tags)


def range_applies(condition: str | None, etag: str) -> bool:
    """Return whether an `If-Range` is absent, or the same strong validator (section 13.1.5)."""
    return condition is None or (condition.strip() == etag and not etag.startswith("W/"))


class ByteRange(NamedTuple):
    """Part of a body: `length` bytes from `start` on."""

    start: int
    length: int

    def content_range(self, size: int) -> str:
        """Return the value of `Content-Range` for this part of `size` bytes (section 14.4)."""
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"


def parse_range(header: str, size: int) -> ByteRange | Literal["whole", "unsatisfiable"]:
    """Return the part of `size` bytes that a `Range` asks for (section 14.1.2).

    `whole` for another unit, broken syntax and several ranges at once.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return "whole"
    first, last = (_number(digits) for digits in match.groups())
    if first is None:
        return _span(max(size - (last or 0), 0), size - 1, size)
    if last is not None and last < first:
        return "whole"
    return _span(first, size - 1 if last is None else min(last, size - 1), size)


def _number(digits: str) -> int | None:
    if not digits:
        return None
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS


def _span(first: int, last: int, size: int) -> ByteRange | Literal["unsatisfiable"]:
    return ByteRange(first, last - first + 1) if first < size else "unsatisfiable"


COMPRESSION_THRESHOLD: Final = 1024
"""Smaller bodies are not compressed: that would save no packet."""

ENCODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "br": lambda body: brotli.compress(body, quality=5),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
"""For what is made here; a build has the time to compress harder."""
_CODINGS: Final = tuple(ENCODERS)


class DocumentResponses:
    """The responses to requests for documents, made on first use and cached."""

    def __init__(self, cache: SizedCache[PreparedResponse]) -> None:
        self._cache = cache

    async def answer(
        self, document: Document, request: Request, common: Headers = API_HEADERS
    ) -> PreparedResponse:
        """Return the best form of `document` with `common`, or 304 (section 13.2)."""
        coding = _coding(document.body, request)
        condition = joined_header(request.headers, IF_NONE_MATCH)
        if condition is not None and etag_matches(condition, coded_etag(document.etag, coding)):
            return PreparedResponse(304, _validators(document, coding, common))
        cached = self._cache.get((id(document), coding))
        return cached or await self._make(document, coding, common)

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
    """Return the validator of one coding: each is a representation of its own."""
    return f'{etag[:-1]}-{coding}"' if coding else etag


def _coding(body: bytes, request: Request) -> str:
    accepted = joined_header(request.headers, ACCEPT_ENCODING)
    if accepted is None or len(body) <= COMPRESSION_THRESHOLD:
        return ""
    return best_coding(accepted, _CODINGS)


async def compress(answer: PreparedResponse, request: Request) -> PreparedResponse:
    """Return an answer that is made for this request alone, compressed if that is worth it."""
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
