"""Markdown into the HTML of a page, with its table of contents.

It knows Python-Markdown and Pygments, and neither files nor templates. What comes out obeys the
site's content security policy: no inline style and no event handler, whoever wrote them.
"""

import json
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple, TypedDict, cast

from markdown import Markdown
from markdown.extensions.toc import slugify_unicode

from edge_api.schema.highlighting import CodeFormatter
from site_build.addresses import SourceRules
from site_build.markup.github import GITHUB, GitHub
from site_build.markup.house_rules import BACKLINK, HouseRules
from site_build.markup.structure import Fault
from site_build.site import Document

_TOC_LEVELS = "2-3"
"""Deeper headings would make a table of contents longer than it helps."""

THEME_IDS = frozenset({"main", "related"})
"""Ids that a page has outside of its text; no heading may take one."""

_EXTENSIONS = (
    "abbr",
    "admonition",
    "attr_list",
    "codehilite",
    "def_list",
    "fenced_code",
    "footnotes",
    "md_in_html",
    "pymdownx.magiclink",
    "pymdownx.tasklist",
    "pymdownx.tilde",
    "sane_lists",
    "tables",
    "toc",
)


class Dialect(NamedTuple):
    """How texts become HTML on one site."""

    site_url: str = ""
    """Tells which links leave the site."""
    extensions: tuple[str, ...] = ()
    """Those of Python-Markdown that the site names itself; empty: the house's own."""
    options: str = "{}"
    """Of these extensions, by their names, as JSON."""
    rules: SourceRules = SourceRules()


HOUSE = Dialect()


class _TocEntry(TypedDict):
    """A heading as Python-Markdown's `toc` extension tells it."""

    id: str
    name: str
    children: list["_TocEntry"]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A document's text as HTML."""

    html: str
    toc: str
    """Nested `<ul>` of links to the headings; empty where there are none."""
    faults: tuple[Fault, ...] = field(default=(), compare=False)
    """What the author has to fix, in no order; lines count from 0."""


class Converter:
    """Python-Markdown with a site's extensions; make one and use it for many documents."""

    def __init__(self, dialect: Dialect) -> None:
        """Take how the site writes; raises what Python-Markdown does for an unknown extension."""
        named = dialect.extensions or (*_EXTENSIONS, GITHUB)
        self._github = GitHub() if GITHUB in named else None
        others = [name for name in named if name != GITHUB]
        own = [*filter(None, [self._github]), HouseRules(dialect.site_url)]
        self._markdown = Markdown(
            output_format="html",
            extensions=[*others, *own],
            extension_configs=json.loads(dialect.options)
            if dialect.extensions
            else {
                # Guessing takes longer than all the rest and guesses wrong on short blocks.
                "codehilite": {
                    "guess_lang": False,
                    "css_class": "highlight",
                    "pygments_formatter": CodeFormatter,
                },
                "pymdownx.tilde": {"subscript": False},
                # The default, a colon, makes ids that no CSS selector can name as they stand.
                "footnotes": {"SEPARATOR": "-", "BACKLINK_TEXT": BACKLINK},
                # An `align` attribute can be told from a style; the house rules make it a class.
                "tables": {"use_align_attribute": True},
                "toc": {
                    "slugify": _name_heading,
                    "toc_depth": _TOC_LEVELS,
                    "permalink": "#",
                    "permalink_class": "heading-anchor",
                    "permalink_title": "Link to this section",
                },
            },
        )

    def convert(self, document: Document) -> Conversion:
        """Return the HTML of the document's text; raises what extensions raise, or TooDeepError."""
        html = self._markdown.reset().convert(document.markdown)
        faults = self._github.find_faults(document.markdown, html) if self._github else ()
        tokens = cast("list[_TocEntry]", getattr(self._markdown, "toc_tokens", []))
        return Conversion(html, _render_toc(tokens), tuple(faults))


def _name_heading(text: str, separator: str) -> str:
    name: str = slugify_unicode(text, separator)
    return f"{name}{separator}section" if name in THEME_IDS else name


def _render_toc(entries: list[_TocEntry]) -> str:
    """Return the entries as a nested list; names come escaped from the extension."""
    if not entries:
        return ""
    items = "".join(
        f'<li><a href="#{escape(entry["id"])}">{entry["name"]}</a>'
        f"{_render_toc(entry['children'])}</li>"
        for entry in entries
    )
    return f"<ul>{items}</ul>"
