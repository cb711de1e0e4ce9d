"""Syntax highlighting, shared by the site and the edge."""

from collections.abc import Iterable
from typing import Any, Final

from pygments.formatters.html import HtmlFormatter
from pygments.token import Name, Operator, Punctuation, Text, Whitespace

_PLAIN: Final = frozenset({Name, Name.Other, Operator, Punctuation, Punctuation.Marker, Whitespace})


class CodeFormatter(HtmlFormatter[str]):
    """Pygments' HTML formatter without elements around tokens that are shown as plain text.

    Four of five tokens are such, and their elements would only slow down layout.
    """

    def format(self, tokensource: Iterable[tuple[Any, str]], outfile: Any) -> None:
        """Write tokens as HTML; those without a colour of their own as text."""
        plain = ((Text if kind in _PLAIN else kind, text) for kind, text in tokensource)
        super().format(plain, outfile)
