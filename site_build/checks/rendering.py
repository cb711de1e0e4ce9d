"""A text as its reader will see it: one converter for each process, and the page as a tree."""

from dataclasses import replace
from functools import cache

from selectolax.lexbor import LexborHTMLParser

from site_build.convert import Converter
from site_build.post import Document


def render(document: Document, markdown: str) -> LexborHTMLParser:
    """Return the page of `document` with `markdown` for its text.

    Raises what the converter raises.
    """
    try:
        html = _converter().convert(replace(document, markdown=markdown)).html
    except Exception:
        # Python-Markdown keeps what it was in the midst of, and would mistake the next text.
        _converter.cache_clear()
        raise
    return LexborHTMLParser(html)


@cache
def _converter() -> Converter:
    """Return this process's converter; the site's address matters to no check."""
    return Converter("")
