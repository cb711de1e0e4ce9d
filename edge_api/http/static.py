"""Serving of files: type, caching, conditions, ranges."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

from aiohttp import web

from edge_api.db.problems import Problem
from edge_api.http.endpoint import ENCODERS, etag_matches
from edge_api.http.response import (
    ANY_ORIGIN,
    API_LINKS,
    PreparedResponse,
    Request,
    StreamedResponse,
    joined_header,
    resource_policy,
)
from edge_api.journal.site_files import CODINGS, INDEX_HTML, MARKDOWN_INDEX, WELL_KNOWN, SiteFile
from edge_api.operation.model import NEGOTIATED, REVALIDATE
from edge_api.schema.site_policy import (
    FEEDS,
    SITE_HEADERS,
    SUBRESOURCE_HEADERS,
    Headers,
    is_subresource,
    media_type,
)

IMMUTABLE: Final = "public, max-age=31536000, immutable"
SHORT_LIVED: Final = "public, max-age=300"
PRIVATE_CACHING: Final = {REVALIDATE: "private, no-cache", SHORT_LIVED: "private, max-age=300"}
"""The private form of each `Cache-Control`, for answers that a CDN must not keep."""


def cache_control(name: str, cdn_seconds: int = 0) -> str:
    """Return the `Cache-Control` of a file that a CDN may keep for so long."""
    # A file whose name has a hash of its content never changes.
    if re.fullmatch(
        r"theme/(?:.+/)?[^/]+\.[0-9a-f]{8,64}\.\w+|pictures/[0-9a-f]{8,64}/[^/]+", name
    ):
        return IMMUTABLE
    is_page = name.endswith((".html", ".md"))
    if cdn_seconds:
        return f"public, max-age={0 if is_page else 300}, must-revalidate, s-maxage={cdn_seconds}"
    return REVALIDATE if is_page else SHORT_LIVED


def markdown_alternate(files: Mapping[str, SiteFile], file: SiteFile) -> SiteFile | None:
    """Return the Markdown form of a page, where the build has one."""
    if not file.name.endswith(".html"):
        return None
    return files.get(f"/{file.name.removesuffix('.html')}.md")


def file_headers(
    files: Mapping[str, SiteFile], file: SiteFile, caching: str = "", *, negotiated: bool
) -> Headers:
    """Return the headers of a file; `negotiated`: `Accept` chose it in place of its page.

    `caching` is the `Cache-Control` of one that was not negotiated, if a CDN is in front.
    """
    kind = media_type(file.name)
    varies = (
        "Accept, Accept-Encoding"
        if negotiated or markdown_alternate(files, file)
        else "Accept-Encoding"
    )
    location: Headers = (("Content-Location", quote(f"/{file.name}")),) if negotiated else ()
    return (
        ("Content-Type", kind),
        ("Cache-Control", NEGOTIATED if negotiated else caching or cache_control(file.name)),
        ("Vary", varies),
        *location,
        *_links(files, file),
        resource_policy(kind),
        *((ANY_ORIGIN,) if allows_any_origin(file) else ()),
        *(SUBRESOURCE_HEADERS if is_subresource(kind) else SITE_HEADERS),
    )


def allows_any_origin(file: SiteFile) -> bool:
    """Return whether scripts of any origin may read a file: feeds and well-known files."""
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
    folder = f"/{file.name.removesuffix(INDEX_HTML)}"
    folders = ["/"] if folder == "/" or not folder.endswith("/") else [folder, "/"]
    feeds = [
        f'<{quote(path)}>; rel="alternate"; type="{media_type(path)}"'
        for path in (f"{each}{feed}" for each in folders for feed in ("feed.xml", "feed.json"))
        if path in files
    ]
    for_programs = [
        f"<{path}>; {rest}"
        for path, rest in (
            ("/llms.txt", 'rel="describedby"; type="text/plain"'),
            ("/sitemap.xml", 'rel="sitemap"; type="application/xml"'),
        )
        if path in files
    ]
    return (("Link", ", ".join([*own, *feeds, *for_programs, *API_LINKS])),)


def list_redirects(
    moved: Mapping[str, str], files: Mapping[str, SiteFile]
) -> Iterator[tuple[str, str]]:
    """Yield each former path of a moved page, also with `index.html`, and its present address.

    The former path of the page's Markdown is redirected to the present Markdown.
    """
    for former, present in moved.items():
        address = quote(present)
        yield former, address
        if "?" in former:
            continue
        alternate = f"{present}{MARKDOWN_INDEX}"
        if former.endswith("/"):
            yield from ((name, address) for name in (former[:-1], f"{former}{INDEX_HTML}"))
        name = (
            f"{former}{MARKDOWN_INDEX}"
            if former.endswith("/")
            else f"{former.removesuffix('.html')}.md"
        )
        yield name, quote(alternate) if alternate in files else address


def canonical_address(files: Mapping[str, SiteFile], path: str) -> str | None:
    """Return the address of a page, given its path without the slash or with `index.html`.

    If `path` is an address itself, the request had it in another spelling before normalization.
    """
    if path in files:
        return quote(path)
    folder = path.removesuffix(INDEX_HTML) if path.endswith(f"/{INDEX_HTML}") else f"{path}/"
    return quote(folder) if folder in files else None


_RANGE: Final = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)", re.IGNORECASE)


def range_applies(condition: str | None, etag: str) -> bool:
    """Return whether an `If-Range` is absent, or the same strong ETag (RFC 9110, 13.1.5)."""
    return condition is None or (condition.strip() == etag and not etag.startswith("W/"))


def parse_range(header: str, size: int) -> range | None:
    """Return the positions among `size` bytes that a `Range` asks for (RFC 9110, 14.1.2).

    They are empty beyond the end; `None` for another unit, broken syntax and several ranges.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    # No size has more than 18 digits, and Python refuses to read numbers of thousands of digits.
    first, last = (int(digits.lstrip("0")[:18] or 0) for digits in match.groups())
    if not match[1]:
        return range(max(size - last, 0), size)
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size) if match[2] else size)


