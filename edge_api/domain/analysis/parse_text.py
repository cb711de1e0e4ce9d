"""Plain text into a document: paragraphs stand between empty lines."""

import re
from typing import Final

from edge_api.domain.analysis.document import Block, Document

_GAP: Final = re.compile(r"\n[^\S\n]*(?=\n)")
"""The end of a line behind which an empty one follows. One line at a time, so that a text of line
feeds takes no longer than another."""


def parse_text(text: str) -> Document:
    """Return the document that plain text is."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    paragraphs = (" ".join(part.split()) for part in _GAP.split(lines))
    blocks = tuple(Block("paragraph", part) for part in paragraphs if part)
    return Document("text", None, blocks, reading=text)
