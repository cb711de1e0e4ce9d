"""The built site at `/`: chooses the file, and its representation, that answers a request."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from http import HTTPStatus
from typing import Final, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

from aiohttp import web

from edge_api.auth.client_address import client_address
from edge_api.db.caches import SingleFlight, SizedCache
from edge_api.db.problems import Problem
from edge_api.http.endpoint import encode, options_response, preflight_response
from edge_api.http.pages import Reference
from edge_api.http.response import (
    PAGE_HEADERS,
    SHARED_DRAFT_HEADERS,
    PreparedResponse,
    Request,
    joined_header,
)
from edge_api.http.static import (
    PRIVATE_CACHING,
    SHORT_LIVED,
    Representation,
    allows_any_origin,
    answer_file,
    cache_control,
    canonical_address,
    file_headers,
    list_redirects,
    markdown_alternate,
    represent,
)
from edge_api.journal.builds import BuildManager, BuiltSite
from edge_api.journal.site_files import PathSuggester, SiteFile
from edge_api.leads.input import start_message
from edge_api.leads.operations import CONTACT
from edge_api.operation.model import NEGOTIATED, HtmlResult, Service, escape_markdown
from edge_api.operation.negotiation import best_coding, prefers_markdown
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.page_templates import CONTACT_FORM
from edge_api.schema.paths import SEARCH, SHARED
from edge_api.schema.sentences import sentence
from edge_api.schema.shares import find_shared
from edge_api.schema.site_policy import media_type
from edge_api.webhooks.purges import Purges, spell
from edge_api.writing.service import Writing

_READ_METHODS: Final = ("GET", "HEAD")
_ALLOW: Final = "GET, HEAD, OPTIONS"
_ALIASES: Final[Mapping[str, str]] = {f"{SEARCH}/": SEARCH}
"""Redirects to operations from their paths with a final slash, which built pages have."""


class _Choice(NamedTuple):
    """The chosen representation of a file: all that its answer depends on."""

    file: SiteFile
    coding: str
    status: int
    negotiated: bool
    caching: str


class SitePages:
    """The files of one build's site and the reference, and their cached representations."""

    def __init__(self, build: BuiltSite, reference: Reference, cdn_seconds: int) -> None:
        """Copy the needed parts of the build, since that may be closed earlier."""
        self.build_files, self.cdn_seconds = build.files, cdn_seconds
        self.files = {**build.files, **reference.files}
        self._folder = build.folder / SITE_FOLDER
        self._redirects = dict(list_redirects(build.moved, self.files))
        self._reference, self._rendered = reference, frozenset(reference.files.values())
        self._newest_slug = build.newest_slug
        self._cache: SizedCache[Representation] = SizedCache()
        self._work: SingleFlight[Representation] = SingleFlight()

    async def answer(self, request: Request, *, is_gone: bool) -> web.StreamResponse:
        """Return the answer to GET or HEAD. Raises Problem, and OSError for an unreadable file."""
        path, query = request.path, request.rel_url.raw_query_string
        # The query alone may distinguish a former address from that of a page.
        if query and (to := self._redirects.get(f"{normalize('NFC', path)}?{unquote(query)}")):
            return self._redirect(308, to)
        file, status = None if is_gone else self.files.get(path), 200
        if file is None:
            elsewhere = None if is_gone else self.redirect_target(path)
            if elsewhere is not None:
                status = 308 if _normalize_path(path) in self._redirects else 301
                return self._redirect(status, f"{elsewhere}?{query}" if query else elsewhere)
            status, file = 410 if is_gone else 404, self.files.get("/404.html")
            if file is None:
                raise Problem("not_found", sentence("There is no page at this address"))
        choice = self._choose(file, status, request)
        representation = self._cache.get(choice) or await self._work.run(
            choice, partial(self._prepare, choice)
        )
        if status == HTTPStatus.NOT_FOUND and choice.negotiated and representation.body is not None:
            return await self._suggest_addresses(path, representation.body)
        return await answer_file(representation, request)

    def redirect_target(self, path: str) -> str | None:
        """Return the address that another name of a page redirects to."""
        normalized = _normalize_path(path)
        return (
            self._redirects.get(normalized)
            or _ALIASES.get(normalized)
            or canonical_address(self.files, normalized)
        )

    def _choose(self, file: SiteFile, status: int, request: Request) -> _Choice:
        accepted = joined_header(request.headers, "Accept")
        alternate = None
        if accepted is not None and prefers_markdown(accepted):
            alternate = markdown_alternate(self.files, file)
        chosen = alternate or file
        gets_suggestions = alternate is not None and status == HTTPStatus.NOT_FOUND
        is_coded = bool(chosen.codings) and not gets_suggestions
        codings = joined_header(request.headers, "Accept-Encoding") if is_coded else None
        coding = "" if codings is None else best_coding(codings, chosen.codings)
        is_behind_cdn = self.cdn_seconds and alternate is None
        caching = self._choose_caching(file, status, request) if is_behind_cdn else ""
        return _Choice(chosen, coding, status, alternate is not None, caching)

    def _choose_caching(self, file: SiteFile, status: int, request: Request) -> str:
        """Return the `Cache-Control` of a file that was not negotiated, where a CDN is in front.

        A CDN keeps nothing at an address that no purge names, such as one with a query, which
        stats read, nor the contact page: a lead keeps where its sender came from.
        """
        caching = cache_control(file.name)
        is_kept = (
            status == HTTPStatus.OK
            and request.raw_path in spell(request.path)
            and not f"/{file.name}".startswith(CONTACT)
            and file not in self._rendered
        )
        if is_kept:
            return cache_control(file.name, self.cdn_seconds)
        return PRIVATE_CACHING.get(caching, caching)

    def _redirect(self, status: int, location: str) -> PreparedResponse:
        caching = PRIVATE_CACHING[SHORT_LIVED] if self.cdn_seconds else SHORT_LIVED
        headers = (("Location", location), ("Cache-Control", caching), *PAGE_HEADERS)
        return PreparedResponse(status, headers)

    async def _suggest_addresses(self, path: str, text: bytes) -> PreparedResponse:
        """Return the Markdown of a missing page, with links to pages with the closest addresses."""
        closest = await asyncio.to_thread(lambda: self._suggester.find(path, 5))
        lines = [f"- [{escape_markdown(each)}]({quote(each)})" for each in closest]
        near = "\n".join(["", "## The closest addresses", "", *lines, ""]) if lines else ""
        headers = (
            ("Content-Type", media_type("404.md")),
            ("Cache-Control", NEGOTIATED),
            ("Vary", "Accept, Accept-Encoding"),
            *PAGE_HEADERS,
        )
        return PreparedResponse(404, headers, text + near.encode())

    @cached_property
    def _suggester(self) -> PathSuggester:
        files = self.build_files
        pages = (path for path in files if path.endswith("/") and "/page/" not in path)
        return PathSuggester(path for path in pages if markdown_alternate(files, files[path]))

    async def _prepare(self, choice: _Choice) -> Representation:
        headers = file_headers(
            self.files, choice.file, choice.caching, negotiated=choice.negotiated
        )
        body = None
        if choice.file in self._rendered:
            body = await self._reference.read(choice.file, self._folder.parent, self._newest_slug)
        path, coding = self._folder / choice.file.name, choice.coding
        representation = await asyncio.to_thread(
            represent, path, body, coding, choice.status, headers
        )
        # A representation whose body is read from the disk each time is small.
        size = 1024 if representation.body is None else representation.size
        self._cache.put(choice, representation, size)
        return representation


