"""Markdown into the HTML of a page, by the site's rules, with its table of contents.

The page's title is its only `h1`, so headings of a text that uses `h1` move one level down; links
that leave the site say so. Footnotes get roles, names, and ids that HTML takes (DPUB-ARIA 1.1);
tables scroll on their own, by keyboard too. Inline styles and event handlers are taken out, since
the content security policy forbids them.
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
    """The settings of one site for making HTML of texts."""

    site_url: str = ""
    """Tells which links leave the site."""
    extensions: tuple[str, ...] = ()
    """Those of Python-Markdown that the site names itself; empty: the house's own."""
    options: str = "{}"
    """Of these extensions, by their names, as JSON."""
    rules: SourceRules = SourceRules()
    words: tuple[tuple[str, str], ...] = ()
    """Each of WORDS, and how it is said; empty: in English."""


HOUSE = Dialect()
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
"""One of them where the build says it, not where an author's words begin so."""


def say_words(html: str, words: tuple[tuple[str, str], ...]) -> str:
    """Return HTML in which WORDS are said otherwise, if there are `words`."""
    said = dict(words)
    return _WORD.sub(lambda found: f"{found[1]}{escape(said[found[2]])}", html) if words else html


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
        self._github, self._words = GitHub() if GITHUB in named else None, dialect.words
        self._markdown = Markdown(
            output_format="html",
            extensions=[
                *(name for name in named if name != GITHUB),
                *filter(None, [self._github]),
            ],
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
                # The arrow's second sign asks for a letter, where telephones would show a picture.
                "footnotes": {"SEPARATOR": "-", "BACKLINK_TEXT": "&#8617;&#xFE0E;"},
                "toc": {
                    "slugify": _name_heading,
                    "toc_depth": "2-3",  # with deeper ones it is longer than it helps
                    "permalink": "#",
                    "permalink_class": "heading-anchor",
                    "permalink_title": "Link to this section",
                },
            },
        )
        # The tree's step comes after `attr_list` (8) and before `toc` (5), and the text's last.
        tree = _Tree(self._markdown, urlsplit(dialect.site_url).netloc)
        self._markdown.treeprocessors.register(tree, "house_rules", 7)
        self._markdown.postprocessors.register(_Text(self._markdown), "house_rules", -1)

    def convert(self, document: Document) -> Conversion:
        """Return the HTML of the document's text; raises what extensions raise, or TooDeepError."""
        html = self._markdown.reset().convert(document.markdown)
        faults = self._github.find_faults(document.markdown) if self._github else ()
        toc = _render_toc(getattr(self._markdown, "toc_tokens", []))
        if self._github:  # only now: ids of headings come of what was typed, as on GitHub
            html, toc = show_emoji(html), show_emoji(toc)
        return Conversion(say_words(html, self._words), toc, tuple(faults))


def _name_heading(text: str, separator: str) -> str:
    name: str = slugify_unicode(text, separator)
    return f"{name}{separator}section" if name in THEME_IDS else name


def _render_toc(entries: list[dict[str, Any]]) -> str:
    """Return the entries of the extension as a nested list; names come escaped from it."""
    if not entries:
        return ""
    items = "".join(
        f'<li><a href="#{escape(entry["id"])}">{entry["name"]}</a>'
        f"{_render_toc(entry['children'])}</li>"
        for entry in entries
    )
    return f"<ul>{items}</ul>"


