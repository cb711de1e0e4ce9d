"""Markdown into the HTML of a page, with its table of contents.

It knows Python-Markdown and Pygments, and neither files nor templates. What comes out obeys the
site's content security policy: no inline style and no event handler, whoever wrote them.
"""

from dataclasses import dataclass
from html import escape
from typing import Any, TypedDict, cast

from markdown import Markdown
from markdown.extensions.toc import slugify_unicode

from edge_api.schema.code_markup import CodeFormatter
from site_build.markup.accessibility import BACKLINK
from site_build.markup.house_rules import HouseRules
from site_build.post import Document

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
    "sane_lists",
    "tables",
    "toc",
)


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


class Converter:
    """Python-Markdown with this site's extensions; make one and use it for many documents."""

    def __init__(self, site_url: str) -> None:
        self._markdown = Markdown(
            output_format="html",
            extensions=[*_EXTENSIONS, HouseRules(site_url)],
            extension_configs={
                # Guessing takes longer than all the rest and guesses wrong on short blocks.
                "codehilite": {
                    "guess_lang": False,
                    "css_class": "highlight",
                    "pygments_formatter": _Formatters(),
                },
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
        """Return the HTML of the document's text.

        Raises what an extension raises on text that it cannot take, RecursionError among it.
        """
        html = self._markdown.reset().convert(document.markdown)
        tokens = cast("list[_TocEntry]", getattr(self._markdown, "toc_tokens", []))
        return Conversion(html, _render_toc(tokens))


class _Formatters:
    """Gives what writes code in HTML; to make it takes as long as to use it, so it is kept."""

    _MOST = 64

    def __init__(self) -> None:
        self._known: dict[str, CodeFormatter] = {}

    def __call__(self, **options: Any) -> CodeFormatter:
        """Return it for the options of a block."""
        name = repr(sorted(options.items()))
        if name not in self._known:
            if len(self._known) == self._MOST:  # Lines to be marked may differ for ever.
                self._known.clear()
            self._known[name] = CodeFormatter(**options)
        return self._known[name]


def _name_heading(text: str, separator: str) -> str:
    """Return the id of a heading with this text."""
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
