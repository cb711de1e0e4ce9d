"""The built site at `/`: which representation of which file a request gets.

Files are found in the list that the edition made at load: no path of a request reaches the disk.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from edge_api.api.service import Service
from edge_api.domain.edition import Edition
from edge_api.domain.site_files import INDEX, SiteFile
from edge_api.schema.problems import Problem
from edge_api.web.contact import CONTACT, Contact
from edge_api.web.files import FileAnswers, Representation
from edge_api.web.headers import embedding, transport
from edge_api.web.negotiation import best_coding, prefers_markdown
from edge_api.web.wire import Wire, send

_ALLOWED: Final = "GET, HEAD, OPTIONS"
_MISSING: Final = "/404.html"
_HASHED: Final = re.compile(r"\.[0-9a-f]{8,}\.\w+$")
"""The name of a file that carries the hash of its content: such a name never changes meaning."""

_FOREVER: Final = "public, max-age=31536000, immutable"
_REVALIDATED: Final = "public, no-cache"
"""Kept, but asked for each time: a new build counts at once, and a 304 costs next to nothing."""
_BRIEFLY: Final = "public, max-age=300"
_NEGOTIATED: Final = "private, no-store"
"""Many caches ignore `Vary`: what depends on `Accept` is not left to them."""

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "xml": "application/xml",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "ico": "image/x-icon",
    "pdf": "application/pdf",
    "woff2": "font/woff2",
    "webmanifest": "application/manifest+json",
}
_BY_NAME: Final[Mapping[str, str]] = {"feed.xml": "application/atom+xml; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class _Found:
    """The file that answers, and how."""

    file: SiteFile
    status: int = 200
    negotiated: bool = False
    """Whether it was chosen by `Accept`, in place of the page at this address."""


class Site:
    """Serves the current edition's files."""

    def __init__(self, service: Service) -> None:
        self._shelf = service.shelf
        self._always = transport(service.settings.site_url)
        self._contact = Contact(service)
        self._files = FileAnswers()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return the answer to a request outside `/api/`. Raises Problem."""
        if request.method == "POST" and request.path == CONTACT:
            return send(await self._contact.answer(request), request)
        if request.method not in ("GET", "HEAD"):
            return send(self._refuse_method(request), request)
        edition = self._shelf.edition()
        found = _find(edition, request)
        if isinstance(found, str):
            return send(Wire(301, [("Location", found), *self._always]), request)
        accepted = request.headers.get("Accept-Encoding")
        coding = best_coding(accepted, found.file.codings) if accepted else ""
        shown = Representation(
            edition.folder, found.file, coding, found.status, self._headers(edition, found)
        )
        return await self._files.answer(shown, request)

    def _refuse_method(self, request: web.Request) -> Wire:
        if request.method == "OPTIONS":
            return Wire(204, [("Allow", _ALLOWED), *self._always])
        raise Problem("method_not_allowed", headers={"Allow": _ALLOWED})

    def _headers(self, edition: Edition, found: _Found) -> list[tuple[str, str]]:
        name = found.file.name
        media_type = _media_type(name)
        is_page = name.endswith(".html")
        headers = [
            ("Content-Type", media_type),
            ("Cache-Control", _NEGOTIATED if found.negotiated else _caching(name)),
            (
                "Vary",
                "Accept, Accept-Encoding" if is_page or found.negotiated else "Accept-Encoding",
            ),
            embedding(media_type),
            *self._always,
        ]
        if found.negotiated:
            headers.append(("Content-Location", f"/{name}"))
        if is_page:
            headers.append(("Link", _links(edition, name)))
        return headers


def _find(edition: Edition, request: web.Request) -> _Found | str:
    """Return what answers at the path of the request, or the address to go to instead."""
    path = request.path
    file = edition.files.get(path)
    if file is None:
        elsewhere = _address_of(edition, path)
        if elsewhere is not None:
            query = request.rel_url.raw_query_string
            return f"{elsewhere}?{query}" if query else elsewhere
        return _missing(edition, request)
    twin = _twin(edition, file.name) if _wants_markdown(request) else None
    return _Found(twin, negotiated=True) if twin else _Found(file)


def _address_of(edition: Edition, path: str) -> str | None:
    """Return the address of a page that was asked for by another of its names."""
    if f"{path}/" in edition.files:
        return f"{path}/"
    folder = path.removesuffix(INDEX)
    return folder if folder != path and folder in edition.files else None


def _missing(edition: Edition, request: web.Request) -> _Found:
    page = edition.files.get(_MISSING)
    if page is None:
        raise Problem("not_found", "There is no page at this address")
    twin = _twin(edition, page.name) if _wants_markdown(request) else None
    return _Found(twin, 404, negotiated=True) if twin else _Found(page, 404)


def _wants_markdown(request: web.Request) -> bool:
    accepted = request.headers.get("Accept")
    return accepted is not None and prefers_markdown(accepted)


def _twin(edition: Edition, name: str) -> SiteFile | None:
    """Return the Markdown form of a page."""
    if not name.endswith(".html"):
        return None
    return edition.files.get(f"/{name.removesuffix('.html')}.md")


def _links(edition: Edition, name: str) -> str:
    """Return where machines find more (RFC 8288): the twin, the summary, the API."""
    twin = _twin(edition, name)
    links = ['</llms.txt>; rel="describedby"; type="text/plain"']
    links += ['</.well-known/api-catalog>; rel="api-catalog"']
    links += ['</api/public/v1/openapi.json>; rel="service-desc"; type="application/json"']
    links += [f'</{twin.name}>; rel="alternate"; type="text/markdown"'] if twin else []
    return ", ".join(links)


def _media_type(name: str) -> str:
    last = name.rpartition("/")[2]
    return _BY_NAME.get(last) or _TYPES.get(last.rpartition(".")[2], "application/octet-stream")


def _caching(name: str) -> str:
    if _HASHED.search(name):
        return _FOREVER
    return _REVALIDATED if name.endswith((".html", ".md")) else _BRIEFLY
