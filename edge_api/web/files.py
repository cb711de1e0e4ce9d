"""How a file is answered: from memory when small, in pieces when large; ranges and conditions."""

import asyncio
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final

from aiohttp import web
from aiohttp.web_request import BaseRequest

from edge_api.domain.site_files import CODINGS, SiteFile
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.problems import Problem
from edge_api.web.cache import WireCache
from edge_api.web.conditional import Span, asked_span, etag_matches, range_holds
from edge_api.web.headers import SITE_HEADERS
from edge_api.web.wire import REQUEST_ID, Wire, send

SMALL: Final = 1024 * 1024
"""Bytes up to which a file is kept in memory and answered with one write."""
_PIECE: Final = 256 * 1024
"""Bytes that are read and sent at a time of a larger file."""

_ETAGS_MOST: Final = 100_000
"""Validators that are remembered; builds come and go."""

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Representation:
    """One form of one file, as one request gets it."""

    build: Path
    """The folder of the build."""
    file: SiteFile
    coding: str
    """A content coding, or empty."""
    status: int
    headers: Headers

    @property
    def path(self) -> Path:
        """Where its bytes lie."""
        return self.build / SITE_FOLDER / f"{self.file.name}{CODINGS.get(self.coding, '')}"

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What its wire form is kept by: a page that stands for another is another answer."""
        return str(self.build), self.file.name, self.coding, self._variant

    @property
    def _variant(self) -> int:
        return hash((self.status, *self.headers))


class FileAnswers:
    """Answers with files, the small ones kept ready."""

    def __init__(self) -> None:
        self._wires = WireCache()
        self._etags: dict[Path, str] = {}

    async def answer(self, shown: Representation, request: web.Request) -> web.StreamResponse:
        """Return the answer. Raises Problem `unavailable` when the file cannot be read."""
        etag = self._etags.get(shown.path) or await self._measure(shown.path)
        headers = request.headers
        condition = headers.get("If-None-Match")
        if shown.status != HTTPStatus.OK:
            return await self._whole(shown, etag, request)
        if condition is not None and etag_matches(condition, etag):
            return send(Wire(304, _whole_headers(shown, etag)), request)
        ranged = "Range" in headers and request.method == "GET"
        if ranged and range_holds(headers.get("If-Range"), etag):
            return await self._range(shown, etag, request)
        return await self._whole(shown, etag, request)

    async def _measure(self, path: Path) -> str:
        """Make the validator of a file: its builds never change it, so it is made once."""
        try:
            digest = await asyncio.to_thread(_digest, path)
        except OSError:
            raise Problem("unavailable", "Try again: this file cannot be read now") from None
        if len(self._etags) > _ETAGS_MOST:
            self._etags.clear()
        self._etags[path] = f'"{digest}"'
        return self._etags[path]

    async def _whole(
        self, shown: Representation, etag: str, request: web.Request
    ) -> web.StreamResponse:
        kept = self._wires.get(shown.key)
        if kept is not None:
            return send(kept, request)
        size = (await asyncio.to_thread(shown.path.stat)).st_size
        headers = _whole_headers(shown, etag)
        if size > SMALL:
            return await _stream(request, shown, shown.status, headers, Span(0, size))
        body = await asyncio.to_thread(shown.path.read_bytes)
        wire = Wire(shown.status, headers, body)
        self._wires.keep(shown.key, wire, len(body))
        return send(wire, request)

    async def _range(
        self, shown: Representation, etag: str, request: web.Request
    ) -> web.StreamResponse:
        """Answer with a part of the file (RFC 9110, section 14)."""
        size = (await asyncio.to_thread(shown.path.stat)).st_size
        span = asked_span(request.headers["Range"], size)
        if span == "whole":
            return await self._whole(shown, etag, request)
        if span == "unsatisfiable":
            raise Problem("range_not_satisfiable", headers={"Content-Range": f"bytes */{size}"})
        headers = [*_whole_headers(shown, etag), ("Content-Range", span.content_range(size))]
        return await _stream(request, shown, HTTPStatus.PARTIAL_CONTENT, headers, span)


def _whole_headers(shown: Representation, etag: str) -> Headers:
    coded = [("Content-Encoding", shown.coding)] if shown.coding else []
    ranges = [("Accept-Ranges", "bytes")]
    return [*shown.headers, ("ETag", etag), *ranges, *coded, *SITE_HEADERS]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        hashed = sha256()
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return hashed.hexdigest()[:24]


async def _stream(
    request: BaseRequest, shown: Representation, status: int, headers: Headers, span: Span
) -> web.StreamResponse:
    """Send a part of a file piece by piece, reading off the event loop."""
    response = web.StreamResponse(status=status, headers=headers)
    response.headers["X-Request-ID"] = request[REQUEST_ID]
    response.content_length = span.length
    with await asyncio.to_thread(shown.path.open, "rb") as file:
        await asyncio.to_thread(file.seek, span.start)
        await response.prepare(request)
        if request.method != "HEAD":
            await _copy(file, span.length, response)
    await response.write_eof()
    return response


async def _copy(file: BinaryIO, length: int, response: web.StreamResponse) -> None:
    while length > 0:
        piece = await asyncio.to_thread(file.read, min(_PIECE, length))
        if not piece:
            return
        length -= len(piece)
        await response.write(piece)
