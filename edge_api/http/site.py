"""The built site at `/`: which of the files listed at load answers a request, and in which form."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

from aiohttp import web

from edge_api.db.problems import Problem
from edge_api.db.versioned_cache import SingleFlight, SizedCache
from edge_api.http.endpoint import options, preflight
from edge_api.http.headers import PAGE_HEADERS
from edge_api.http.pages import Reference, RenderContext
from edge_api.http.request import Request, joined_header
from edge_api.http.response import PreparedResponse, send
from edge_api.http.static import (
    BRIEFLY,
    Representation,
    ResponseHead,
    address_of,
    answer_file,
    describe,
    encode,
    is_for_scripts,
    list_redirects,
    load,
    markdown_alternate,
)
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.site_files import PathSuggester, SiteFile
from edge_api.operation.negotiation import best_coding, prefers_markdown
from edge_api.operation.result import NEGOTIATED, escape
from edge_api.operation.service import Service
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.paths import SEARCH
from edge_api.schema.site_policy import media_type

_READING: Final = ("GET", "HEAD")
_ALLOWED: Final = "GET, HEAD, OPTIONS"
_MISSING: Final = "/404.html"
_OTHER_NAMES: Final[Mapping[str, str]] = {f"{SEARCH}/": SEARCH}
"""Of pages made by operations, with the slash that addresses of built pages have."""
_LARGE: Final = 1024  # bytes that the cache counts for a file that is not kept in it
_MOST: Final = 5  # addresses that are named
_LATER_PAGE: Final = "/page/"
_MARKDOWN: Final = media_type("404.md")


class _Choice(NamedTuple):
    """The form of a file that a request gets; its answer depends on nothing else."""

    file: SiteFile
    coding: str
    status: int
    negotiated: bool


class SitePages:
    """The files of one build's site and the reference, and what was made ready of them."""

    def __init__(self, build: Build, reference: Reference) -> None:
        """Take from the build what is needed, not the build: its search may be closed first."""
        self.built = build.files
        self.files = {**build.files, **reference.files}
        self._folder = build.folder / SITE_FOLDER
        self._moved = dict(list_redirects(build.head.moved, self.files))
        self._reference = reference
        self._context = RenderContext(build.folder, build.newest_slug)
        self._ready: SizedCache[Representation] = SizedCache()
        self._work: SingleFlight[Representation] = SingleFlight()
        self._missing = MissingPages(build.files)

    async def answer(self, request: Request) -> web.StreamResponse:
        """Return the answer to GET or HEAD. Raises Problem, and OSError for an unreadable file."""
        path = request.path
        file, status = self.files.get(path), 200
        if file is None:
            elsewhere = self.find_address(path)
            if elsewhere is not None:
                query = request.rel_url.raw_query_string
                status = 308 if path in self._moved else 301
                location = f"{elsewhere}?{query}" if query else elsewhere
                headers = (("Location", location), ("Cache-Control", BRIEFLY), *PAGE_HEADERS)
                return send(PreparedResponse(status, headers), request)
            status, file = 404, self.files.get(_MISSING)
            if file is None:
                raise Problem("not_found", "There is no page at this address")
        choice = self._choose(file, status, request)
        form = self._ready.get(choice) or await self._work.run(
            choice, partial(self._prepare, choice)
        )
        if status == HTTPStatus.NOT_FOUND and choice.negotiated and form.body is not None:
            return send(await self._missing.answer(path, form.body), request)
        return await answer_file(form, request)

    def find_address(self, path: str) -> str | None:
        """Return the one address of a page that was asked for by another of its names."""
        elsewhere = self._moved.get(path) or _OTHER_NAMES.get(path)
        return elsewhere or address_of(self.files, path)

    def _choose(self, file: SiteFile, status: int, request: Request) -> _Choice:
        accepted = joined_header(request.headers, "Accept")
        alternate = None
        if accepted is not None and prefers_markdown(accepted):
            alternate = markdown_alternate(self.files, file)
        chosen = alternate or file
        is_added_to = alternate is not None and status == HTTPStatus.NOT_FOUND
        is_coded = bool(chosen.codings) and not is_added_to
        codings = joined_header(request.headers, "Accept-Encoding") if is_coded else None
        coding = "" if codings is None else best_coding(codings, chosen.codings)
        return _Choice(chosen, coding, status, alternate is not None)

    async def _prepare(self, choice: _Choice) -> Representation:
        headers = describe(self.files, choice.file, negotiated=choice.negotiated)
        said = ResponseHead(choice.status, tuple(headers))
        if self._reference.has(choice.file):
            body = await self._reference.read(choice.file, self._context)
            form = await asyncio.to_thread(encode, choice.file, body, choice.coding, said)
        else:
            form = await asyncio.to_thread(load, self._folder, choice.file, choice.coding, said)
        self._ready.put(choice, form, _LARGE if form.body is None else form.size)
        return form