_TAG = re.compile(r"""<[a-z](?:[^<>"']|"[^"]*"|'[^']*')*>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?P<value>=\s*(?:"[^"]*"|'[^']*'))"""
    r"""|[\s/]+(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
    r"""|(?<=["'])(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_BOX = '<input type="checkbox" disabled'
_BOXES = {
    f"{_BOX}/>": f'{_BOX} aria-label="Still to do">',
    f"{_BOX} checked/>": f'{_BOX} aria-label="Done" checked>',
}
"""Tasks' boxes as pymdown-extensions writes them, and with the name that they need (WCAG 4.1.2)."""


class _Tree(Treeprocessor):
    """The rules for what Markdown itself has made."""

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


class _Text(Postprocessor):
    """The rules for all that has become text: raw HTML, highlighted code, attribute lists."""

    def run(self, text: str) -> str:
        """Return `text` without inline styles and event handlers, its code reached by keyboard."""
        text = text.replace("<pre>", '<pre tabindex="0">')
        for box, html in _BOXES.items():
            text = text.replace(box, html)
        if not re.search(r"(?i)[\s\"'/](?:style|on[a-z]+)\s*=", text):
            return text
        return _TAG.sub(
            lambda tag: _ATTRIBUTE.sub(lambda found: found["value"] or "", tag[0]), text
        )


def frame_images(root: Element) -> None:
    """Make figures of captioned pictures, and rows of two or three that are all of a paragraph.

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
    """Return whether a text stands beside the elements within one."""
    return any((text or "").strip() for text in (element.text, *(each.tail for each in element)))


def _find_image(element: Element) -> Element | None:
    """Return the image that an element is, or that is all of a link."""
    if element.tag == "a" and len(element) == 1 and not _has_words(element):
        return _find_image(element[0])
    return element if element.tag == "img" else None


SCROLLER = "table-scroll"
"""The class of what stands around a table. The table itself stays one for those who hear it:
one that scrolls by itself would need another `display`, and lose its rows and columns."""


def fix_footnotes(root: Element) -> None:
    """Name the notes and the links to and fro; take out links back to where no mark stands."""
    marks = [mark for mark in root.iter("sup") if mark.find("a[@class='footnote-ref']") is not None]
    written = {mark.get("id", "") for mark in marks}
    for notes in root.findall(".//div[@class='footnote']"):
        notes.attrib.update({"role": "doc-endnotes", "aria-label": "Footnotes"})
        for number, note in enumerate(notes.findall("ol/li"), 1):
            _fix_note(note, written)
            note.set("value", str(number))  # which it keeps where those before it are hidden
    for mark in marks:
        _close_up(mark, "id")
        mark[0].set("role", "doc-noteref")
        _close_up(mark[0], "href")


def _fix_note(note: Element, marks: Container[str]) -> None:
    """Give each link back a name, with its place where a note has several."""
    _close_up(note, "id")
    for parent in list(note.iter()):
        for link in parent.findall("a[@class='footnote-backref']"):
            if link.get("href", "")[1:] not in marks:
                parent.remove(link)
    for number, link in enumerate(note.findall(".//a[@class='footnote-backref']"), 1):
        link.attrib.pop("title", None)
        name = "Back to the text" + (f", place {number}" if number > 1 else "")
        link.attrib.update({"role": "doc-backlink", "aria-label": name})
        _close_up(link, "href")


def _close_up(element: Element, attribute: str) -> None:
    """Put hyphens for blanks, which no id may hold (HTML, section 3.2.6)."""
    element.set(attribute, "-".join(element.get(attribute, "").split()))


_AMOUNT = re.compile(r"(?=.{1,24}$)[^\s\d]{0,4}\s?\d[\d\W]*[^\s\d]{0,4}")
"""A number with what it counts, such as `1 234,50 €`, `$1,234.00`, `12 %` or `2026-10-01`."""


def fix_tables(root: Element) -> None:
    """Put each table in a box that scrolls, and fix its cells: a class keeps an amount whole."""
    for cell in root.iter("td"):
        if not len(cell) and _AMOUNT.fullmatch((cell.text or "").strip()):
            cell.set("class", f"{cell.get('class', '')} amount".strip())
    for cell in list(root.iter("th")):
        if not len(cell) and not (cell.text or "").strip():
            cell.tag = "td"  # an empty one, as in a corner, heads nothing
        elif "scope" not in cell.attrib:
            cell.set("scope", "col")
    # The table becomes the box, since its parent is not known, and a table like it is put inside.
    # What can be reached by keyboard needs a role and a name (WCAG 2.2, 4.1.2); a group is no
    # landmark, of which a page should have few.
    for table in list(root.iter("table")):
        inner = Element("table", table.attrib)
        inner.text, inner[:], inner.tail = table.text, table[:], "\n"
        table.tag, table.text, table[:] = "div", "\n", [inner]
        table.attrib = {"class": SCROLLER, "role": "group", "aria-label": "Table", "tabindex": "0"}


_MARK = re.compile(
    r'<(h[1-6]|table|summary|figcaption)\b.*?</\1>|<div [^>]*class="footnote".*'
    r'|<sup id="fnref-([^"]+)">.*?</sup>',
    re.DOTALL,
)
"""A first mark of a note, or an element that has no side: a heading is read out whole, and a cell
is too narrow."""


def add_sidenotes(html: str) -> str:
    """Return HTML with each short footnote of one paragraph also behind the mark that names it.

    The copy is `hidden`, until a style sheet shows it and hides the note below the text.

    A note with several marks stays below, where each of them finds it, and so does one whose mark
    has no room at its side, and a long one, which would push those after it away from their marks.
    """
    links = Counter(re.findall(r'href="#fn-([^"]+)"', html))
    marks = {mark for _, mark in _MARK.findall(html) if links[mark] == 1}
    # An id and a link back are once in a page.
    once = r' id="[^"]*"(?=[^<>]*>)|(?:\s|&#160;)*<a [^>]*class="footnote-backref".*?</a>'
    notes = {
        name: f'<span class="sidenote" hidden><sup>{number}</sup> {re.sub(once, "", text)}</span>'
        for name, number, text in re.findall(
            r'(?s)<li id="fn-([^"]+)" value="(\d+)">\s*<p>((?:(?!<p\b).){1,800}?)</p>\s*</li>', html
        )
        if name in marks
    }
    html = _MARK.sub(lambda found: found[0] + notes.get(found[2], ""), html)
    return re.sub(
        r'<li (?=id="fn-([^"]+)")',
        lambda found: '<li class="beside" ' if found[1] in notes else found[0],
        html,
    )