MAX_IN_MEMORY_BYTES: Final = 1024 * 1024
"""Bytes up to which a file is kept in memory and answered with one write."""


@dataclass(frozen=True, slots=True)
class Representation:
    """One representation of a file: its bytes in one content coding, with headers."""

    path: Path
    """The file with its bytes."""
    size: int
    etag: str
    status: int
    headers: Headers
    """The headers of the full response, without the length."""
    body: bytes | None
    """`None` if it is too large for memory."""
    full_response: PreparedResponse | None
    not_modified: PreparedResponse


def represent(
    path: Path, body: bytes | None, coding: str, status: int, headers: Headers
) -> Representation:
    """Return one representation of a file, or of a rendered `body`; called in a thread.

    `path` is that of the uncompressed file; a build has put its compressed forms beside it. Raises
    OSError.
    """
    if body is None:
        path = path.with_name(f"{path.name}{CODINGS.get(coding, '')}")
        digest, size, body = _read(path)
    else:
        body = ENCODERS[coding](body) if coding else body
        digest, size = sha256(body).hexdigest(), len(body)
    etag = f'"{digest[:24]}"'
    coded: Headers = (("Content-Encoding", coding),) if coding else ()
    headers = (*headers, *coded, ("ETag", etag), ("Accept-Ranges", "bytes"))
    return Representation(
        path=path,
        size=size,
        etag=etag,
        status=status,
        headers=headers,
        body=body,
        full_response=None if body is None else PreparedResponse(status, headers, body),
        not_modified=PreparedResponse(  # without two fields (RFC 9110, section 15.4.5)
            304, [each for each in headers if each[0] not in ("Content-Type", "Link")]
        ),
    )


def _read(path: Path) -> tuple[str, int, bytes | None]:
    digest, size, small = sha256(), 0, b""
    with path.open("rb") as file:
        while piece := file.read(MAX_IN_MEMORY_BYTES + 1):
            digest.update(piece)
            size += len(piece)
            small = piece if size <= MAX_IN_MEMORY_BYTES else b""
    return digest.hexdigest(), size, small if size <= MAX_IN_MEMORY_BYTES else None


async def answer_file(representation: Representation, request: Request) -> web.StreamResponse:
    """Return the answer to a request for a file; only a 200 has conditions and ranges.

    Raises Problem `range_not_satisfiable`, and OSError while nothing is sent yet.
    """
    if representation.status == HTTPStatus.OK:
        condition = joined_header(request.headers, "If-None-Match")
        if condition is not None and etag_matches(condition, representation.etag):
            return representation.not_modified
        span = _span(representation, request)
        if span is not None:
            content_range = f"bytes {span.start}-{span.stop - 1}/{representation.size}"
            headers = (*representation.headers, ("Content-Range", content_range))
            if representation.body is None:
                return await _stream(representation, 206, headers, span, request)
            return PreparedResponse(206, headers, representation.body[span.start : span.stop])
    if representation.full_response is not None:
        return representation.full_response
    status, whole = representation.status, range(representation.size)
    return await _stream(representation, status, representation.headers, whole, request)


def _span(representation: Representation, request: Request) -> range | None:
    asked = request.headers.get("Range")
    if asked is None or request.method != "GET":
        return None
    if not range_applies(request.headers.get("If-Range"), representation.etag):
        return None
    span = parse_range(asked, representation.size)
    if span is not None and not span:
        raise Problem(
            "range_not_satisfiable", headers={"Content-Range": f"bytes */{representation.size}"}
        )
    return span


async def _stream(
    representation: Representation, status: int, headers: Headers, span: range, request: Request
) -> web.StreamResponse:
    response = StreamedResponse(request, status, (*headers, *request.origin_headers), len(span))
    with await asyncio.to_thread(representation.path.open, "rb") as file:
        try:
            await response.prepare(request)
            if request.method != "HEAD":
                await _copy(file, span, response)
        except (OSError, EOFError):
            # The head is out, and nothing else can say that the rest is missing.
            if request.transport is not None:
                request.transport.abort()
    return response


async def _copy(file: BinaryIO, span: range, response: web.StreamResponse) -> None:
    await asyncio.to_thread(file.seek, span.start)
    left = len(span)
    while left > 0:
        piece = await asyncio.to_thread(file.read, min(256 * 1024, left))
        if not piece:
            raise EOFError
        left -= len(piece)
        await response.write(piece)
    await response.write_eof()
