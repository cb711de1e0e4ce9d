"""Footnotes and tables that say what they are to those who do not see them (DPUB-ARIA 1.1).

Python-Markdown makes them. Here footnotes get roles and names, and ids that HTML takes; tables
scroll on their own, by keyboard too, and their heads say what they head.
"""

from collections.abc import Container
from xml.etree.ElementTree import Element

BACKLINK = "&#8617;&#xFE0E;"
"""An arrow; the second sign asks for a letter, where telephones would show a picture."""
SCROLLER = "table-scroll"
"""The class of what stands around a table. The table itself stays one for those who hear it:
one that scrolls by itself would need another `display`, and lose its rows and columns."""


def mend_footnotes(root: Element) -> None:
    """Name the notes and the links to and fro; take out links back to where no mark stands."""
    marks = [mark for mark in root.iter("sup") if mark.find("a[@class='footnote-ref']") is not None]
    written = {mark.get("id", "") for mark in marks}
    for notes in root.findall(".//div[@class='footnote']"):
        notes.set("role", "doc-endnotes")
        notes.set("aria-label", "Footnotes")
        for note in notes.findall("ol/li"):
            _mend_note(note, written)
    for mark in marks:
        _close_up(mark, "id")
        mark[0].set("role", "doc-noteref")
        _close_up(mark[0], "href")


def _mend_note(note: Element, marks: Container[str]) -> None:
    """Give each link back a name, with its place where a note has several."""
    _close_up(note, "id")
    for parent in list(note.iter()):
        for link in parent.findall("a[@class='footnote-backref']"):
            if link.get("href", "")[1:] not in marks:
                parent.remove(link)
    for number, link in enumerate(note.findall(".//a[@class='footnote-backref']"), 1):
        link.attrib.pop("title", None)
        link.set("role", "doc-backlink")
        link.set("aria-label", "Back to the text" + (f", place {number}" if number > 1 else ""))
        _close_up(link, "href")


def _close_up(element: Element, attribute: str) -> None:
    """Put hyphens for blanks, which no id may hold (HTML, section 3.2.6)."""
    element.set(attribute, "-".join(element.get(attribute, "").split()))


def mend_tables(root: Element) -> None:
    """Put each table in a box that scrolls, and mend its cells."""
    for cell in list(root.iter("th")):
        _mend_head(cell)
    for name in ("td", "th"):
        for cell in root.iter(name):
            _align_by_class(cell)
    for table in list(root.iter("table")):
        _wrap(table)


def _wrap(table: Element) -> None:
    """Make `table` the box, since its parent is not known, and put a table like it inside.

    What can be reached by keyboard needs a role and a name (WCAG 2.2, 4.1.2); a group is no
    landmark, of which a page should have few.
    """
    inner = Element("table", table.attrib)
    inner.text, inner[:] = table.text, table[:]
    inner.tail = "\n"
    tail = table.tail
    table.clear()
    table.tag, table.text, table.tail = "div", "\n", tail
    table.attrib.update({"class": SCROLLER, "role": "group", "aria-label": "Table"})
    table.set("tabindex", "0")
    table.append(inner)


def _mend_head(cell: Element) -> None:
    """Say what a head is of; an empty one, as in a corner, heads nothing."""
    if not len(cell) and not (cell.text or "").strip():
        cell.tag = "td"
    elif "scope" not in cell.attrib:
        cell.set("scope", "col")


def _align_by_class(cell: Element) -> None:
    if alignment := cell.attrib.pop("align", None):
        cell.set("class", f"{cell.get('class', '')} align-{alignment}".strip())
