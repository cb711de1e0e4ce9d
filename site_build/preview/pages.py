"""Pages as the preview sends them: the site's own with a script put in, and a few of its own.

The script and its sheet are served by the preview alone, as files, since the site's security
policy holds here as it does for readers.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from edge_api.schema.media_types import media_type

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
