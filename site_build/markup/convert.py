"""Converts Markdown to the HTML of a page, by the site's rules, with a table of contents.

The page's title is its only `h1`, so headings of a text that uses `h1` move one level down;
external links are marked. Footnotes get roles, names and valid ids (DPUB-ARIA 1.1); tables scroll
on their own, by keyboard too. Inline styles and event handlers are removed, since the content
security policy forbids them.
"""

import json
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions.toc import slugify_unicode
from markdown.postprocessors import Postprocessor
from markdown.treeprocessors import Treeprocessor

from edge_api.schema.highlighting import CodeFormatter
from edge_api.schema.sentences import sentence
from site_build.addresses import SourceRules
from site_build.markup.faults import Fault
from site_build.markup.github import GITHUB, GitHub, show_emoji
from site_build.site import Document

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
    "toc",
)


class Dialect(NamedTuple):
    """The settings of a site for converting Markdown to HTML."""

    site_url: str = ""
    """The site's origin: links to other hosts are external."""
    extensions: tuple[str, ...] = ()
    """Extensions of Python-Markdown that the site's settings name; empty: the default ones."""
    options: str = "{}"
    """Options of these extensions, by their names, as JSON."""
    rules: SourceRules = SourceRules()
    translations: tuple[tuple[str, str], ...] = ()
    """Each of WORDS with its translation; empty: English."""


DEFAULT_DIALECT = Dialect()
WORDS = (
    sentence("Still to do"),
    sentence("Done"),
    sentence("Footnotes"),
    sentence("Back to the text"),
    sentence("Table"),
    sentence("Link to this section"),
    sentence("Larger picture"),
    sentence("Close"),
    sentence("Note"),
    sentence("Tip"),
    sentence("Important"),
    sentence("Warning"),
    sentence("Caution"),
)
"""Words that the build adds to texts."""
_WORD = re.compile(
    r"""(<[^<>]*\saria-label="|<a class="heading-anchor"[^<>]*\stitle="|"""
    r"""<p class="admonition-title">)"""
    rf"""({"|".join(WORDS)})(?:(?=["<])|, place(?= \d))"""
)
"""One of WORDS where the build has added it, not in an author's text."""


def translate_words(html: str, translations: tuple[tuple[str, str], ...]) -> str:
    """Return HTML with WORDS translated, or unchanged if there are no `translations`."""
    by_word = dict(translations)
    return (
        _WORD.sub(lambda found: f"{found[1]}{escape(by_word[found[2]])}", html)
        if translations
        else html
    )


@dataclass(frozen=True, slots=True)
class Conversion:
    """A document's text as HTML."""

    html: str
    toc: str
    """Nested `<ul>` of links to the headings; empty where there are none."""
    faults: tuple[Fault, ...] = field(default=(), compare=False)
    """Faults for the author to fix, in no order; lines count from 0."""


class Converter:
    """Python-Markdown with a site's extensions; make one and use it for many documents."""

    def __init__(self, dialect: Dialect) -> None:
        """Set up Python-Markdown for a site; raises its error for an unknown extension."""
        named = dialect.extensions or (*_EXTENSIONS, GITHUB)
        self._github, self._translations = (
            GitHub() if GITHUB in named else None,
            dialect.translations,
        )
        self._markdown = Markdown(
            output_format="html",
            extensions=[
                *(name for name in named if name != GITHUB),
                *filter(None, [self._github]),
            ],
            extension_configs=json.loads(dialect.options)
            if dialect.extensions
            else {
                # Guessing the language takes longer than all the rest, and fails for short blocks.
                "codehilite": {
                    "guess_lang": False,
                    "css_class": "highlight",
                    "pygments_formatter": CodeFormatter,
                },
                "pymdownx.tilde": {"subscript": False},
                # The default, a colon, makes ids that have to be escaped in CSS selectors.
                # U+FE0E asks for the arrow as text, which phones would show as an emoji.
                "footnotes": {"SEPARATOR": "-", "BACKLINK_TEXT": "&#8617;&#xFE0E;"},
                "toc": {
                    "slugify": _make_heading_id,
                    "toc_depth": "2-3",  # with deeper ones it would be too long to help
                    "permalink": "#",
                    "permalink_class": "heading-anchor",
                    "permalink_title": "Link to this section",
                },
            },
        )
        # `_TreeRules` runs after `attr_list` (8) and before `toc` (5), `_HtmlRules` last.
        tree = _TreeRules(self._markdown, urlsplit(dialect.site_url).netloc)
        self._markdown.treeprocessors.register(tree, "house_rules", 7)
        self._markdown.postprocessors.register(_HtmlRules(self._markdown), "house_rules", -1)

    def convert(self, document: Document) -> Conversion:
        """Return the HTML of the document's text; raises what extensions raise, or TooDeepError."""
        html = self._markdown.reset().convert(document.markdown)
        faults = self._github.find_faults(document.markdown) if self._github else ()
        toc = _render_toc(getattr(self._markdown, "toc_tokens", []))
        if self._github:  # last: ids of headings are made from the names, as on GitHub
            html, toc = show_emoji(html), show_emoji(toc)
        return Conversion(translate_words(html, self._translations), toc, tuple(faults))


