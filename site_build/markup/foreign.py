"""What was typed for other programs, or lacks a sign, and is therefore shown as it was typed.

Wiki links, marked words and tags of template languages, which GitHub shows so as well; and lines
that were to be a heading or a table.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from markdown_it.rules_block.table import escapedSplit

from site_build.markup.structure import Fault
from site_build.text import shorten

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


def find_foreign(
    text: str, read_inline: Callable[[str], tuple[list[str], str]], line: int
) -> Iterator[Fault]:
    """Yield what is meant for other programs in the text of a block that begins on `line`.

    `read_inline` returns the text's prose as its second value.
    """
    prose = read_inline(text)[1] if any(s in text for s in ("==", "[[", "{{", "{%")) else ""
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
