"""Pages that the edge renders with the templates of the current build, and the API reference."""

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import jinja2

from edge_api.db.problems import Problem
from edge_api.http.try_out import SCRIPTS, STYLESHEETS, read_assets
from edge_api.journal.builds import BuildManager
from edge_api.journal.site_files import CODINGS, INDEX_HTML, MARKDOWN_INDEX, SiteFile
from edge_api.operation.reference.pages import write_markdown
from edge_api.operation.reference.values import ReferencePage
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.page_templates import (
    BASE_TEMPLATE,
    CONTACT_PAGE,
    DOCS_BASE_TEMPLATE,
    DOCS_DESCRIPTION,
    DOCS_PAGE,
    DOCS_PATH,
    DOCS_TRY,
    SHELL_CONTENT,
    SHELL_TITLE,
    TEMPLATES_FOLDER,
    Form,
    PageName,
)
from edge_api.schema.paths import DOCS, DOCS_PAGES, OPENAPI, TRY_OUT_PATH

_RETRY_SECONDS = 60


class EdgePages:
    """Renders pages with the templates of the current build, in threads."""

    def __init__(self, builds: BuildManager) -> None:
        self._builds = builds

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page. Raises Problem `unavailable` where the build has no template."""
        return await self._make(partial(_render, name=name, title=title, values=values))

    async def render_form(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in. Raises as `render`."""
        return await self._make(partial(_render_form, form=form, values=values))

    async def _make(self, make: Callable[[Path], bytes]) -> bytes:
        """Render a page of the current build; retry once if that was replaced meanwhile."""
        for _ in range(2):
            folder = self._builds.build().folder
            try:
                return await asyncio.to_thread(make, folder)
            except OSError:
                if self._builds.build().folder == folder:
                    break
        raise unavailable_page()


def _render(folder: Path, name: PageName, title: str, values: dict[str, Any]) -> bytes:
    templates = _templates(folder / TEMPLATES_FOLDER)
    try:
        content = templates.get_template(f"{name}.html").render(values)
        shell = (folder / TEMPLATES_FOLDER / BASE_TEMPLATE).read_text(encoding="utf-8")
    except (jinja2.TemplateNotFound, FileNotFoundError):
        check_folder(folder)
        raise unavailable_page() from None
    before, _, after = shell.replace(SHELL_TITLE, escape(title)).partition(SHELL_CONTENT)
    return f"{before}{content}{after}".encode()


def _render_form(folder: Path, form: Form, values: dict[str, Any]) -> bytes:
    try:
        page = (folder / SITE_FOLDER / CONTACT_PAGE).read_text(encoding="utf-8")
        template = _templates(folder / TEMPLATES_FOLDER).get_template(form.template)
    except (jinja2.TemplateNotFound, FileNotFoundError):
        check_folder(folder)
        message = "The form could not be taken, and its page cannot be shown: try again later"
        raise unavailable_page(message) from None
    before, _, rest = page.partition(form.start_marker)
    _, _, after = rest.partition(form.end_marker)
    filled = template.render(values)
    return f"{before}{form.start_marker}\n{filled}\n{form.end_marker}{after}".encode()


def check_folder(folder: Path) -> None:
    """Raise FileNotFoundError if the folder of the build is gone."""
    folder.stat()


def unavailable_page(message: str = "This page cannot be shown now: try again later") -> Problem:
    """Return the problem of a page that the build does not have."""
    return Problem("unavailable", message, headers={"Retry-After": str(_RETRY_SECONDS)})


@lru_cache(maxsize=2)
def _templates(folder: Path) -> jinja2.Environment:
    return make_environment(jinja2.FileSystemLoader(folder))


def make_environment(loader: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    """Return the Jinja environment for the templates of a build."""
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)


_TEMPLATES: Final = (DOCS_BASE_TEMPLATE, DOCS_PAGE, BASE_TEMPLATE, DOCS_TRY)

_ENVIRONMENT: Final = make_environment()

MakePages = Callable[[str | None], tuple[ReferencePage, ...]]
"""Takes the slug of a post that exists, for the examples."""


