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
_TITLE: Final = re.compile(r"^title[ \t]*:[ \t]*(\S.*?)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")


def parse_markdown(text: str, url: str | None = None) -> Document:
    """Return the document that Markdown is; `url` is where it stands."""
    head = _FRONT_MATTER.match(text)
    body = text[head.end() :] if head else text
    document = parse_html(_MARKDOWN.render(limit_brackets(body)), url)
    title = _title(head[0]) if head else None
    return replace(
        document, kind="markdown", title=title or document.title, page=None, reading=text
    )


def _title(head: str) -> str | None:
    """Return the title that stands in one line of front matter, without quotes around it."""
    found = _TITLE.search(head)
    if found is None or found[1] in ("|", ">", "|-", ">-"):
        return None
    quoted = re.fullmatch(r"([\"'])(.*)\1", found[1])
    return (quoted[2] if quoted else found[1]).strip() or None