class Site:
    """Serves the current build's site."""

    def __init__(self, service: Service) -> None:
        self._builds = service[BuildManager]
        self._reference = Reference(service.documents.reference, service.settings.site_url)
        self._pages: SitePages | None = None

    async def answer(self, request: Request, *_: object) -> web.StreamResponse:
        """Return the answer to a request outside `/api/`. Raises Problem."""
        if request.method in _READING:
            return await self._read(request)
        pages = self._current()
        if request.path not in pages.files and pages.find_address(request.path) is None:
            return await self._read(request)
        if request.method != "OPTIONS":
            raise Problem("method_not_allowed", headers={"Allow": _ALLOWED})
        file = pages.files.get(request.path)
        is_asked_from_elsewhere = file is not None and is_for_scripts(file)
        return preflight(_ALLOWED) if is_asked_from_elsewhere else options(_ALLOWED)

    async def _read(self, request: Request) -> web.StreamResponse:
        """Answer from the current build; once more if that was swapped and cleared meanwhile."""
        for _ in range(2):
            pages = self._current()
            try:
                return await pages.answer(request)
            except OSError:
                if self._current() is pages:
                    break
        headers = {"Retry-After": "5"}
        raise Problem("unavailable", "This file cannot be read now", headers=headers)

    def _current(self) -> SitePages:
        build = self._builds.build()
        if self._pages is None or self._pages.built is not build.files:
            self._pages = SitePages(build, self._reference)
        return self._pages


class MissingPages:
    """The Markdown for a missing address: it names the closest ones to programs."""

    def __init__(self, files: Mapping[str, SiteFile]) -> None:
        self._files = files
        self._work: SingleFlight[PathSuggester] = SingleFlight()
        self._nearby: PathSuggester | None = None
        """The paths that are worth naming, made ready when somebody first needs them."""

    async def answer(self, path: str, general: bytes) -> PreparedResponse:
        """Return a 404 for `path`; `general` is the Markdown that holds for all of them."""
        nearby = self._nearby or await self._work.run("nearby", self._prepare)
        closest = await asyncio.to_thread(nearby.find, path, _MOST)
        lines = [f"- [{escape(each)}]({quote(each)})" for each in closest]
        near = "\n".join(["", "## The closest addresses", "", *lines, ""]) if lines else ""
        headers = (
            ("Content-Type", _MARKDOWN),
            ("Cache-Control", NEGOTIATED),
            ("Vary", "Accept, Accept-Encoding"),
            *PAGE_HEADERS,
        )
        return PreparedResponse(404, headers, general + near.encode())

    async def _prepare(self) -> PathSuggester:
        self._nearby = await asyncio.to_thread(PathSuggester, self._list_pages())
        return self._nearby

    def _list_pages(self) -> Iterator[str]:
        for path, file in self._files.items():
            if (
                path.endswith("/")
                and _LATER_PAGE not in path
                and markdown_alternate(self._files, file)
            ):
                yield path
