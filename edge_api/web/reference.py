"""The reference as files of the site that no build wrote: pages, their Markdown, Swagger UI.

They are made with the templates of the current build, once, and made again only when a build brings
other templates. What the pages say is not known here.
"""

import asyncio
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import jinja2

from edge_api.api.reference.markdown import write_markdown
from edge_api.api.reference.values import Page
from edge_api.domain.site_files import CODINGS, INDEX, SiteFile
from edge_api.schema.edge_pages import (
    DOCS_DESCRIPTION,
    DOCS_PATH,
    DOCS_SHELL,
    SHELL_CONTENT,
    SHELL_TITLE,
    TEMPLATES_FOLDER,
)
from edge_api.schema.paths import DOCS, DOCS_PAGES, TRY_DOCS
from edge_api.schema.problems import Problem
from edge_api.web.pages import open_templates
from edge_api.web.try_out import SCRIPTS, SHEETS, read_parts

_TEMPLATES: Final = (DOCS_SHELL, "docs.html", "docs_try.html")
_TWIN: Final = "index.md"
_DOCUMENT: Final = "/api/public/v1/openapi.json"
_RETRY_SECONDS: Final = 60

MakePages = Callable[[str | None], tuple[Page, ...]]
"""Takes the slug of a post that exists, for the examples."""


class Ground(NamedTuple):
    """What of an edition the reference is made with."""

    folder: Path
    """Of the build."""
    site_title: str
    newest_slug: str | None


class _Makings(NamedTuple):
    sources: tuple[str | None, ...]
    """The templates; `None` for one that the build does not have."""
    site_title: str
    newest_slug: str | None


class Reference:
    """Makes the files of the reference, whichever edition is current."""

    def __init__(self, make_pages: MakePages, site_url: str) -> None:
        self._make_pages = make_pages
        self._site_url = site_url
        self._parts = {**read_parts(SHEETS), **read_parts(SCRIPTS)}
        self._turn = asyncio.Lock()
        self._made: tuple[_Makings, Mapping[str, bytes]] | None = None
        pages = [address for path in DOCS_PAGES for address in (path, f"{path}{_TWIN}")]
        self.files: Mapping[str, SiteFile] = MappingProxyType(
            {path: _declare(path) for path in (*pages, TRY_DOCS, *self._parts)}
        )
        """What there is, by the path at which it answers."""
        self._own = frozenset(self.files.values())

    def has(self, file: SiteFile) -> bool:
        """Tell whether it is a file of the reference."""
        return file in self._own

    async def read(self, file: SiteFile, ground: Ground) -> bytes:
        """Return the content of a file. Raises Problem `unavailable` where the build lacks it."""
        async with self._turn:
            made = await asyncio.to_thread(self._keep, ground)
        try:
            return made[file.name]
        except KeyError:
            headers = {"Retry-After": str(_RETRY_SECONDS)}
            sentence = "This page cannot be shown now: try again later"
            raise Problem("unavailable", sentence, headers=headers) from None

    def _keep(self, ground: Ground) -> Mapping[str, bytes]:
        """Return every file, made anew where another build has other templates."""
        sources = tuple(_source(ground.folder, name) for name in _TEMPLATES)
        makings = _Makings(sources, ground.site_title, ground.newest_slug)
        if self._made is None or self._made[0] != makings:
            self._made = makings, self._make(makings, ground.folder / TEMPLATES_FOLDER)
        return self._made[1]

    def _make(self, makings: _Makings, folder: Path) -> Mapping[str, bytes]:
        pages = self._make_pages(makings.newest_slug)
        shell, has_docs, has_try = makings.sources
        made = {path.removeprefix("/"): data for path, data in self._parts.items()}
        for page in pages:
            twin = f"{page.path}{_TWIN}".removeprefix("/")
            made[twin] = write_markdown(page, self._site_url).encode()
        templates = open_templates(folder)
        if shell is not None and has_docs is not None:
            template = templates.get_template("docs.html")
            for page in pages:
                made[_name(page.path)] = _fill(shell, template, page, pages)
        if has_try is not None:
            template = templates.get_template("docs_try.html")
            made[_name(TRY_DOCS)] = self._render_try(template, makings.site_title)
        return made

    def _render_try(self, template: jinja2.Template, site_title: str) -> bytes:
        sheets, scripts = read_parts(SHEETS), read_parts(SCRIPTS)
        page = template.render(
            site_title=site_title,
            docs=DOCS,
            sheets=tuple(sheets),
            scripts=tuple(scripts),
            document=_DOCUMENT,
        )
        return page.encode()


def _declare(path: str) -> SiteFile:
    return SiteFile(_name(path), 0, tuple(CODINGS))


def _name(path: str) -> str:
    name = path.removeprefix("/")
    return f"{name}{INDEX}" if name.endswith("/") else name


def _source(folder: Path, name: str) -> str | None:
    try:
        return (folder / TEMPLATES_FOLDER / name).read_text(encoding="utf-8")
    except OSError:
        return None


def _fill(shell: str, template: jinja2.Template, page: Page, pages: tuple[Page, ...]) -> bytes:
    """Return a whole page."""
    content = template.render(page=page, pages=pages)
    marks = {
        SHELL_TITLE: page.title,
        DOCS_PATH: page.path,
        DOCS_DESCRIPTION: page.description,
    }
    for mark, text in marks.items():
        shell = shell.replace(mark, escape(text))
    before, _, after = shell.partition(SHELL_CONTENT)
    return f"{before}{content}{after}".encode()
