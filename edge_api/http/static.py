"""Serving of files: type, caching, conditions, ranges."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import quote

from aiohttp import web

from edge_api.db.problems import Problem
from edge_api.http.conditional import CODERS, ByteRange, etag_matches, range_holds, requested_range
from edge_api.http.headers import ANY_ORIGIN, API_LINKS, resource_policy
from edge_api.http.request import Request, joined_header
from edge_api.http.response import PreparedResponse, StreamedResponse, send
from edge_api.journal.site_files import CODINGS, INDEX, MARKDOWN_INDEX, WELL_KNOWN, SiteFile
from edge_api.operation.result import NEGOTIATED, REVALIDATED
from edge_api.schema.site_policy import (
    FEEDS,
    PART_HEADERS,
    SITE_HEADERS,
    Headers,
    is_part,
    media_type,
)

_HASHED: Final = re.compile(
    r"theme/(?:.+/)?[^/]+\.[0-9a-f]{8,64}\.\w+|pictures/[0-9a-f]{8,64}/[^/]+"
)
"""Names with a hash of the content: the file never changes."""

FOREVER: Final = "public, max-age=31536000, immutable"
BRIEFLY: Final = "public, max-age=300"

_FOR_MACHINES: Final[Mapping[str, str]] = {
    "/llms.txt": 'rel="describedby"; type="text/plain"',
    "/sitemap.xml": 'rel="sitemap"; type="application/xml"',
}
"""Files that every page points at, where the build has them."""
_FEEDS: Final = ("feed.xml", "feed.json")


def caching(name: str) -> str:
    """Return how long caches may go on giving a file out."""
    if _HASHED.fullmatch(name):
        return FOREVER
    return REVALIDATED if name.endswith((".html", ".md")) else BRIEFLY


def markdown_alternate(files: Mapping[str, SiteFile], file: SiteFile) -> SiteFile | None:
    """Return the Markdown form of a page, where the build has one."""
    if not file.name.endswith(".html"):
        return None
    return files.get(f"/{file.name.removesuffix('.html')}.md")


def describe(files: Mapping[str, SiteFile], file: SiteFile, *, negotiated: bool) -> Headers:
    """Return the headers of a file; `negotiated`: `Accept` chose it in place of its page."""
    kind = media_type(file.name)
    varies = (
        "Accept, Accept-Encoding"
        if negotiated or markdown_alternate(files, file)
        else "Accept-Encoding"
    )
    location: Headers = (("Content-Location", quote(f"/{file.name}")),) if negotiated else ()
    return (
        ("Content-Type", kind),
        ("Cache-Control", NEGOTIATED if negotiated else caching(file.name)),
        ("Vary", varies),
        *location,
        *_links(files, file),
        resource_policy(kind),
        *((ANY_ORIGIN,) if is_for_scripts(file) else ()),
        *(PART_HEADERS if is_part(kind) else SITE_HEADERS),
    )


def is_for_scripts(file: SiteFile) -> bool:
    """Return whether scripts of any origin may read a file: those that are made for programs."""
    return file.name.startswith(f"{WELL_KNOWN}/") or media_type(file.name) in FEEDS.values()


def _links(files: Mapping[str, SiteFile], file: SiteFile) -> Headers:
    if file.name.endswith(".md"):
        page = f"/{file.name.removesuffix(MARKDOWN_INDEX)}"
        is_alternate = file.name.endswith(MARKDOWN_INDEX) and page in files
        return (("Link", f'<{quote(page)}>; rel="canonical"'),) if is_alternate else ()
    if not file.name.endswith(".html"):
        return ()
    alternate = markdown_alternate(files, file)
    own = (
        [f'<{quote(f"/{alternate.name}")}>; rel="alternate"; type="text/markdown"']
        if alternate
        else []
    )
    feeds = [
        f'<{quote(path)}>; rel="alternate"; type="{media_type(path)}"'
        for path in _list_feeds(file)
        if path in files
    ]
    machines = [f"<{path}>; {rest}" for path, rest in _FOR_MACHINES.items() if path in files]
    return (("Link", ", ".join([*own, *feeds, *machines, *API_LINKS])),)


def _list_feeds(file: SiteFile) -> list[str]:
    folder = f"/{file.name.removesuffix(INDEX)}"
    folders = ["/"] if folder == "/" or not folder.endswith("/") else [folder, "/"]
    return [f"{each}{feed}" for each in folders for feed in _FEEDS]


def list_redirects(
    moved: Mapping[str, str], files: Mapping[str, SiteFile]
) -> Iterator[tuple[str, str]]:
    """Yield the address that each name of a moved page leads to; its Markdown leads to Markdown."""
    for former, present in moved.items():
        address = quote(present)
        alternate = f"{present}{MARKDOWN_INDEX}"
        if former.endswith("/"):
            yield from ((name, address) for name in (former[:-1], f"{former}{INDEX}"))
        name = (
            f"{former}{MARKDOWN_INDEX}"
            if former.endswith("/")
            else f"{former.removesuffix('.html')}.md"
        )
        yield name, quote(alternate) if alternate in files else address
        yield former, address


def address_of(files: Mapping[str, SiteFile], path: str) -> str | None:
    """Return the one address of a page that was asked for by another of its names."""
    folder = path.removesuffix(INDEX) if path.endswith(f"/{INDEX}") else f"{path}/"
    return quote(folder) if folder in files else None


SMALL: Final = 1024 * 1024
"""Bytes up to which a file is kept in memory and answered with one write."""
_PIECE: Final = 256 * 1024  # bytes that are read and sent at a time of a larger file
_KNOWN: Final = frozenset({"Content-Type", "Link"})
"""What a 304 leaves out: the client has it (RFC 9110, section 15.4.5)."""


class ResponseHead(NamedTuple):
    """Headers of a response before its representation is chosen."""

    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class Representation:
    """One form of one file, ready to be sent."""

    path: Path
    """Where its bytes lie."""
    size: int
    etag: str
    status: int
    headers: Headers
    """Everything that the whole is sent with, but its length."""
    body: bytes | None
    """`None` where it is too large to be kept."""
    whole: PreparedResponse | None
    unchanged: PreparedResponse


def load(folder: Path, file: SiteFile, coding: str, said: ResponseHead) -> Representation:
    """Read one form of a file, in a thread. Raises OSError."""
    path = folder / f"{file.name}{CODINGS.get(coding, '')}"
    return _represent(path, *_read(path), coding, said)


def encode(file: SiteFile, body: bytes, coding: str, said: ResponseHead) -> Representation:
    """Return one form of a file that is in no folder, in a thread: it is compressed here."""
    if coding:
        body = CODERS[coding](body)
    etag = _quote(sha256(body).hexdigest())
    return _represent(Path(file.name), etag, len(body), body, coding, said)


def _represent(  # noqa: PLR0913, PLR0917  what a form is made of
    path: Path, etag: str, size: int, body: bytes | None, coding: str, said: ResponseHead
) -> Representation:
    coded: Headers = (("Content-Encoding", coding),) if coding else ()
    headers = (*said.headers, *coded, ("ETag", etag), ("Accept-Ranges", "bytes"))
    return Representation(
        path=path,
        size=size,
        etag=etag,
        status=said.status,
        headers=headers,
        body=body,
        whole=None if body is None else PreparedResponse(said.status, headers, body),
        unchanged=PreparedResponse(304, [field for field in headers if field[0] not in _KNOWN]),
    )


def _read(path: Path) -> tuple[str, int, bytes | None]:
    digest, size, small = sha256(), 0, b""
    with path.open("rb") as file:
        while piece := file.read(SMALL + 1):
            digest.update(piece)
            size += len(piece)
            small = piece if size <= SMALL else b""
    return _quote(digest.hexdigest()), size, small if size <= SMALL else None


def _quote(digest: str) -> str:
    return f'"{digest[:24]}"'


async def answer_file(form: Representation, request: Request) -> web.StreamResponse:
    """Return the answer to a request for a form of a file; only a 200 has conditions and ranges.

    Raises Problem `range_not_satisfiable`, and OSError while nothing is sent yet.
    """
    if form.status == HTTPStatus.OK:
        condition = joined_header(request.headers, "If-None-Match")
        if condition is not None and etag_matches(condition, form.etag):
            return send(form.unchanged, request)
        span = _span(form, request)
        if span is not None:
            return await _part(form, span, request)
    if form.whole is not None:
        return send(form.whole, request)
    return await _stream(form, form.status, form.headers, ByteRange(0, form.size), request)


def _span(form: Representation, request: Request) -> ByteRange | None:
    asked = request.headers.get("Range")
    if asked is None or request.method != "GET":
        return None
    if not range_holds(request.headers.get("If-Range"), form.etag):
        return None
    span = requested_range(asked, form.size)
    if span == "unsatisfiable":
        raise Problem("range_not_satisfiable", headers={"Content-Range": f"bytes */{form.size}"})
    return None if span == "whole" else span


async def _part(form: Representation, span: ByteRange, request: Request) -> web.StreamResponse:
    headers = (*form.headers, ("Content-Range", span.content_range(form.size)))
    if form.body is None:
        return await _stream(form, 206, headers, span, request)
    return send(
        PreparedResponse(206, headers, form.body[span.start : span.start + span.length]), request
    )


async def _stream(
    form: Representation, status: int, headers: Headers, span: ByteRange, request: Request
) -> web.StreamResponse:
    response = StreamedResponse(request, status, (*headers, *request.always), span.length)
    with await asyncio.to_thread(form.path.open, "rb") as file:
        try:
            await response.prepare(request)
            if request.method != "HEAD":
                await _copy(file, span, response)
        except (OSError, EOFError):
            # The head is out, and nothing else can say that the rest is missing.
            if request.transport is not None:
                request.transport.abort()
    return response


async def _copy(file: BinaryIO, span: ByteRange, response: web.StreamResponse) -> None:
    await asyncio.to_thread(file.seek, span.start)
    left = span.length
    while left > 0:
        piece = await asyncio.to_thread(file.read, min(_PIECE, left))
        if not piece:
            raise EOFError
        left -= len(piece)
        await response.write(piece)
    await response.write_eof()
