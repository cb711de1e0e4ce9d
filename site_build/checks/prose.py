"""A text without its code: as long as it was, so that offsets in it hold in the text."""

import re

_FENCED = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)
_SPAN = re.compile(
    r"(?<![`\\])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)", re.DOTALL
)


def blank_code(markdown: str) -> str:
    """Return the text with blanks for what stands in code blocks and between backticks."""
    return _SPAN.sub(_blank, _FENCED.sub(_blank, markdown))


def _blank(code: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", code[0])