def _make_heading_id(text: str, separator: str) -> str:
    name: str = slugify_unicode(text, separator)
    return f"{name}{separator}section" if name in THEME_IDS else name


def _render_toc(entries: list[dict[str, Any]]) -> str:
    """Return the entries of the extension `toc` as a nested list; their names are escaped."""
    if not entries:
        return ""
    items = "".join(
        f'<li><a href="#{escape(entry["id"])}">{entry["name"]}</a>'
        f"{_render_toc(entry['children'])}</li>"
        for entry in entries
    )
    return f"<ul>{items}</ul>"


_TAG = re.compile(r"""<[a-z](?:[^<>"']|"[^"]*"|'[^']*')*>""", re.IGNORECASE)
_VALUE_OR_UNSAFE_ATTRIBUTE = re.compile(
    r"""(?P<value>=\s*(?:"[^"]*"|'[^']*'))"""
    r"""|[\s/]+(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
    r"""|(?<=["'])(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_CHECKBOX = '<input type="checkbox" disabled'
_CHECKBOXES = {
    f"{_CHECKBOX}/>": f'{_CHECKBOX} aria-label="Still to do">',
    f"{_CHECKBOX} checked/>": f'{_CHECKBOX} aria-label="Done" checked>',
}
"""The checkboxes of task lists that pymdown-extensions makes, each with its accessible form."""


class _TreeRules(Treeprocessor):
    """Applies the rules of this module to elements that Python-Markdown has made."""

    def __init__(self, md: Markdown, host: str) -> None:
        super().__init__(md)
        self._host = host

    def run(self, root: Element) -> None:
        """Apply the rules to the tree in place."""
        frame_images(root)
        fix_tables(root)
        fix_footnotes(root)
        headings_are_high = next(root.iter("h1"), None) is not None
        for element in root.iter():
            if headings_are_high and re.fullmatch("h[1-6]", element.tag):
                element.tag = f"h{min(int(element.tag[1]) + 1, 6)}"
            elif element.tag == "a":
                self._mark_external(element)

    def _mark_external(self, link: Element) -> None:
        try:
            target = urlsplit(link.get("href", ""))
        except ValueError:
            return
        is_outside = target.scheme in {"http", "https"} and target.netloc not in {"", self._host}
        if is_outside and "rel" not in link.attrib:
            link.set("rel", "external")


class _HtmlRules(Postprocessor):
    """Applies the rules of this module to HTML that is in no tree, such as raw HTML and code."""

    def run(self, text: str) -> str:
        """Return `text` without inline styles and event handlers, with focusable code."""
        text = text.replace("<pre>", '<pre tabindex="0">')
        for box, html in _CHECKBOXES.items():
            text = text.replace(box, html)
        if not re.search(r"(?i)[\s\"'/](?:style|on[a-z]+)\s*=", text):
            return text
        return _TAG.sub(
            lambda tag: _VALUE_OR_UNSAFE_ATTRIBUTE.sub(lambda found: found["value"] or "", tag[0]),
            text,
        )


def frame_images(root: Element) -> None:
    """Make figures of captioned pictures, and rows of the two or three pictures of a paragraph.

    A caption is an emphasis behind the pictures, or the title of a single one. A figure that the
    author wrote by hand stays as it is, its paragraphs too.
    """
    framed = {id(inside) for figure in root.iter("figure") for inside in figure.iter("p")}
    for paragraph in [each for each in root.iter("p") if id(each) not in framed]:
        images = [image for each in paragraph if (image := _find_image(each)) is not None]
        shown, rest = paragraph[: len(images)], paragraph[len(images) :]
        is_captioned = [each.tag for each in rest] in (["em"], ["br", "em"])
        if not images or _has_words(paragraph) or (rest and not is_captioned):
            continue
        caption = rest[-1] if rest else Element("em")
        if len(images) == 1 and not rest:
            caption.text = images[0].attrib.pop("title", "").strip()
        if caption.text or len(caption):
            paragraph.tag, caption.tag, caption.tail = "figure", "figcaption", None
            paragraph[:] = [Element("p"), caption] if len(images) > 1 else [shown[0], caption]
        row = paragraph[0] if paragraph.tag == "figure" else paragraph
        if len(images) > 1:
            row[:] = shown
        if len(images) in {2, 3}:
            row.set("class", "pictures")


def _has_words(element: Element) -> bool:
    """Return whether an element has text of its own beside its children."""
    return any((text or "").strip() for text in (element.text, *(each.tail for each in element)))


def _find_image(element: Element) -> Element | None:
    """Return the element if it is an image, or its image if it is a link with nothing else."""
    if element.tag == "a" and len(element) == 1 and not _has_words(element):
        return _find_image(element[0])
    return element if element.tag == "img" else None


SCROLLER = "table-scroll"
"""The class of the box around a table. To scroll itself, a table needs another `display`, with
which screen readers no longer announce its rows and columns."""


def fix_footnotes(root: Element) -> None:
    """Give footnotes and their links roles and names; remove links back to missing marks."""
    marks = [mark for mark in root.iter("sup") if mark.find("a[@class='footnote-ref']") is not None]
    mark_ids = {mark.get("id", "") for mark in marks}
    for notes in root.findall(".//div[@class='footnote']"):
        notes.attrib.update({"role": "doc-endnotes", "aria-label": "Footnotes"})
        for number, note in enumerate(notes.findall("ol/li"), 1):
            _fix_note(note, mark_ids)
            note.set("value", str(number))  # it keeps its number where earlier notes are hidden
    for mark in marks:
        _hyphenate(mark, "id")
        mark[0].set("role", "doc-noteref")
        _hyphenate(mark[0], "href")


def _fix_note(note: Element, marks: Container[str]) -> None:
    """Name each link back to the text, with a number if a note has several."""
    _hyphenate(note, "id")
    for parent in list(note.iter()):
        for link in parent.findall("a[@class='footnote-backref']"):
            if link.get("href", "")[1:] not in marks:
                parent.remove(link)
    for number, link in enumerate(note.findall(".//a[@class='footnote-backref']"), 1):
        link.attrib.pop("title", None)
        name = "Back to the text" + (f", place {number}" if number > 1 else "")
        link.attrib.update({"role": "doc-backlink", "aria-label": name})
        _hyphenate(link, "href")


def _hyphenate(element: Element, attribute: str) -> None:
    """Replace white space in an attribute by hyphens: no id may have it (HTML, section 3.2.6)."""
    element.set(attribute, "-".join(element.get(attribute, "").split()))


_AMOUNT = re.compile(r"(?=.{1,24}$)[^\s\d]{0,4}\s?\d[\d\W]*[^\s\d]{0,4}")
"""A number with its unit, or a date, such as `1 234,50 €`, `$1,234.00`, `12 %` or `2026-10-01`."""


def fix_tables(root: Element) -> None:
    """Put each table in a box that scrolls; mark cells with amounts, and fix header cells."""
    for cell in root.iter("td"):
        if not len(cell) and _AMOUNT.fullmatch((cell.text or "").strip()):
            cell.set("class", f"{cell.get('class', '')} amount".strip())
    for cell in list(root.iter("th")):
        if not len(cell) and not (cell.text or "").strip():
            cell.tag = "td"  # an empty one, as in a corner, is no header
        elif "scope" not in cell.attrib:
            cell.set("scope", "col")
    # The table becomes the box, since an element does not know its parent, and its copy is put
    # inside. An element that takes the focus needs a role and a name (WCAG 2.2, 4.1.2). The role is
    # `group`, since a page should have few landmarks.
    for table in list(root.iter("table")):
        inner = Element("table", table.attrib)
        inner.text, inner[:], inner.tail = table.text, table[:], "\n"
        table.tag, table.text, table[:] = "div", "\n", [inner]
        table.attrib = {"class": SCROLLER, "role": "group", "aria-label": "Table", "tabindex": "0"}


_MARK_OR_SKIPPED = re.compile(
    r'<(h[1-6]|table|summary|figcaption)\b.*?</\1>|<div [^>]*class="footnote".*'
    r'|<sup id="fnref-([^"]+)">.*?</sup>',
    re.DOTALL,
)
"""The first mark of a footnote, or an element in which marks are skipped: a screen reader would
read a sidenote as part of the heading, and a table cell is too narrow for one."""


def add_sidenotes(html: str) -> str:
    """Return HTML with a copy of each short footnote of one paragraph behind its mark.

    The copy is `hidden`, until a style sheet shows it and hides the note below the text.

    A note gets no copy if it has several marks, if there is no room beside its mark, or if it is
    long: it would push later notes away from their marks.
    """
    links = Counter(re.findall(r'href="#fn-([^"]+)"', html))
    marks = {mark for _, mark in _MARK_OR_SKIPPED.findall(html) if links[mark] == 1}
    # The copy has neither the ids nor the links back.
    cut = r' id="[^"]*"(?=[^<>]*>)|(?:\s|&#160;)*<a [^>]*class="footnote-backref".*?</a>'
    notes = {
        name: f'<span class="sidenote" hidden><sup>{number}</sup> {re.sub(cut, "", text)}</span>'
        for name, number, text in re.findall(
            r'(?s)<li id="fn-([^"]+)" value="(\d+)">\s*<p>((?:(?!<p\b).){1,800}?)</p>\s*</li>', html
        )
        if name in marks
    }
    html = _MARK_OR_SKIPPED.sub(lambda found: found[0] + notes.get(found[2], ""), html)
    return re.sub(
        r'<li (?=id="fn-([^"]+)")',
        lambda found: '<li class="beside" ' if found[1] in notes else found[0],
        html,
    )
