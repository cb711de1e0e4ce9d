"""Marks on a page what its readers will not see yet: drafts, and posts whose time has not come.

The theme knows nothing of it, so no build can ever carry such a mark. The page's own text stays as
it was made: marks are put between its elements.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from site_build.checks.ground import locate
from site_build.post import Document

_LINK = re.compile(r"<a\b[^>]*?\shref=\"/(?P<address>[^\"#?]*)[^\"]*\"[^>]*>.*?</a>", re.DOTALL)
_BODY = re.compile(r"<body\b[^>]*>")
_HEADING = re.compile(r"<h1\b.*?</h1>", re.DOTALL)


def name_hidden(documents: Iterable[Document], now: datetime) -> dict[str, str]:
    """Return what to write on each document that is not public at `now` (UTC), by its address."""
    return {locate(each): _word(each) for each in documents if not each.is_public_at(now)}


def mark_page(html: str, address: str, hidden: Mapping[str, str]) -> str:
    """Return the page at `address` with a mark on its heading and behind links to what is hidden.

    `hidden` says what to write, by address.
    """
    if not hidden:
        return html
    body = _BODY.search(html)
    start = body.end() if body else 0

    def mark(link: re.Match[str]) -> str:
        words = hidden.get(link["address"])
        return f"{link[0]} {_draw(words)}" if words else link[0]

    shown = _LINK.sub(mark, html[start:])
    if own := hidden.get(address):
        shown = _HEADING.sub(lambda heading: f"{heading[0]}\n<p>{_draw(own)}</p>", shown, count=1)
    return f"{html[:start]}{shown}"


def _draw(words: str) -> str:
    return f'<small class="preview-badge" lang="en" dir="ltr">{words}</small>'


def _word(document: Document) -> str:
    if document.draft:
        return "Draft"
    at = document.published
    day = f"{at.day} {at:%B %Y}"
    has_time = (at.hour, at.minute, at.second) != (0, 0, 0)
    return f"Appears on {day}{f', {at:%H:%M} UTC' if has_time else ''}"
