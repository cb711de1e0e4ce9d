"""Documents of the largest size that are made to keep a parser busy."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from edge_api.analysis.operations import MAX_BODY

MOST: Final = 100_000
"""Characters, as many as are taken."""


def fill(piece: str) -> str:
    """Return a piece, again and again, up to the largest size."""
    return (piece * (MOST // len(piece) + 1))[:MOST]


_HTML: Final = (
    "<div>",
    "<b>",
    "<p>",
    "<a ",
    "<a href=x>",
    "<!--",
    "<!-- -->",
    "<",
    "</",
    "</div>",
    "&",
    "&amp;",
    "&#35;",
    "<ul><li>",
    "<table>",
    "<table><tr><td>",
    "<svg>",
    "<svg><g>",
    "<math>",
    "<script>",
    "<style>",
    "<template>",
    "<select><option>",
    "<h1>",
    "<button>",
    "<form>",
    "<img>",
    "<p><b>",
    "<b><p>",
    "<a><div>",
    "<table><a>",
    "<frameset>",
    "<ruby><rt>",
    "<![CDATA[",
    "<?",
    '<a b="',
    "<i></b>",
    "<object>",
    "<li><div>",
    "<title>",
    "<noscript>",
)
_MARKDOWN: Final = (
    "[",
    "![",
    "![[",
    "](",
    "[]()",
    "[a](",
    "[](",
    "[](<",
    "[a][b]",
    "[a]: b\n",
    "\\[",
    "[\n",
    "*a ",
    "*a **a ",
    "a*",
    "**x",
    "_a",
    "a_",
    "`",
    "`a``b ",
    "~",
    "***",
    "<",
    "<!--",
    "<a@",
    "> ",
    ">",
    "- ",
    "* ",
    "  - a\n",
    "1. \n",
    "1) a\n   1) ",
    ">>>>a\n",
    "#",
    "# a\n",
    "|",
    "|-",
    "a|b\n-|-\n",
    "a\n",
    "\n",
    "\t",
    "```\n",
    "&",
    "&amp;",
    "<div>",
    "<div>\n\n",
    "\\",
    "http://",
)
_TEXT: Final = (
    "a",
    "a ",
    "a. ",
    ".",
    ". ",
    '."',
    "\n",
    "a\n\n",
    "a's",
    "a-",
    "-",
    "'",
    "1.",
    "://",
    "a://",
    " ",
    "\u3002",
    "\u200b",
    "\u0301",
    "\x00",
    "ab cd ef. ",
    "e.g. ",
)


def _sloping() -> Mapping[str, dict[str, Any]]:
    """Return documents that no single piece makes."""
    half = MOST // 2
    attributes = " ".join(f"a{number}" for number in range(MOST // 7))
    formats = "".join(f"<b a={number:x}>" for number in range(3000))
    items = "".join(f"{'  ' * depth}- a\n" for depth in range(300))
    row = "|" * 300 + "\n"
    words = "".join(f"w{number} " for number in range(MOST // 7))
    return {
        "attributes": {"html": f"<a {attributes}>"[:MOST]},
        "formats": {"html": (formats + "<p>" * MOST)[:MOST]},
        "brackets": {"markdown": "[" * half + "]" * half},
        "images": {"markdown": ("![" * half)[:half] + "]" * half},
        "items": {"markdown": items[:MOST]},
        "table": {"markdown": f"{row}{'|-' * 300}\n{row * 300}"[:MOST]},
        "words": {"text": words[:MOST], "language": "en"},
        "long words": {"text": fill("abcdefghijklmnopqrstuvwxyz" * 2 + " "), "language": "en"},
        "nested json": {"html": f"<script type=application/ld+json>{'[' * (MOST - 40)}"},
    }


def documents() -> Mapping[str, dict[str, Any]]:
    """Return the bodies of requests, by a name for each."""
    pieces = {"html": _HTML, "markdown": _MARKDOWN, "text": _TEXT}
    filled = {
        f"{kind} of {piece!r}": {kind: fill(piece)} for kind in pieces for piece in pieces[kind]
    }
    return {name: _fit(body) for name, body in {**filled, **_sloping()}.items()}


def _fit(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with a document so short that the request is not too large."""
    while len(orjson.dumps(body)) > MAX_BODY:
        body = {kind: text[: len(text) * 9 // 10] for kind, text in body.items()}
    return body