class Site:
    """Serves the current build's site."""

    def __init__(self, service: Service) -> None:
        self._service, self._builds = service, service[BuildManager]
        self._purges = service[Purges]
        self._reference = Reference(service.documents.reference)
        self._pages: SitePages | None = None

    async def answer(self, request: Request, *_: object) -> web.StreamResponse:
        """Return the answer to a request outside `/api/`. Raises Problem."""
        if request.rel_url.raw_path.startswith(SHARED):  # not decoded, as proxies match it
            return await self._answer_shared_draft(request)
        if request.method in _READ_METHODS:
            return await self._answer_from_build(request)
        pages = self._current()
        file = pages.files.get(request.path)
        if file is None and pages.redirect_target(request.path) is None:
            return await self._answer_from_build(request)
        return _answer_options(request, is_open=file is not None and allows_any_origin(file))

    async def _answer_shared_draft(self, request: Request) -> web.StreamResponse:
        """Answer with a shared draft, read from the disk so that its revocation counts at once.

        Without such a draft, answer as for a missing page.
        """
        token, slash, name = request.path.removeprefix(SHARED).partition("/")
        headers = (("Content-Type", media_type(name or "index.html")), *SHARED_DRAFT_HEADERS)
        asked = self._service.settings.build_dir, token, name or "index.html"
        with suppress(OSError):
            if slash:
                file = await asyncio.to_thread(find_shared, *asked, self._service.clock())
                found = await asyncio.to_thread(represent, file, None, "", 200, headers)
            elif not re.fullmatch(r"[\w-]{22}", token, re.ASCII):
                raise FileNotFoundError
            if request.method not in _READ_METHODS:
                return _answer_options(request)
            if slash:
                return await answer_file(found, request)
            # The redirect does not reveal whether a draft is shared under this token.
            return PreparedResponse(308, (("Location", f"{SHARED}{token}/"), *SHARED_DRAFT_HEADERS))
        response = await self._answer_from_build(request)
        if response.status == HTTPStatus.NOT_FOUND:  # the token may be a guess
            trusted = self._service.settings.trusted_proxies
            caller = client_address(request.remote or "", request.headers, trusted)
            await self._service.limiter.hit("failed_auth", caller.key)
        return response

    async def _answer_from_build(self, request: Request) -> web.StreamResponse:
        """Answer from the current build; retry once if that was replaced meanwhile."""
        if request.path == CONTACT and (page := await self._prefill_contact_page(request)):
            return page
        is_gone = self._service[Writing].is_withdrawn(_normalize_path(request.path))
        for _ in range(2):
            pages = self._current()
            try:
                return await pages.answer(request, is_gone=is_gone)
            except OSError:
                if self._current() is pages:
                    break
        raise Problem(
            "unavailable", sentence("This file cannot be read now"), headers={"Retry-After": "5"}
        )

    async def _prefill_contact_page(self, request: Request) -> web.StreamResponse | None:
        """Return the contact page with a message about a public post that the query names."""
        accepted = joined_header(request.headers, "Accept") or ""
        if self._service.settings.leads_require_credential or prefers_markdown(accepted):
            return None
        with suppress(KeyError, Problem):  # without such a post or form, the page as it is
            post = self._builds.build().posts.summary(request.query["about"])
            message = start_message(post["title"], urlsplit(post["url"]).path)
            begun = {"message": f"{self._service.pages.translate(message)}\n\n"}
            page = await self._service.pages.render_form(CONTACT_FORM, values=begun)
            return encode(HtmlResult(page))
        return None

    def _current(self) -> SitePages:
        build, seconds = self._builds.site(), self._purges.seconds
        pages = self._pages
        if pages is None or pages.build_files is not build.files or pages.cdn_seconds != seconds:
            pages = self._pages = SitePages(build, self._reference, seconds)
        return pages


def _normalize_path(path: str) -> str:
    """Return a path in the form of pages: in Unicode's NFC, without repeated slashes."""
    return re.sub("/{2,}", "/", normalize("NFC", path))


def _answer_options(request: Request, *, is_open: bool = False) -> PreparedResponse:
    """Answer OPTIONS; `is_open`: to scripts of any origin. Raises Problem for other methods."""
    if request.method != "OPTIONS":
        raise Problem("method_not_allowed", headers={"Allow": _ALLOW})
    return preflight_response(_ALLOW) if is_open else options_response(_ALLOW)