class RenderContext(NamedTuple):
    """The parts of a build that the reference is rendered with."""

    folder: Path
    """Of the build."""
    newest_slug: str | None


class _TemplateSources(NamedTuple):
    """The inputs of the rendered files; equal inputs give equal files."""

    shell: str | None
    docs: str | None
    try_shell: str | None
    try_out: str | None
    """Sources of templates; `None` for one that the build does not have."""
    newest_slug: str | None


class Reference:
    """Renders the files of the API reference with the current build's templates."""

    def __init__(self, make_pages: MakePages, site_url: str) -> None:
        self._make_pages = make_pages
        self._site_url = site_url
        self._assets = {**read_assets(STYLESHEETS), **read_assets(SCRIPTS)}
        self._lock = asyncio.Lock()
        self._sources: _TemplateSources | None = None
        self._pages: tuple[ReferencePage, ...] = ()
        self._made: dict[str, bytes] = {}
        pages = [address for path in DOCS_PAGES for address in (path, f"{path}{MARKDOWN_INDEX}")]
        self.files: Mapping[str, SiteFile] = MappingProxyType(
            {
                each: SiteFile(_name(each), tuple(CODINGS))
                for each in (*pages, TRY_OUT_PATH, *self._assets)
            }
        )
        """The files by URL path."""
        self._own_files = frozenset(self.files.values())

    def has(self, file: SiteFile) -> bool:
        """Return whether `file` belongs to the reference."""
        return file in self._own_files

    async def read(self, file: SiteFile, context: RenderContext) -> bytes:
        """Return the content of a file. Raises Problem, OSError where the build is gone."""
        asset = self._assets.get(f"/{file.name}")
        if asset is not None:
            return asset
        async with self._lock:
            return await asyncio.to_thread(self._read, file.name, context)

    def _read(self, name: str, context: RenderContext) -> bytes:
        shell, docs, try_shell, try_out = (_source(context.folder, each) for each in _TEMPLATES)
        sources = _TemplateSources(shell, docs, try_shell, try_out, context.newest_slug)
        if self._sources != sources:
            self._pages = self._make_pages(sources.newest_slug)
            self._sources, self._made = sources, {}
        if name not in self._made:
            self._made[name] = self._make(name, sources).encode()
        return self._made[name]

    def _make(self, name: str, sources: _TemplateSources) -> str:
        if name == _name(TRY_OUT_PATH):
            return _fill(
                sources.try_shell,
                {SHELL_TITLE: "Try the API"},
                sources.try_out,
                docs=DOCS,
                sheets=tuple(read_assets(STYLESHEETS)),
                scripts=tuple(read_assets(SCRIPTS)),
                document=OPENAPI,
            )
        folder = f"/{name.rpartition('/')[0]}/"
        page = next(page for page in self._pages if page.path == folder)
        if name.endswith(MARKDOWN_INDEX):
            return write_markdown(page, self._site_url)
        texts = {SHELL_TITLE: page.title, DOCS_PATH: page.path, DOCS_DESCRIPTION: page.description}
        return _fill(sources.shell, texts, sources.docs, page=page, pages=self._pages)


def _fill(shell: str | None, texts: Mapping[str, str], source: str | None, **values: object) -> str:
    if shell is None or source is None:
        raise unavailable_page()
    for placeholder, text in texts.items():
        shell = shell.replace(placeholder, escape(text))
    before, _, after = shell.partition(SHELL_CONTENT)
    return f"{before}{_compile(source).render(values)}{after}"


def _name(path: str) -> str:
    name = path.removeprefix("/")
    return f"{name}{INDEX_HTML}" if name.endswith("/") else name


@lru_cache(maxsize=2)
def _compile(source: str) -> jinja2.Template:
    """Return the compiled template: the file may be deleted with its build."""
    return _ENVIRONMENT.from_string(source)


def _source(folder: Path, name: str) -> str | None:
    try:
        return (folder / TEMPLATES_FOLDER / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        check_folder(folder)
        return None
