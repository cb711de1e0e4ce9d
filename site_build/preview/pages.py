"""Pages as the preview sends them: the site's own with a script put in, and a few of its own.

The script and its sheet are served by the preview alone, as files, since the site's security
policy holds here as it does for readers.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from html import escape
from pathlib import Path

from edge_api.schema.site_policy import media_type
from site_build.post import Document

PREFIX = "/.preview/"
EVENTS = f"{PREFIX}events"

_SCRIPT, _SHEET = "preview.js", "preview.css"
_FOLDER = Path(__file__).parent / "static"

_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body class="preview-page">
<main>
<h1>{title}</h1>
{paragraphs}
</main>
</body>
</html>
"""
_LINK = re.compile(r"<a\b[^>]*?\shref=\"/(?P<address>[^\"#?]*)[^\"]*\"[^>]*>.*?</a>", re.DOTALL)
_BODY = re.compile(r"<body\b[^>]*>")
_HEADING = re.compile(r"<h1\b.*?</h1>", re.DOTALL)


def read_files() -> Mapping[str, tuple[str, bytes]]:
    """Return what the preview serves besides the site: media type and bytes by path."""
    return {
        f"{PREFIX}{name}": (media_type(name), (_FOLDER / name).read_bytes())
        for name in (_SCRIPT, _SHEET)
    }


def equip(html: str, version: str) -> str:
    """Return a page that loads itself again when the site has another version than this one."""
    sheet = f'<link rel="stylesheet" href="{PREFIX}{_SHEET}">\n'
    script = f'<script src="{PREFIX}{_SCRIPT}" data-version="{version}" defer></script>\n'
    head, opening, rest = html.partition("</head>")
    if not opening:
        return f"{html}\n{sheet}{script}"
    return f"{head}{sheet}{script}{opening}{rest}"


def draw_page(title: str, *sentences: str) -> str:
    """Return a page of the preview's own."""
    paragraphs = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return _FRAME.format(title=escape(title), paragraphs=paragraphs)


def name_hidden(documents: Iterable[Document], now: datetime) -> dict[str, str]:
    """Return what to write on each document that is not public at `now` (UTC), by its address."""
    return {each.address: _word(each) for each in documents if not each.is_public_at(now)}


def mark_page(html: str, address: str, hidden: Mapping[str, str]) -> str:
    """Return the page at `address` with a mark on its heading and behind links to what is hidden.

    The theme knows nothing of it, so no build can ever carry such a mark. `hidden` says what to
    write, by address.
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
