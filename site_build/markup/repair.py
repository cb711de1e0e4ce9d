"""Repairs HTML that would not stay within its page, and leaves other HTML as it is.

Authors may write HTML, and an element without its end, or an end without its element, changes how
a browser reads the rest of the page. Whether HTML is contained is decided by a parser of HTML5.
"""

import re
from functools import cache
from html import escape
from typing import Final

from selectolax.lexbor import LexborHTMLParser

_PARENTS: Final = ("main", "article", "section", "aside", "header", "footer", "nav", "figure")
"""Elements that themes put texts into, and that a stray end tag could close."""
_OPENING: Final = "".join(f"<{name}>" for name in _PARENTS)
_INSIDE, _BELOW = "repair-inside", "repair-below"
_END: Final = f"<section id={_INSIDE}></section><i id={_INSIDE}></i></div><b id={_BELOW}></b>"
"""What follows a text, without quotes and comments, so that it ends none of the text's own. Open
formatting goes on in the `<i>`, and any other open element holds the `<section>`."""
_OF_PAGES: Final = re.compile(r"</?(?:html|head|body|frameset|plaintext)\b", re.IGNORECASE)
"""Tags that a parser applies to the whole page."""
_BEGINNING: Final = re.compile(
    r"<(?P<raw>!--|(?:script|style|textarea|title|iframe|noembed|noframes|noscript|xmp|plaintext)"
    r"(?=[\s/>]))|<(?P<torn>/?[a-z])(?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+(?P<end>>?)",
    re.IGNORECASE,
)
"""What reads everything up to its end as letters, or a tag, which may lack its `>`."""
_ATTEMPTS: Final = 3


def repair(html: str) -> str:
    """Return HTML that stays within its page: the same where it does already.

    Elements are closed, ends without elements are removed, and the beginnings of comments,
    scripts and the like that would hide the rest of the text become letters.
    """
    if "<" not in html or _is_contained(html):
        return html
    repaired = _escape_unterminated(html)
    for _ in range(_ATTEMPTS):
        repaired = LexborHTMLParser(repaired, is_fragment=True).html or ""
        if _is_contained(repaired):
            return repaired
    return escape(html)


def _is_contained(html: str) -> bool:
    if _OF_PAGES.search(html):
        return False
    page = LexborHTMLParser(f"{_OPENING}<div id={_INSIDE}>{html}{_END}")
    found = page.css(f"#{_INSIDE},#{_BELOW}")
    if [node.tag for node in found] != ["div", "section", "i", "b"]:
        return False
    text, block, run, below = found
    return block.parent == run.parent == text and below.parent == text.parent


def _escape_unterminated(html: str) -> str:
    """Escape the `<` of comments, raw text elements and tags that have no end."""
    lower = html.lower()
    find_last = cache(lower.rfind)

    def show(found: re.Match[str]) -> str:
        raw = (found["raw"] or "").lower()
        end = "-->" if raw == "!--" else f"</{raw}"
        has_end = raw != "plaintext" and find_last(end) >= found.end() if raw else found["end"]
        return found[0] if has_end else found[0].replace("<", "&lt;")

    return _BEGINNING.sub(show, html)
