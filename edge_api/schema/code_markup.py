"""How code stands in HTML: said once, for the pages of a build and for the edge's own."""

from typing import Any

from pygments.formatters.html import HtmlFormatter
from pygments.token import Name, Operator, Punctuation, Whitespace


class CodeFormatter(HtmlFormatter[str]):
    """Pygments' markup without an element around what is set as plain text.

    That is four elements of five, which browsers would lay out for nothing.
    """

    _PLAIN = frozenset({Name, Name.Other, Operator, Punctuation, Punctuation.Marker, Whitespace})

    def _get_css_class(self, ttype: Any) -> str:
        if ttype in self._PLAIN:
            return ""
        return str(super()._get_css_class(ttype))  # type: ignore[misc]
