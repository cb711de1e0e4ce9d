"""Documents that are named by their address, and whom to ask for them.

An address of this site is answered from the edition that is served, without a request. Others are
for a visitor who keeps away from addresses that are not public; whether there is one is a setting.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

from edge_api.domain.analysis.discovery import PLACES, Discovery
from edge_api.domain.analysis.document import Kind
from edge_api.domain.edition import Edition, Shelf
from edge_api.domain.site_files import HOME, INDEX, SiteFile
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.problems import Problem

DOCUMENT_MOST: Final = 2 * 1024 * 1024
"""Bytes of a document that is read at an address, decoded."""

_ENDINGS: Final[Mapping[str, Kind]] = {"html": "html", "md": "markdown", "txt": "text"}
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Visit:
    """What was found at an address."""

    url: str
    """Where it stands, after redirects, however its address was spelled."""
    kind: Kind
    text: str
    discovery: Discovery


class Visitor(Protocol):
    """Reads documents where they stand."""

    async def visit(self, url: str) -> Visit:
        """Return what stands at an address, and what its origin says of itself.

        Raises Problem `forbidden` for what may not be read, and `fetch_failed`.
        """


class OwnSite:
    """The pages of this site, from the edition that is served."""

    def __init__(self, shelf: Shelf, documents: Mapping[str, str]) -> None:
        """Take the documents that the service makes itself, by their path."""
        self._shelf = shelf
        self._documents = documents

    def holds(self, url: str) -> bool:
        """Tell whether an address is one of this site's."""
        return _origin(url) == _origin(self._shelf.site_url)

    async def visit(self, url: str) -> Visit:
        """Return what stands at an address of this site. Raises Problem `fetch_failed`."""
        edition = self._shelf.edition()
        path = _find(edition, unquote(urlsplit(url).path) or HOME)
        file = edition.files.get(path)
        kind = _ENDINGS.get(file.name.rpartition(".")[2]) if file else None
        if file is None or kind is None:
            raise Problem("fetch_failed", "url: no page of this site stands there")
        if file.size > DOCUMENT_MOST:
            raise too_large()
        text = await asyncio.to_thread(_read, edition, file)
        place = f"{self._shelf.site_url}{quote(path)}"
        return Visit(place, kind, text, await asyncio.to_thread(self._discover, edition))

    def _discover(self, edition: Edition) -> Discovery:
        return {place: self._at(edition, place) for place in PLACES}

    def _at(self, edition: Edition, place: str) -> str | None:
        file = edition.files.get(place)
        return self._documents.get(place) if file is None else _read(edition, file)


class Doors:
    """Who visits which address: this site's own, a visitor to others, or nobody."""

    def __init__(self, own: OwnSite | None, elsewhere: Visitor | None) -> None:
        self._own = own
        self._elsewhere = elsewhere

    async def visit(self, url: str) -> Visit:
        """Return what stands at an address. Raises Problem `forbidden` and `fetch_failed`."""
        if self._own is None:
            raise Problem("forbidden", "url: no addresses are read here; send the document itself")
        if self._own.holds(url):
            return await self._own.visit(url)
        if self._elsewhere is None:
            sentence = "url: only pages of this site are read; send the document itself"
            raise Problem("forbidden", sentence)
        return await self._elsewhere.visit(url)


def too_large() -> Problem:
    """Return the problem of a document that is too large."""
    size = DOCUMENT_MOST // 1024 // 1024
    return Problem("fetch_failed", f"url: what stands there is larger than {size} MiB")


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return what makes an origin (RFC 6454, section 4); `None` of what has none, or a user."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return None if "@" in parts.netloc else (parts.scheme, parts.hostname or "", port)


def _find(edition: Edition, path: str) -> str:
    """Return the path at which a file answers, or at which the one it is sent on to does."""
    path = edition.head.moved.get(path, path)
    folder = path.removesuffix(INDEX) if path.endswith(f"/{INDEX}") else f"{path}/"
    return folder if path not in edition.files and folder in edition.files else path


def _read(edition: Edition, file: SiteFile) -> str:
    """Return the text of a file. Raises Problem `unavailable` where it is gone."""
    try:
        return (edition.folder / SITE_FOLDER / file.name).read_text("utf-8", "replace")
    except OSError:
        headers = {"Retry-After": "5"}
        raise Problem("unavailable", "This file cannot be read now", headers=headers) from None
