"""Keeps HTML from nesting without end, before a parser sees it.

A parser's time grows with the square of the depth. Browsers stop at 512 levels; so does this, in
one pass over the text: a tag that would go deeper is taken out, and what it holds stays.
"""

import re
from collections import Counter
from typing import Final

DEPTH_MOST: Final = 256
"""Elements inside each other. Pages that people made have fewer than 60."""

_TAG: Final = re.compile(r"<(/?)([A-Za-z][^\s/>]*)[^>]*>?")
_FLAT: Final = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr", "html", "head", "body", "p", "li", "dt", "dd", "option"),
        *("optgroup", "tr", "td", "th", "tbody", "thead", "tfoot", "colgroup", "caption"),
        *("rt", "rp"),
    )
)
"""Elements that are empty, or that end where the next of their kind begins (HTML, 13.1.2.4)."""


class _Levels:
    """Counts what is open while the tags of a text go by."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._depth = 0

    def keep(self, tag: re.Match[str]) -> str:
        """Return the tag, or nothing in place of one that would go too deep."""
        name = tag[2].lower()
        if name in _FLAT:
            return tag[0]
        return self._close(name, tag[0]) if tag[1] else self._begin(name, tag[0])

    def _begin(self, name: str, tag: str) -> str:
        if self._depth >= DEPTH_MOST:
            self._dropped[name] += 1
            return ""
        self._open[name] += 1
        self._depth += 1
        return tag

    def _close(self, name: str, tag: str) -> str:
        if self._dropped[name]:
            self._dropped[name] -= 1
            return ""
        if self._open[name]:  # an end tag without a beginning closes nothing
            self._open[name] -= 1
            self._depth -= 1
        return tag


def limit_nesting(html: str) -> str:
    """Return the HTML with at most `DEPTH_MOST` elements inside each other."""
    if html.count("<") <= DEPTH_MOST:
        return html
    return _TAG.sub(_Levels().keep, html)
