"""How a Document is answered: its validator, its codings, and 304."""

import asyncio
import gzip
from collections.abc import Callable, Mapping
from typing import Final

import brotli
from aiohttp.hdrs import ACCEPT_ENCODING, IF_NONE_MATCH

from edge_api.db.versioned_cache import SizedCache
from edge_api.http.headers import API_HEADERS
from edge_api.http.negotiation import etag_matches
from edge_api.http.request import Request, whole_list
from edge_api.http.response import PreparedResponse
from edge_api.operation.negotiation import best_coding
from edge_api.operation.result import Document
from edge_api.schema.site_policy import Header, Headers

SMALLEST_CODED: Final = 1024
"""Bytes up to which compressing saves no packet."""

CODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "br": lambda body: brotli.compress(body, quality=5),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
"""For what is made here; a build has the time to compress harder."""
_CODINGS: Final = tuple(CODERS)


class DocumentAnswers:
    """Wire forms of documents, made on first use."""

    def __init__(self, cache: SizedCache[PreparedResponse]) -> None:
        self._cache = cache

    async def answer(
        self, document: Document, request: Request, always: Headers = API_HEADERS
    ) -> PreparedResponse:
        """Return the best form of `document` for the request, or 304 (RFC 9110, section 13.2).

        `always` is what goes out with every answer of the kind; it never changes for a document.
        """
        coding = _coding(document.body, request)
        condition = whole_list(request.headers, IF_NONE_MATCH)
        if condition is not None and etag_matches(condition, coded_etag(document.etag, coding)):
            return PreparedResponse(304, _validators(document, coding, always))
        kept = self._cache.get((id(document), coding))
        return kept or await self._make(document, coding, always)

    async def _make(self, document: Document, coding: str, always: Headers) -> PreparedResponse:
        coder = CODERS.get(coding)
        body = await asyncio.to_thread(coder, document.body) if coder else document.body
        coded = [("Content-Encoding", coding)] if coding else []
        content = [("Content-Type", document.media_type), *coded]
        response = PreparedResponse(200, [*content, *_validators(document, coding, always)], body)
        if document.is_lasting:
            size = len(body) + len(document.body)
            self._cache.keep((id(document), coding), response, size, owner=document)
        return response


def coded_etag(etag: str, coding: str) -> str:
    """Return the validator of one coding: each is a representation of its own."""
    return f'{etag[:-1]}-{coding}"' if coding else etag


def _coding(body: bytes, request: Request) -> str:
    accepted = whole_list(request.headers, ACCEPT_ENCODING)
    if accepted is None or len(body) <= SMALLEST_CODED:
        return ""
    return best_coding(accepted, _CODINGS)


async def compress(answer: PreparedResponse, request: Request) -> PreparedResponse:
    """Return the best form of an answer that is made for this request alone."""
    if len(answer.sent_body) <= SMALLEST_CODED:
        return answer
    varies = ("Vary", "Accept-Encoding")
    coding = _coding(answer.sent_body, request)
    if not coding:
        return answer.coded(varies)
    body = await asyncio.to_thread(CODERS[coding], answer.sent_body)
    return answer.coded(varies, ("Content-Encoding", coding), body=body)


def _validators(document: Document, coding: str, always: Headers) -> list[Header]:
    """Return the headers that a 200 and a 304 share (RFC 9110, section 15.4.5)."""
    return [
        ("ETag", coded_etag(document.etag, coding)),
        ("Cache-Control", document.cache_control),
        ("Vary", ", ".join((*document.varies, "Accept-Encoding"))),
        *document.headers,
        *always,
    ]
