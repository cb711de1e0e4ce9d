"""Keeps Markdown from opening brackets without end, before a parser sees it.

For each bracket that opens, a parser looks for the one that closes it, up to the end of the
paragraph. Those that none closes are text anyway; a backslash before them says so at once.
"""

import re
from typing import Final

OPEN_MOST: Final = 200
"""Brackets that nothing closes; a text of people has a few."""
DEPTH_MOST: Final = 32
"""Brackets inside each other."""

_SIGN: Final = re.compile(r"\\[^\n]|[\[\]\n]")
"""A bracket, the end of a line, or a backslash with what it makes plain."""


def limit_brackets(markdown: str) -> str:
    """Return Markdown in which few brackets are looked for in vain."""
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
