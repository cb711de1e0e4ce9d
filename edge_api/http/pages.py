"""Rendering of pages and of the API reference with the templates of the current build."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import jinja2

from edge_api.db.problems import Problem
from edge_api.journal.builds import BuildManager
from edge_api.journal.site_files import CODINGS, INDEX_HTML, MARKDOWN_INDEX, SiteFile
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.page_templates import (
    BASE_TEMPLATE,
    CONTACT_PAGE,
    CONTENT_PLACEHOLDER,
    DESCRIPTION_PLACEHOLDER,
    DOCS_BASE_TEMPLATE,
    DOCS_TEMPLATE,
    PAGE_VARIABLES,
    PATH_PLACEHOLDER,
    TEMPLATES_FOLDER,
    TITLE_PLACEHOLDER,
    TRY_OUT_TEMPLATE,
    Form,
    PageName,
    read_notes,
)
from edge_api.schema.paths import DOCS, DOCS_PAGES, OPENAPI, TRY_OUT_PATH
from edge_api.schema.sentences import sentence
from edge_api.schema.template_language import make_environment, read_language

if TYPE_CHECKING:  # at run time it would load a renderer of Markdown
    from edge_api.operation.reference.pages import ReferencePage

_log = logging.getLogger(__name__)


class EdgePages:
    """Renders pages with the templates of the current build, in threads."""

    def __init__(self, builds: BuildManager) -> None:
        self._builds = builds

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page. Raises Problem `unavailable` where the build has no template."""
        # A value that is not given is None.
        given = {**dict.fromkeys(PAGE_VARIABLES[name]), **values}
        page = (f"{name}.html", BASE_TEMPLATE, {TITLE_PLACEHOLDER: title}, given)
        return await self._render_current(lambda folder: _render(folder, *page))

    async def render_form(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in. Raises as `render` does."""
        return await self._render_current(partial(_render_form, form=form, values=values))

    def translate(self, text: str) -> str:
        """Return a sentence in the language of the current build; without a build in English."""
        try:
            return read_language(self._builds.site().folder).translate(text)
        except (Problem, OSError):
            return text

    async def _render_current(self, render: Callable[[Path], bytes]) -> bytes:
        """Render a page of the current build; retry once if that was replaced meanwhile."""
        for _ in range(2):
            folder = self._builds.site().folder
            try:
                return await asyncio.to_thread(render, folder)
            except OSError:
                if self._builds.site().folder == folder:
                    break
        raise unavailable_problem()


def _render(
    folder: Path, template: str, frame: str, texts: Mapping[str, str], values: Mapping[str, Any]
) -> bytes:
    """Return a page: a rendered template in a frame whose placeholders `texts` replaces."""
    content, shell = _render_with_frame(folder, template, values, folder / TEMPLATES_FOLDER / frame)
    for placeholder, text in texts.items():
        shell = shell.replace(placeholder, escape(read_language(folder).translate(text)))
    before, _, after = shell.partition(CONTENT_PLACEHOLDER)
    return f"{before}{content}{after}".encode()


def _render_form(folder: Path, form: Form, values: dict[str, Any]) -> bytes:
    message = sentence("The form could not be taken, and its page cannot be shown: try again later")
    place = folder / SITE_FOLDER / CONTACT_PAGE
    filled, page = _render_with_frame(folder, form.template, values, place, message)
    before, _, rest = page.partition(form.start_marker)
    _, _, after = rest.partition(form.end_marker)
    return f"{before}{form.start_marker}\n{filled}\n{form.end_marker}{after}".encode()


_UNAVAILABLE: Final = sentence("This page cannot be shown now: try again later")


def unavailable_problem(message: str = _UNAVAILABLE) -> Problem:
    """Return the problem that reports a page that cannot be rendered."""
    return Problem("unavailable", message, headers={"Retry-After": "60"})


def _render_with_frame(
    folder: Path, name: str, values: Mapping[str, Any], frame: Path, message: str = _UNAVAILABLE
) -> tuple[str, str]:
    """Return a rendered template of a build, and the text of its frame, a page around it.

    Raises Problem `unavailable` with the message, and FileNotFoundError if the build is gone.
    """
    try:
        language = {"site_language": read_language(folder)}
        filled = _get_template(folder, name).render({**values, **language})
        return filled, frame.read_text(encoding="utf-8")
    except (jinja2.TemplateNotFound, FileNotFoundError):
        folder.stat()
    except (jinja2.UndefinedError, jinja2.exceptions.SecurityError) as error:
        _log.error("the template %s cannot be shown: %s", name, error.message)
    raise unavailable_problem(message)


@lru_cache(maxsize=32)  # the templates of two builds
def _get_template(folder: Path, name: str) -> jinja2.Template:
    is_ours = name in read_notes(folder)["ours"]
    environment = make_environment(
        jinja2.FileSystemLoader(folder / TEMPLATES_FOLDER),
        jinja2.StrictUndefined if is_ours else jinja2.ChainableUndefined,
    )
    return environment.get_template(name)


def _read_assets(names: Iterable[str]) -> dict[str, bytes]:
    """Return the named files of `try_out/` by URL path, in the given order."""
    found = {}
    for name in names:
        data = files(__package__).joinpath("try_out", name).read_bytes()
        stem, _, ending = name.rpartition("/")[2].rpartition(".")
        digest = sha256(data).hexdigest()[:12]  # as in the names of the site's static files
        found[f"/theme/try/{stem}.{digest}.{ending}"] = data
    return found


class Reference:
    """Renders the files of the API reference with the current build's templates."""

    def __init__(self, make_pages: "Callable[[str | None], tuple[ReferencePage, ...]]") -> None:
        """Take a function that makes the pages; its argument is a post's slug for the examples."""
        self._make_pages = lru_cache(maxsize=1)(make_pages)
        sheets = _read_assets(("swagger_ui/swagger-ui.css", "look.css"))
        scripts = _read_assets(("swagger_ui/swagger-ui-bundle.js", "start.js"))
        self._assets = {**sheets, **scripts}
        self._try_out = {
            "docs": DOCS,
            "sheets": tuple(sheets),
            "scripts": tuple(scripts),
            "document": OPENAPI,
        }
        self._lock = asyncio.Lock()
        pages = [address for path in DOCS_PAGES for address in (path, f"{path}{MARKDOWN_INDEX}")]
        self.files: Mapping[str, SiteFile] = MappingProxyType(
            {
                each: SiteFile(_file_name(each), tuple(CODINGS))
                for each in (*pages, TRY_OUT_PATH, *self._assets)
            }
        )
        """The files by URL path."""

    async def read(self, file: SiteFile, folder: Path, newest_slug: str | None) -> bytes:
        """Return a file for the build in `folder`. Raises Problem, OSError if that is gone."""
        asset = self._assets.get(f"/{file.name}")
        if asset is not None:
            return asset
        async with self._lock:
            return await asyncio.to_thread(self._make, file.name, folder, newest_slug)

    def _make(self, name: str, folder: Path, newest_slug: str | None) -> bytes:
        if name == _file_name(TRY_OUT_PATH):
            texts = {TITLE_PLACEHOLDER: "Try the API"}
            return _render(folder, TRY_OUT_TEMPLATE, BASE_TEMPLATE, texts, self._try_out)
        path = f"/{name.rpartition('/')[0]}/"
        pages = self._make_pages(newest_slug)
        page = next(page for page in pages if page.path == path)
        if name.endswith(MARKDOWN_INDEX):
            return page.markdown.encode()
        texts = {
            TITLE_PLACEHOLDER: page.title,
            PATH_PLACEHOLDER: page.path,
            DESCRIPTION_PLACEHOLDER: page.description,
        }
        return _render(
            folder, DOCS_TEMPLATE, DOCS_BASE_TEMPLATE, texts, {"page": page, "pages": pages}
        )


def _file_name(path: str) -> str:
    name = path.removeprefix("/")
    return f"{name}{INDEX_HTML}" if name.endswith("/") else name
