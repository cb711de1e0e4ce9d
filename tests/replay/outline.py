"""A page reduced to what a reader and a form get: title, text, links and fields, without markup.

The frame around `<main>` belongs to the theme, so it is left out.
"""

import re
from html.parser import HTMLParser

_SHOWN = {
    "a": ("href",),
    "form": ("method", "action"),
    "input": ("type", "name", "value", "checked", "required"),
    "textarea": ("name",),
    "select": ("name",),
    "option": ("value", "selected"),
    "button": ("name", "value"),
    "time": ("datetime",),
}
"""Elements and those of their attributes that are shown."""


class _Outline(HTMLParser):
    """Collects the title, and what is shown of the main part."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.parts: list[str] = []
        self._depth = 0
        self._in_title = False
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that is shown."""
        self._in_title = tag == "title"
        self._depth += tag == "main"
        self._hidden += tag in ("script", "style")
        if not self._depth or tag not in _SHOWN:
            return
        given = dict(attrs)
        shown = [f" {name}={given[name] or ''}" for name in _SHOWN[tag] if name in given]
        self.parts.append(f"<{tag}{''.join(shown)}>")

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self._in_title = False
        self._depth -= tag == "main" and self._depth > 0
        self._hidden -= tag in ("script", "style") and self._hidden > 0

    def handle_data(self, data: str) -> None:
        """Note text."""
        if self._in_title:
            self.title += data
        elif self._depth and not self._hidden:
            self.parts.append(data)


def outline(page: str) -> str:
    """Return the title of a page and its main part, with all white space made one blank."""
    parser = _Outline()
    parser.feed(page)
    parser.close()
    text = re.sub(r"\s+", " ", " ".join(parser.parts)).strip()
    return f"{parser.title.strip()}: {text}"
