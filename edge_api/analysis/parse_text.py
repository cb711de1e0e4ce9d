"""Plain text and Markdown into documents.

Paragraphs of plain text stand between empty lines. Markdown is CommonMark with tables, and is read
by way of its HTML.
"""

import re
from dataclasses import replace
from typing import Final

from markdown_it import MarkdownIt

from edge_api.analysis.document import Block, Document
from edge_api.analysis.parse_html import parse_html

_GAP: Final = re.compile(r"\n[^\S\n]*(?=\n)")
"""The end of a line behind which an empty one follows. One line at a time, so that a text of line
feeds takes no longer than another."""
_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\r?\n(?:(?!---).*\r?\n)*?---[ \t]*(?:\r?\n|\Z)")
"""Facts about a text, which most generators of sites take from its head."""
_TITLE: Final = re.compile(r"^title[ \t]*:[ \t]*(\S.*?)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
OPEN_MOST: Final = 200
"""Brackets that nothing closes; a text of people has a few."""
DEPTH_MOST: Final = 32
"""Brackets inside each other."""
_SIGN: Final = re.compile(r"\\[^\n]|[\[\]\n]")
"""A bracket, the end of a line, or a backslash with what it makes plain."""


def parse_text(text: str) -> Document:
    """Return the document that plain text is."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    paragraphs = (" ".join(part.split()) for part in _GAP.split(lines))
    blocks = tuple(Block("paragraph", part) for part in paragraphs if part)
    return Document("text", None, blocks, reading=text)


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


def limit_brackets(markdown: str) -> str:
    """Return Markdown in which few brackets are looked for in vain.

    For each bracket that opens, a parser looks for the one that closes it, up to the end of the
    paragraph. Those that none closes are text anyway; a backslash before them says so at once.
    """
    lost = _lost(markdown)
    if len(lost) <= OPEN_MOST:
        return markdown
    starts, ends = [0, *lost], [*lost, len(markdown)]
    return "\\".join(markdown[start:end] for start, end in zip(starts, ends, strict=True))


def _lost(markdown: str) -> list[int]:
    """Return where brackets open that nothing closes on their line, or that lie too deep."""
    lost: list[int] = []
    pending: list[int] = []
    for found in _SIGN.finditer(markdown):
        if found[0] == "[":
            (lost if len(pending) == DEPTH_MOST else pending).append(found.start())
        elif found[0] == "]" and pending:
            pending.pop()
        elif found[0] == "\n":
            lost += pending
            pending = []
    return sorted(lost + pending)
