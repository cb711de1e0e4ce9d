"""Pages that the edge makes for one request, in the look of the site.

The build hands over a frame and templates, or a form that stands in one of its own pages. What the
pages are about is not known here.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial
from html import escape
from pathlib import Path
from typing import Any

import jinja2

from edge_api.domain.edition import Shelf
from edge_api.schema.edge_pages import (
    CONTACT_PAGE,
    SHELL,
    SHELL_CONTENT,
    SHELL_TITLE,
    TEMPLATES_FOLDER,
    Form,
    PageName,
)
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.problems import Problem

_RETRY_SECONDS = 60


class EdgePages:
    """Renders with the templates of the current build, beside the event loop."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page; `values` are those that its template is declared to be given.

        Raises Problem `unavailable` where the build has none such.
        """
        return await self._make(partial(_render, name=name, title=title, values=values))

    async def refill(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in anew.

        Raises Problem `unavailable` where the build has none such.
        """
        return await self._make(partial(_refill, form=form, values=values))

    async def _make(self, make: Callable[[Path], bytes]) -> bytes:
        """Make a page of the current build; once more if that was swapped and cleared meanwhile."""
        for _ in range(2):
            folder = self._shelf.edition().folder
            try:
                return await asyncio.to_thread(make, folder)
            except OSError:
                if self._shelf.edition().folder == folder:
                    break
        raise unavailable_page()


def _render(folder: Path, name: PageName, title: str, values: dict[str, Any]) -> bytes:
    templates = _templates(folder / TEMPLATES_FOLDER)
    try:
        content = templates.get_template(f"{name}.html").render(values)
        shell = (folder / TEMPLATES_FOLDER / SHELL).read_text(encoding="utf-8")
    except (jinja2.TemplateNotFound, FileNotFoundError):
        check_folder(folder)
        raise unavailable_page() from None
    before, _, after = shell.replace(SHELL_TITLE, escape(title)).partition(SHELL_CONTENT)
    return f"{before}{content}{after}".encode()


def _refill(folder: Path, form: Form, values: dict[str, Any]) -> bytes:
    try:
        page = (folder / SITE_FOLDER / CONTACT_PAGE).read_text(encoding="utf-8")
        template = _templates(folder / TEMPLATES_FOLDER).get_template(form.template)
    except (jinja2.TemplateNotFound, FileNotFoundError):
        check_folder(folder)
        sentence = "The form could not be taken, and its page cannot be shown: try again later"
        raise unavailable_page(sentence) from None
    before, _, rest = page.partition(form.opening)
    _, _, after = rest.partition(form.closing)
    filled = template.render(values)
    return f"{before}{form.opening}\n{filled}\n{form.closing}{after}".encode()


def check_folder(folder: Path) -> None:
    """Tell a build that lacks a file from one that is gone. Raises FileNotFoundError if it is."""
    folder.stat()


def unavailable_page(sentence: str = "This page cannot be shown now: try again later") -> Problem:
    """Return the problem of a page that the build does not have."""
    return Problem("unavailable", sentence, headers={"Retry-After": str(_RETRY_SECONDS)})


@lru_cache(maxsize=2)
def _templates(folder: Path) -> jinja2.Environment:
    """Return the templates of one build; Jinja keeps them, and looks whether one was mended."""
    return make_environment(jinja2.FileSystemLoader(folder))


def make_environment(loader: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    """Return what templates that a build hands over are rendered with."""
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
