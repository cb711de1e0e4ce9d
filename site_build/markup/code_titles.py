"""File names above code: a fence that says `title="app.py"` becomes a figure with a caption.

Python-Markdown knows fences and Pygments colours them. Here a title is only taken from the line
that opens a fence, and put above what they make of the rest.
"""

import re
from html import escape
from typing import Final

from markdown.extensions.attr_list import get_attrs_and_remainder
from markdown.preprocessors import Preprocessor

_OPTION: Final = r"""(?:title|hl_lines)=(?:"[^"\n]*"|'[^'\n]*') *"""
# As Python-Markdown has it, with the title besides: a fence shown within another is left alone.
_BLOCK: Final = re.compile(
    rf"^(?P<fence>`{{3,}}+|~{{3,}}+) *(?P<opening>\{{[^\n]*\}}|\.?[\w#.+-]* *(?:{_OPTION})*)\n"
    r"(?P<code>(?:[^\n]*\n)*?)(?P=fence) *$",
    re.MULTILINE,
)
_TITLE: Final = re.compile(r"""(?<!\S)title=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)') *""")


class CodeTitles(Preprocessor):
    """Goes right before the step for fences, and turns those with a title into raw HTML."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines with a placeholder for each titled block."""
        text = "\n".join(lines)
        return _BLOCK.sub(self._frame, text).split("\n") if "title" in text else lines

    def _frame(self, block: re.Match[str]) -> str:
        """Return the block as it is, or what stands for its figure."""
        title, opening = _part(block["opening"])
        plain = f"{block['fence']} {opening}\n{block['code']}{block['fence']}"
        if not title:
            return block[0] if opening == block["opening"] else plain
        stash = self.md.htmlStash.rawHtmlBlocks
        before = len(stash)
        placeholder = self.md.preprocessors["fenced_code_block"].run(plain.split("\n"))
        if len(stash) == before:
            return block[0]
        caption = f"<figcaption>{escape(title, quote=False)}</figcaption>"
        stash[-1] = f'<figure class="code">{caption}{str(stash[-1]).rstrip()}</figure>'
        return "\n".join(placeholder)


def _part(opening: str) -> tuple[str, str]:
    """Return the title in the line that opens a fence, and that line as the next step takes it."""
    if opening.startswith("{"):
        attributes, _ = get_attrs_and_remainder(opening[1:-1])
        return " ".join((dict(attributes).get("title") or "").split()), opening
    titles = [found["double"] or found["single"] or "" for found in _TITLE.finditer(opening)]
    return " ".join("".join(titles[-1:]).split()), _TITLE.sub("", opening)
