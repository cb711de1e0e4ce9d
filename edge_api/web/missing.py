"""The Markdown of a page that is not there: the build's own, and the closest addresses.

Whoever asks for Markdown is a program that can go on from here, where a person has the page.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

from edge_api.api.markdown import escape
from edge_api.api.reply import NEGOTIATED
from edge_api.domain.kept import SharedWork
from edge_api.domain.nearby import Nearby
from edge_api.domain.site_files import SiteFile
from edge_api.schema.media_types import media_type
from edge_api.web.headers import PAGE_HEADERS
from edge_api.web.media import twin_of
from edge_api.web.wire import Wire

_MOST: Final = 5
"""Addresses that are named."""
_LATER_LEAF: Final = "/page/"
_MARKDOWN: Final = media_type("404.md")


class MissingPages:
    """Tells of addresses where nothing is; belongs to the files of one edition."""

    def __init__(self, files: Mapping[str, SiteFile]) -> None:
        self._files = files
        self._work: SharedWork[Nearby] = SharedWork()
        self._nearby: Nearby | None = None
        """The paths that are worth naming, made ready when somebody first needs them."""

    async def answer(self, path: str, general: bytes) -> Wire:
        """Return a 404 for `path`; `general` is the Markdown that holds for all of them."""
        nearby = self._nearby or await self._work.do("nearby", self._prepare)
        closest = await asyncio.to_thread(nearby.find, path, _MOST)
        lines = [f"- [{escape(each)}]({quote(each)})" for each in closest]
        near = "\n".join(["", "## The closest addresses", "", *lines, ""]) if lines else ""
        headers = (
            ("Content-Type", _MARKDOWN),
            ("Cache-Control", NEGOTIATED),
            ("Vary", "Accept, Accept-Encoding"),
            *PAGE_HEADERS,
        )
        return Wire(404, headers, general + near.encode())

    async def _prepare(self) -> Nearby:
        self._nearby = await asyncio.to_thread(Nearby, self._list_pages())
        return self._nearby

    def _list_pages(self) -> Iterator[str]:
        for path, file in self._files.items():
            if path.endswith("/") and _LATER_LEAF not in path and twin_of(self._files, file):
                yield path
