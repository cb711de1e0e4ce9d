"""The words of a post without its markup, as search looks through them and shows them."""

import re
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

_BLOCKS: Final = "p|h[1-6]|li|ul|ol|d[dltv]|t[dhr]|table|pre|blockquote|div|fig\\w*|caption|summary"
_BREAK: Final = re.compile(rf"<(?=/?(?:{_BLOCKS}|[bh]r|details|aside|section)\b)")
"""Where a word ends though nothing stands between it and the next one."""


class PlainText(NamedTuple):
    """Two texts with single spaces."""

    prose: str
    """With captions, tables, and code that stands within a sentence."""
    code: str
    """Blocks of code."""


def plain_text(html: str) -> PlainText:
    """Return the text of HTML."""
    body = LexborHTMLParser(_BREAK.sub(" <", html)).body
    if body is None:
        return PlainText("", "")
    blocks = body.css("pre")
    code = _squeeze(" ".join(block.text() for block in blocks))
    for block in blocks:
        block.decompose()
    return PlainText(_squeeze(body.text()), code)


def _squeeze(text: str) -> str:
    return " ".join(text.split())
