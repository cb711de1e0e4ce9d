"""Documents with their validators: conditional requests, ranges and codings."""

import asyncio
import gzip
import re
from collections.abc import Callable, Mapping
from typing import Final

import brotli
from aiohttp.hdrs import ACCEPT_ENCODING, IF_NONE_MATCH

from edge_api.db.versioned_cache import SizedCache
from edge_api.http.headers import API_HEADERS
from edge_api.http.request import Request, joined_header
from edge_api.http.response import PreparedResponse
from edge_api.operation.negotiation import best_coding
from edge_api.operation.service import Document
from edge_api.schema.site_policy import Header, Headers

_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\U0010ffff]*")')
_TAGS: Final = re.compile(rf"(?:[ \t]*+(?:{_TAG.pattern}[ \t]*+)?(?:,|\Z))*+")
"""Possessive, so that a header of nothing but blanks costs no more than its length."""
_RANGE: Final = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)", re.IGNORECASE)
_MAX_DIGITS: Final = 18  # no file is longer; Python refuses to read numbers of thousands of digits


def etag_matches(condition: str, etag: str) -> bool:
    """Return whether a well-formed `If-None-Match` names `etag`, compared weakly (8.8.3.2)."""
    if condition == etag or condition.strip() == "*":
        return True
    is_list = _TAGS.fullmatch(condition) is not None
    return is_list and etag.removeprefix("W/") in _TAG.findall(condition)


def range_applies(condition: str | None, etag: str) -> bool:
    """Return whether an `If-Range` is absent, or the same strong validator (section 13.1.5)."""
    return condition is None or (condition.strip() == etag and not etag.startswith("W/"))


def parse_range(header: str, size: int) -> range | None:
    """Return the positions among `size` bytes that a `Range` asks for (section 14.1.2).

    They are empty where there are none; `None` for another unit, broken syntax and several ranges.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = (int(digits.lstrip("0")[:_MAX_DIGITS] or 0) for digits in match.groups())
    if not match[1]:
        return range(max(size - last, 0), size)
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size) if match[2] else size)


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
