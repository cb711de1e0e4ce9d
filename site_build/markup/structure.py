"""The second reader: what GitHub makes of a text, held against the HTML that was made here.

And what was typed for other programs, or lacks a sign, and is therefore shown as it was typed: wiki
links, marked words and tags of template languages, which GitHub shows so as well; and lines that
were to be a heading or a table.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Final, NamedTuple

from markdown_it.rules_block.table import escapedSplit

from site_build.text import shorten

_ELEMENTS: Final = re.compile(r"<(li|ul|ol|pre|table|blockquote|del|input)\b")
_NOT_COMPARED: Final = re.compile(
    r'<div[^>]* class="footnote".*|<div class="toc".*?</div>'
    r'|<table class="highlighttable".*?</table>',
    re.DOTALL,
)
_TILDES: Final = re.compile(r"(?<!~)~~?(?!~)")
_FINDINGS_MOST: Final = 20
_COMPARED_MOST: Final = 500
"""Elements behind the first difference; to find what belongs together takes their square."""
_NAMES: Final = {
    "li": "an item of a list",
    "ul": "a list",
    "ol": "a numbered list",
    "pre": "a code block",
    "table": "a table",
    "blockquote": "a quote",
    "del": "text that is struck through",
    "input": "a task's box",
}


class Mark(NamedTuple):
    """An element that GitHub makes of a text."""

    element: str
    line: int
    """Of the text, from 0."""


class Fault(NamedTuple):
    """Something that an author has to fix."""

    line: int
    """Of the text, from 0."""
    message: str
    at: str = ""
    """What was written there, or how it begins; empty: the line as a whole."""


def find_elements(html: str) -> list[str]:
    """Return the elements of HTML that count as structure, in their order."""
    return _ELEMENTS.findall(html)


def count_struck(prose: str) -> int:
    """Count what GitHub strikes through: one or two tildes on each side (GFM 0.29, section 6.5)."""
    count = 0
    opened: dict[str, bool] = {}
    for tildes in _TILDES.finditer(prose):
        start, end, sign = tildes.start(), tildes.end(), tildes[0]
        before, after = prose[max(0, start - 1) : start], prose[end : end + 1]
        if opened.get(sign) and _touches(before, after):
            count += 1
            opened.clear()
        elif _touches(after, before):
            opened[sign] = True
    return count


def _touches(inner: str, outer: str) -> bool:
    """Return whether a sign that has `inner` and `outer` beside it belongs to the inner one."""
    return bool(inner) and not inner.isspace() and (inner.isalnum() or not outer.isalnum())


def compare(marks: Sequence[Mark], html: str) -> Iterator[Fault]:
    """Yield each block of which GitHub makes other elements than stand in the HTML of a text."""
    wanted = [mark.element for mark in marks]
    made = find_elements(_NOT_COMPARED.sub("", html))
    if wanted == made:
        return
    same = sum(1 for _ in takewhile(bool, map(eq, wanted, made)))
    last_line = marks[-1].line if marks else 0
    marks, wanted, made = marks[same:], wanted[same:][:_COMPARED_MOST], made[same:][:_COMPARED_MOST]
    told: set[int] = set()
    changes = SequenceMatcher(None, wanted, made, autojunk=False).get_opcodes()
    for change, first, last, begin, end in changes:
        line = marks[min(first, len(marks) - 1)].line if marks else last_line
        if change == "equal" or line in told or len(told) == _FINDINGS_MOST:
            continue
        told.add(line)
        lacking, surplus = wanted[first:last], made[begin:end]
        element = (lacking or surplus)[0]
        where = "on GitHub and not here" if lacking else "here and not on GitHub"
        fix = (
            "write two tildes on each side of it"
            if element == "del"
            else "put a blank line before and after it"
        )
        yield Fault(line, f"this is {_NAMES[element]} {where}; {fix}")


_FOREIGN = re.compile(
    r"(?<![\w=<>!+*/-])(?P<mark>==[^\s=>](?:[^=\n]*[^\s=])?==)(?![\w=])"
    r"|(?<!\w)(?P<wiki>!?\[\[[^\W\d_](?:[^\[\]\n]*[^\s\[\]])?\]\])(?![\[(])"
    r"|(?P<tag>(?:(?<!\$)\{\{(?![%<]?\s*(?:/|end\b))(?:[^{}]|\}(?!\}))+\}\}"
    r"|\{%(?!-?\s*(?:/|end))[^%{}]+%\})+)"
)
"""A marked word, a wiki link, tags of templates; tags that end something are left out."""
_FIXES = {
    "mark": "write `<mark>` and `</mark>`",
    "wiki": "write `[words](other-post.md)`, for a picture `![what it shows](../images/file.png)`",
    "tag": "this site fills in no tags of other programs; write what it stands for, or put it "
    "between backticks",
}
_TABLE = "this is no table, but shown as typed"
_HEADING = re.compile(r"(#{2,6}(?=[\w*`\"(\[])|#(?=[^\W\d_][^#]*$)).*")
_ROW = re.compile(r"\|.*[^\\|\s].*(?<!\\)\|")
_HYPHENS = re.compile(r"(?=[^|]*\|)\|? *:?-+:? *(?:\| *:?-+:? *)*\|?")


def find_foreign(prose: str, line: int) -> Iterator[Fault]:
    """Yield what is meant for other programs in the prose of a block that begins on `line`."""
    for found in _FOREIGN.finditer(prose):
        typed = shorten(" ".join(found[0].split()))
        message = f"`{typed}` stays as it was typed; {_FIXES[found.lastgroup or '']}"
        at = line + prose.count("\n", 0, found.start())
        yield Fault(at, message, re.split(r"[*\n]", found[0], maxsplit=1)[0])


def find_lost_blocks(lines: Sequence[str], start: int) -> Iterator[Fault]:
    """Yield headings and tables that are none, in the lines of a paragraph that begins at `start`.

    Of a table the first fault is enough.
    """
    for number, line in enumerate(lines, start):
        heading = _HEADING.fullmatch(line)
        if heading and (len(heading[1]) > 1 or len(lines) == 1):
            fix = f"write a blank behind `{heading[1]}`, or `\\#` for a mere sign"
            yield Fault(number, f"`{shorten(line)}` is no heading, but shown as typed; {fix}", line)
    for number, (above, line) in enumerate(zip(["", *lines], [*lines, ""], strict=True), start):
        columns = len(escapedSplit(re.sub(r"^\||(?<!\\)\|$", "", above)))
        fix = f"write `|{'---|' * columns}`" if above else "write one there"
        if _HYPHENS.fullmatch(line):
            what = "not as many columns as the row" if above else "no row of headings"
            yield Fault(number, f"{_TABLE}: this line has {what} right above it; {fix}", line)
            return
        if columns > 1 and _ROW.fullmatch(above) and (_ROW.fullmatch(line) or len(lines) == 1):
            what = f"no line of hyphens is below the first row; {fix} there"
            yield Fault(number - 1, f"{_TABLE}: {what}", above)
            return
