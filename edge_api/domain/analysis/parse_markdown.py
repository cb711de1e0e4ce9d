"""Markdown into a document: CommonMark with tables, by way of its HTML."""

import re
from dataclasses import replace
from typing import Final

from markdown_it import MarkdownIt

from edge_api.domain.analysis.brackets import limit_brackets
from edge_api.domain.analysis.document import Document
from edge_api.domain.analysis.parse_html import parse_html

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\r?\n(?:(?!---).*\r?\n)*?---[ \t]*(?:\r?\n|\Z)")
"""Facts about a text, which most generators of sites take from its head."""
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")


def parse_markdown(text: str, url: str | None = None) -> Document:
    """Return the document that Markdown is; `url` is where it stands."""
    body = _FRONT_MATTER.sub("", text, count=1)
    document = parse_html(_MARKDOWN.render(limit_brackets(body)), url)
    return replace(document, kind="markdown", page=None, reading=text)
