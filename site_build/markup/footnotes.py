"""Footnotes that say what they are to those who do not see them (DPUB-ARIA 1.1).

Python-Markdown makes them; here they get roles and names, and ids that HTML takes.
"""

from collections.abc import Container
from xml.etree.ElementTree import Element

BACKLINK = "&#8617;&#xFE0E;"
"""An arrow; the second sign asks for a letter, where telephones would show a picture."""


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
