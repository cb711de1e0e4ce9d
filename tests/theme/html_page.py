"""A built page as its elements, read strictly: every tag is closed, in order, and none twice over.

It knows HTML, and nothing of this site.
"""

from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

_VOID = frozenset(["br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"])
"""Elements that have no end tag."""


@dataclass
class Element:
    """A start tag, and the text between it and its end tag."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


class Page(HTMLParser):
    """All elements of a page, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert [element.tag for element in self._open] == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(element.attributes) == len(attrs), f"an attribute stands twice on <{tag}>"
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_data(self, data: str) -> None:
        """Give text to all elements around it."""
        for element in self._open:
            element.text += data

    def handle_endtag(self, tag: str) -> None:
        """Hold an end tag against the element that was opened last."""
        assert self._open, f"</{tag}> closes nothing"
        opened = self._open.pop()
        assert opened.tag == tag, f"</{tag}> closes <{opened.tag}>"

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of that name that carry those attributes."""
        return [
            element
            for element in self.elements
            if element.tag == tag and attributes.items() <= element.attributes.items()
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        """Return the only such element."""
        (element,) = self.all(tag, **attributes)
        return element


@cache
def read(site: Path, path: str) -> Page:
    """Return a page of the site in that folder."""
    return Page((site / path).read_text(encoding="utf-8"))
