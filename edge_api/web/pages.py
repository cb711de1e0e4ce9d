"""Pages that the edge makes for one request, in the look of the site.

The build hands over a frame and templates, or a form that stands in one of its own pages. What the
pages are about is not known here.
"""

import asyncio
from functools import lru_cache
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
        folder = self._shelf.edition().folder
        return await asyncio.to_thread(_render, folder, name, title, values)

    async def refill(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in anew.

        Raises Problem `unavailable` where the build has none such.
        """
        folder = self._shelf.edition().folder
        return await asyncio.to_thread(_refill, folder, form, values)


def _render(folder: Path, name: PageName, title: str, values: dict[str, Any]) -> bytes:
    try:
        templates = _templates(folder / TEMPLATES_FOLDER)
        content = templates.get_template(f"{name}.html").render(values)
        shell = (folder / TEMPLATES_FOLDER / SHELL).read_text(encoding="utf-8")
    except (jinja2.TemplateNotFound, OSError):
        raise _missing("This page cannot be shown now: try again later") from None
    before, _, after = shell.replace(SHELL_TITLE, escape(title)).partition(SHELL_CONTENT)
    return f"{before}{content}{after}".encode()


def _refill(folder: Path, form: Form, values: dict[str, Any]) -> bytes:
    try:
        page = (folder / SITE_FOLDER / CONTACT_PAGE).read_text(encoding="utf-8")
        template = _templates(folder / TEMPLATES_FOLDER).get_template(form.template)
    except (jinja2.TemplateNotFound, OSError):
        sentence = "The form could not be taken, and its page cannot be shown: try again later"
        raise _missing(sentence) from None
    before, _, rest = page.partition(form.opening)
    _, _, after = rest.partition(form.closing)
    filled = template.render(values)
    return f"{before}{form.opening}\n{filled}\n{form.closing}{after}".encode()


def _missing(sentence: str) -> Problem:
    return Problem("unavailable", sentence, headers={"Retry-After": str(_RETRY_SECONDS)})


@lru_cache(maxsize=2)
def _templates(folder: Path) -> jinja2.Environment:
    """Return the templates of one build; Jinja keeps them, and looks whether one was mended."""
    return make_environment(jinja2.FileSystemLoader(folder))


def make_environment(loader: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    """Return what templates that a build hands over are rendered with."""
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
