"""Finds faults, which an author has to fix, in the tokens of a text's blocks.

They are Markdown that GitHub shows differently, and Markdown that is shown as it was typed: wiki
links, `==highlights==` and tags of template languages, which other programs would replace, and
lines that lack a character of a heading or a table.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from site_build.markup.blocks import ParsedBlocks
from site_build.text import shorten

_MARKS: Final = re.compile("[\U000f0000-\U0010fffd]")
"""Characters that `checks/raw_markup.py` inserts, so that each part of a text can be located."""
_LITERAL: Final = re.compile(
    r"<(?P<end>/?)(?:code|pre|kbd|samp|tt|script|style|textarea|svg|math)\b", re.IGNORECASE
)
"""Elements whose content is no prose, such as code, scripts and formulas."""


class Fault(NamedTuple):
    """Something that an author has to fix."""

    line: int
    """The line of the text, from 0."""
    message: str
    excerpt: str = ""
    """The faulty text, or its beginning; empty: the whole line."""


class FaultFinder:
    """Finds faults in the tokens of markdown-it-py; one finder serves many texts."""

    def __init__(self) -> None:
        self._inline = MarkdownIt("commonmark")
        self._inline.use(dollarmath_plugin, allow_labels=False, allow_digits=False)
        self._inline.inline.ruler.enableOnly(
            ["text", "escape", "backticks", "link", "autolink", "html_inline", "math_inline"]
        )
        self._inline.core.ruler.disable("text_join")  # it would make escaped characters prose

    def find(self, parsed: ParsedBlocks) -> Iterator[Fault]:
        """Yield the faults of one text."""
        for before, token in pairwise([Token("", "", 0), *parsed.tokens]):
            start, end = token.map or (0, 0)
            if token.type == "fence":
                yield from _examine_fence(token, start, end)
            # A text without any of these characters has no fault within its lines.
            if token.type in {"inline", "html_block"} and any(
                sign in token.content for sign in ("~", "<", "==", "[[", "{{", "{%")
            ):
                prose = self._extract_prose(token.content, parsed.definitions)
                yield from _find_foreign_syntax(prose, start)
                yield from _find_strikethrough(prose, start)
            if before.type == "paragraph_open":
                lines = [line.strip() for line in _MARKS.sub("", token.content).split("\n")]
                yield from _find_failed_blocks(lines, start)

    def _extract_prose(self, text: str, definitions: dict[str, object]) -> str:
        """Return the prose; a `*` replaces code, a tag, a formula or an escaped character."""
        shown = ""
        is_literal = False
        for token in self._inline.parseInline(text, definitions)[0].children or ():
            if token.type == "html_inline" and (tag := _LITERAL.match(token.content)):
                is_literal = not tag["end"]
            piece = (token.content or "\n") if token.type in {"text", "softbreak"} else "*"
            is_shortcode = token.type == "html_inline" and shown.endswith("{{")
            shown += token.content if is_shortcode else "*" if is_literal else piece
        return shown


def _examine_fence(token: Token, start: int, end: int) -> Iterator[Fault]:
    # A closed block has two lines more than its code.
    if end - start - 2 != token.content.count("\n"):
        yield Fault(
            start, f"this code block is never closed; add {shorten(token.markup, 20)} below it"
        )
    if token.info.split()[:1] == ["mermaid"]:
        yield Fault(
            start,
            "GitHub draws this diagram, and here it is shown as code; "
            "show a picture of it, or call the block `text`",
        )


def _find_strikethrough(prose: str, line: int) -> Iterator[Fault]:
    """Yield texts that one tilde on each side strikes through on GitHub (GFM 0.29, section 6.5)."""
    opened: dict[str, int] = {}
    for tildes in re.finditer(r"(?<!~)~~?(?!~)", prose):
        start, end, sign = tildes.start(), tildes.end(), tildes[0]
        before, after = prose[max(0, start - 1) : start], prose[end : end + 1]
        if sign in opened and _is_flanking(before, after):
            if sign == "~":
                yield Fault(
                    line + prose.count("\n", 0, opened[sign]),
                    "this is text that is struck through on GitHub and not here; "
                    "write two tildes on each side of it",
                )
            opened.clear()
        elif _is_flanking(after, before):
            opened[sign] = start


def _is_flanking(inner: str, outer: str) -> bool:
    """Return whether a delimiter between two characters may enclose text on the `inner` side."""
    return bool(inner) and not inner.isspace() and (inner.isalnum() or not outer.isalnum())


_FOREIGN_SYNTAX = re.compile(
    r"(?<![\w=<>!+*/-])(?P<mark>==[^\s=>](?:[^=\n]*[^\s=])?==)(?![\w=])"
    r"|(?<!\w)(?P<wiki>!?\[\[[^\W\d_](?:[^\[\]\n]*[^\s\[\]])?\]\])(?![\[(])"
    r"|(?P<tag>(?:(?<!\$)\{\{(?![%<]?\s*(?:/|end\b))(?:[^{}]|\}(?!\}))+\}\}"
    r"|\{%(?!-?\s*(?:/|end))[^%{}]+%\})+)"
)
"""A highlight, a wiki link, or tags of a template language except closing ones."""
_FIXES = {
    "mark": "write `<mark>` and `</mark>`",
    "wiki": "write `[words](other-post.md)`, for a picture `![what it shows](../images/file.png)`",
    "tag": "this site fills in no tags of other programs; write what it stands for, or put it "
    "between backticks",
}
_NO_TABLE = "this is no table, but shown as typed"
_FAILED_HEADING = re.compile(r"(#{2,6}(?=[\w*`\"(\[])|#(?=[^\W\d_][^#]*$)).*")
_TABLE_ROW = re.compile(r"\|.*[^\\|\s].*(?<!\\)\|")
_DELIMITER_ROW = re.compile(r"(?=[^|]*\|)\|? *:?-+:? *(?:\| *:?-+:? *)*\|?")


def _find_foreign_syntax(prose: str, line: int) -> Iterator[Fault]:
    """Yield syntax of other programs in the prose of a block that begins on `line`."""
    for found in _FOREIGN_SYNTAX.finditer(prose):
        typed = shorten(" ".join(found[0].split()))
        yield Fault(
            line + prose.count("\n", 0, found.start()),
            f"`{typed}` stays as it was typed; {_FIXES[found.lastgroup or '']}",
            re.split(r"[*\n]", found[0], maxsplit=1)[0],
        )


def _find_failed_blocks(lines: Sequence[str], start: int) -> Iterator[Fault]:
    """Yield failed headings and tables in the lines of a paragraph that begins at `start`.

    Only the first fault of a table is reported.
    """
    for number, line in enumerate(lines, start):
        heading = _FAILED_HEADING.fullmatch(line)
        if heading and (len(heading[1]) > 1 or len(lines) == 1):
            fix = f"write a blank behind `{heading[1]}`, or `\\#` for a mere sign"
            yield Fault(number, f"`{shorten(line)}` is no heading, but shown as typed; {fix}", line)
    for number, (above, line) in enumerate(zip(["", *lines], [*lines, ""], strict=True), start):
        columns = len(escapedSplit(re.sub(r"^\||(?<!\\)\|$", "", above)))
        fix = f"write `|{'---|' * columns}`" if above else "write one there"
        if _DELIMITER_ROW.fullmatch(line):
            what = "not as many columns as the row" if above else "no row of headings"
            yield Fault(number, f"{_NO_TABLE}: this line has {what} right above it; {fix}", line)
            return
        if (
            columns > 1
            and _TABLE_ROW.fullmatch(above)
            and (_TABLE_ROW.fullmatch(line) or len(lines) == 1)
        ):
            what = f"no line of hyphens is below the first row; {fix} there"
            yield Fault(number - 1, f"{_NO_TABLE}: {what}", above)
            return
