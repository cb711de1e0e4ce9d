"""A text as its reader will see it: one converter for each process, and the page as a tree."""

from dataclasses import replace
from functools import cache

from selectolax.lexbor import LexborHTMLParser

from site_build.markup.convert import Conversion, Converter
from site_build.post import Document


def convert(document: Document, markdown: str, site_url: str = "") -> Conversion:
    """Return the HTML of `document` with `markdown` for its text.

    The site's address decides which links leave the site, which matters to no check. Raises what
    the converter raises.
    """
    try:
        return _converter(site_url).convert(replace(document, markdown=markdown))
    except Exception:
        # Python-Markdown keeps what it was in the midst of, and would mistake the next text.
        _converter.cache_clear()
        raise


def render(document: Document, markdown: str) -> LexborHTMLParser:
    """Return the page of `document` with `markdown` for its text; raises what `convert` raises."""
    return LexborHTMLParser(convert(document, markdown).html)


@cache
def _converter(site_url: str) -> Converter:
    """Return this process's converter."""
    return Converter(site_url)
