"""The blocks of a text as GitHub reads them, written in the form that Python-Markdown reads.

markdown-it-py reads them (CommonMark 0.31.2, with GitHub's tables), and each is written anew with
four blanks a level and a blank line around it; what stands within lines is left to Python-Markdown.
The same reading says which elements GitHub makes, and where.
"""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import table
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from site_build.markup.structure import (
    Fault,
    Mark,
    count_struck,
    find_elements,
    find_foreign,
    find_lost_blocks,
)
from site_build.text import shorten

APART: Final = "<!--apart-->"
"""Keeps two lists or quotes apart that Python-Markdown would make one of."""
DEEPEST: Final = 60
"""Levels of nesting, of which a list takes two."""
_INDENT: Final = "    "
_QUOTE: Final = re.compile("^ {0,3}> ?")
_ITEM: Final = re.compile(r" *([-+*]|\d{1,9}[.)])( *)")
_TERM: Final = re.compile(r" {0,3}[:~]( *)")
_NOTE: Final = re.compile(r" *(\[\^[^\]]+\]:) *")
_ALERT: Final = re.compile(r"\[!(note|tip|important|warning|caution)\] *$", re.IGNORECASE)
_MARKDOWN_INSIDE: Final = re.compile(r"<[A-Za-z][^<>]*\smarkdown(?=[\s=>])")
"""Says that Markdown stands within an element, which Python-Markdown alone reads so."""
_SIGNS: Final = ("~", "<", "==", "[[", "{{", "{%")
"""Of which a text holds one if something in it counts as structure, or is for other programs."""
_NUMBERED: Final = re.compile(r"( *\d+)(?=\. )")
_MARKS: Final = re.compile("[\U000f0000-\U0010fffd]")
"""Those of a check, which tell where each part was written."""
_LITERAL: Final = re.compile(
    r"<(?P<end>/?)(?:code|pre|kbd|samp|tt|script|style|textarea|svg|math)\b", re.IGNORECASE
)
"""Elements whose content is shown as it is, or not as prose."""


class Reading(NamedTuple):
    """What one text says, block by block."""

    lines: list[str]
    """The text for Python-Markdown."""
    marks: list[Mark] | None
    """The elements that GitHub makes, in their order; None where it has no counterpart."""
    faults: list[Fault]


class Makers(NamedTuple):
    """Who makes what Python-Markdown takes as it is; each returns what stands for it in a line."""

    html: Callable[[str], str]
    code: Callable[[str, str], str]
    """Takes what the fence's first line says, and the code."""
    formula: Callable[[str], str]
    """Takes a formula that has a line of its own."""


class TooDeepError(Exception):
    """Blocks are nested more deeply than anybody reads: `line` says where, from 0."""

    def __init__(self, line: int) -> None:
        super().__init__("lists or quotes are nested too deeply")
        self.line = line


class BlockReader:
    """Reads texts with markdown-it-py; make one and use it for many."""

    def __init__(self) -> None:
        self._blocks = MarkdownIt("commonmark", {"maxNesting": DEEPEST + 10})
        # GitHub looks for a table where no other block begins; the library by itself does so first.
        self._blocks.block.ruler.before("lheading", "table", table, {"alt": ["paragraph"]})
        for plugin in (footnote_plugin, deflist_plugin, admon_plugin):
            self._blocks.use(plugin)
        self._blocks.use(dollarmath_plugin, allow_labels=False, allow_blank_lines=False)
        self._blocks.core.ruler.enableOnly(["normalize", "block"])
        self._inline = MarkdownIt("commonmark")
        self._inline.use(dollarmath_plugin, allow_labels=False, allow_digits=False)
        self._inline.inline.ruler.enableOnly(
            ["text", "escape", "backticks", "link", "autolink", "html_inline", "math_inline"]
        )
        self._inline.core.ruler.disable("text_join")  # it takes what is escaped for prose

    def read(self, lines: list[str], makers: Makers) -> Reading:
        """Return the blocks of a text without tabs; raises TooDeepError."""
        self._names: dict[str, object] = {}
        tokens = self._blocks.parse("\n".join(lines), self._names)
        for token in tokens:
            if token.level > DEEPEST:
                raise TooDeepError(token.map[0] if token.map else 0)
        return _Walk(lines, tokens, makers, self._read_inline).read()

    def _read_inline(self, text: str) -> tuple[list[str], str]:
        """Return the elements within lines that count as structure, and what is prose.

        In that a `*` stands for anything else, such as code, a tag, a formula or an escaped sign.
        """
        elements: list[str] = []
        prose = shown = ""
        is_literal = False
        for token in self._inline.parseInline(text, self._names)[0].children or ():
            if token.type == "html_inline":
                elements += find_elements(token.content)
                if tag := _LITERAL.match(token.content):
                    is_literal = not tag["end"]
            piece = (token.content or "\n") if token.type in {"text", "softbreak"} else "*"
            prose += piece
            is_shortcode = token.type == "html_inline" and shown.endswith("{{")
            shown += token.content if is_shortcode else "*" if is_literal else piece
        return elements + ["del"] * count_struck(prose), shown


class _Walk:
    """One walk over the tokens of a text, which writes its blocks from the inside out.

    `_lines` are those of the text; each container takes its own signs off their beginnings, so that
    what is within it finds them as if it stood alone.
    """

    def __init__(
        self,
        lines: list[str],
        tokens: list[Token],
        makers: Makers,
        read_inline: Callable[[str], tuple[list[str], str]],
    ) -> None:
        self._source = lines
        self._lines = list(lines)
        self._tokens = tokens
        self._makers = makers
        self._read_inline = read_inline
        self._at = 0
        self._depth = 0
        """Lists around what comes next."""
        self._is_note = False
        """Footnotes go to the end of a page, where nobody compares them."""
        self._keeps_html = any(
            _MARKDOWN_INSIDE.search(token.content) for token in tokens if token.type == "html_block"
        )
        self._writers: dict[str, Callable[[Token, int, int], list[str]]] = {
            "paragraph_open": self._write_paragraph,
            "heading_open": self._write_heading,
            "bullet_list_open": self._write_list,
            "ordered_list_open": self._write_list,
            "blockquote_open": self._write_quote,
            "table_open": self._write_table,
            "admonition_open": self._write_admonition,
            "footnote_reference_open": self._write_footnote,
            "dl_open": self._write_terms,
        }
        self._marks: list[Mark] = []
        self._faults: list[Fault] = []

    def read(self) -> Reading:
        """Return what the text says."""
        lines = self._write_blocks(0, len(self._lines))
        return Reading(lines, None if self._keeps_html else self._marks, self._faults)

    def _write_blocks(self, start: int, end: int, *, tight: bool = False) -> list[str]:
        """Return the blocks up to the end of the container that is open, and go beyond that."""
        written: list[str] = []
        last = ""
        while self._at < len(self._tokens) and self._tokens[self._at].nesting >= 0:
            token = self._tokens[self._at]
            self._at += 1
            begin, after = token.map or (start, start)
            self._keep(written, start, begin)
            start = max(start, after)
            block = self._writers.get(token.type, self._write_leaf)(token, begin, after)
            if not block:
                continue
            kind = token.type
            if written and kind == last and kind in _MERGED:
                written += ["", self._makers.html(APART), ""]
            elif written and not (tight and last == "paragraph_open" and kind in _TIGHT):
                written.append("")
            written += block
            last = kind
        self._keep(written, start, end)
        self._at += 1
        return written

    def _keep(self, written: list[str], start: int, end: int) -> None:
        """Keep lines that no token has: definitions of links."""
        if lines := [line for line in self._lines[start:end] if line.strip()]:
            written += ["", *lines] if written else lines

    def _write_leaf(self, token: Token, start: int, end: int) -> list[str]:
        """Return code, HTML, a formula or a rule: what is no Markdown inside."""
        content = token.content.rstrip("\n")
        if token.type == "math_block" or (token.type == "fence" and token.info.strip() == "math"):
            return [self._makers.formula(content.strip())]
        if token.type == "html_block":
            self._mark(start, *find_elements(content))
            self._faults += find_foreign(self._read_inline(content)[1], start)
            return content.split("\n") if self._keeps_html else [self._makers.html(content)]
        if token.type == "hr":
            return ["---"]
        self._mark(start, "pre")
        if token.type == "code_block":
            return _indent(self._read_code(content, start, end))
        fence = re.escape(token.markup)
        last = self._lines[end - 1].strip() if end - 1 > start else ""
        cases = {
            f"this code block is never closed; add {shorten(token.markup, 20)} below it": (
                not re.fullmatch(f"{fence}[{fence[-1]}]*", last)
            ),
            "GitHub draws this diagram, and here it is shown as code; "
            "show a picture of it, or call the block `text`": token.info.split()[:1] == ["mermaid"],
        }
        self._faults += [Fault(start, message) for message, holds in cases.items() if holds]
        return [self._makers.code(token.info.strip(), token.content)]

    def _mark(self, line: int, *elements: str) -> None:
        self._marks += [Mark(each, line) for each in elements if not self._is_note]

    def _take_text(self, line: int) -> str:
        """Return what is within the block that is open, and go beyond its end."""
        text = self._tokens[self._at].content
        self._at += 2
        if any(sign in text for sign in _SIGNS):
            elements, prose = self._read_inline(text)
            self._mark(line, *elements)
            self._faults += find_foreign(prose, line)
        return text

    def _write_paragraph(self, _token: Token, start: int, end: int) -> list[str]:
        self._take_text(start)
        lines = self._lines[start:end]
        self._faults += find_lost_blocks([_MARKS.sub("", line).strip() for line in lines], start)
        lines[0] = lines[0].lstrip(" ")
        for number, line in enumerate(lines):
            if line.lstrip(" ").startswith("#"):  # Python-Markdown needs no blank for a heading
                lines[number] = f"\\{line.lstrip(' ')}"
            elif number:  # and takes any number for the beginning of a list
                lines[number] = _NUMBERED.sub(r"\1\\", line)
        return lines

    def _read_code(self, content: str, start: int, end: int) -> list[str]:
        """Return indented code, without more blanks than Python-Markdown's own form has.

        That wants four for each list around it, where GitHub counts those of the signs.
        """
        width = len(_INDENT) * (self._depth + 1)
        lines = [line.rstrip() for line in self._source[start:end]]
        if self._depth and all(not line[:width].strip() for line in lines):
            return [line[width:] for line in lines]
        return content.split("\n")

    def _write_heading(self, token: Token, start: int, _end: int) -> list[str]:
        text = self._take_text(start).replace("\n", " ")
        # Python-Markdown takes any number of signs at the end for the heading's own.
        text = re.sub("#+$", lambda found: "\\#" * len(found[0]), text)
        return [f"{'#' * int(token.tag[1])} {text}"]

    def _write_list(self, token: Token, first: int, _end: int) -> list[str]:
        self._mark(first, token.tag)
        is_loose = self._is_loose(token.level + 2)
        written: list[str] = []
        while (item := self._tokens[self._at]).type == "list_item_open":
            self._at += 1
            start, end = item.map or (0, 0)
            self._mark(start, "li")
            sign = self._strip(_ITEM, start, end) or "1."
            is_task = re.match(r"\[[ xX]\]\s", self._lines[start])
            if is_task and self._tokens[self._at].type == "paragraph_open":
                self._mark(start, "input")
            self._depth += 1
            body = self._write_blocks(start, end, tight=not is_loose)
            self._depth -= 1
            if not body or body[0].startswith(_INDENT):
                body = [self._makers.html(""), "", *body] if body else [self._makers.html("")]
            if written and (is_loose or written[-1].startswith(_INDENT * 2)):
                written.append("")
            mark = f"{sign[:-1]}. " if token.type == "ordered_list_open" else "- "
            written += [mark + body[0], *_indent(body[1:])]
        self._at += 1
        return written

    def _is_loose(self, level: int) -> bool:
        """Return whether blank lines stand in the list whose items' blocks have a level."""
        inside = takewhile(lambda token: token.level >= level - 1, self._tokens[self._at :])
        return any(
            token.level == level and token.type == "paragraph_open" and not token.hidden
            for token in inside
        )

    def _strip(self, sign: re.Pattern[str], start: int, end: int) -> str:
        """Take a sign off the first of some lines, and as many blanks off the others.

        Returns the sign, which is the pattern's first group where that is no row of blanks.
        """
        found = sign.match(self._lines[start])
        if found is None:
            return ""
        line, blanks = self._lines[start], found[found.lastindex or 0]
        is_code = len(blanks) > len(_INDENT) or found.end() == len(line)
        width = found.end() - len(blanks) + 1 if is_code else found.end()
        self._lines[start] = line[width:]
        self._dedent(width, start + 1, end)
        return found[1]

    def _dedent(self, width: int, start: int, end: int) -> None:
        blanks = re.compile(f"^ {{0,{width}}}")
        self._lines[start:end] = [blanks.sub("", line) for line in self._lines[start:end]]

    def _write_quote(self, _token: Token, start: int, end: int) -> list[str]:
        self._lines[start:end] = [_QUOTE.sub("", line) for line in self._lines[start:end]]
        if alert := _ALERT.match(self._lines[start].strip()):
            return self._write_alert(alert[1].lower(), start, end)
        self._mark(start, "blockquote")
        body = self._write_blocks(start, end)
        return [f"> {line}" if line else ">" for line in body] or [f"> {self._makers.html('')}"]

    def _write_alert(self, kind: str, start: int, end: int) -> list[str]:
        """Return an alert of GitHub's as an admonition, which it is."""
        self._lines[start] = ""
        opening, text = self._tokens[self._at : self._at + 2]
        text.content = text.content.partition("\n")[2]
        if text.content and opening.map:
            opening.map[0] += 1
        else:
            self._at += 3
        body = self._write_blocks(start, end)
        return [f"!!! {kind}", *_indent(body)]

    def _write_admonition(self, token: Token, start: int, end: int) -> list[str]:
        title = self._lines[start].strip()
        self._dedent(len(_INDENT), start + 1, end)
        if self._tokens[self._at].type == "admonition_title_open":
            self._at += 3
        body = self._write_blocks(start + 1, end)
        if token.markup.startswith("?"):  # Python-Markdown has none that fold
            title = f"!!!{title.lstrip('?+')}"
        return [title, *_indent(body)]

    def _write_footnote(self, _token: Token, start: int, end: int) -> list[str]:
        outer, self._is_note = self._is_note, True
        found = _NOTE.match(self._lines[start])
        sign = found[1] if found else ""
        self._lines[start] = self._lines[start][found.end() if found else 0 :]
        self._dedent(len(_INDENT), start + 1, end)
        body = self._write_blocks(start, end)
        self._is_note = outer
        return [f"{sign} {body[0] if body else ''}", *_indent(body[1:])]

    def _write_terms(self, _token: Token, first: int, _end: int) -> list[str]:
        written: list[str] = []
        while (token := self._tokens[self._at]).nesting > 0:
            self._at += 1
            if token.type == "dt_open":
                written += ["", *self._take_text(first).split("\n")]
                continue
            start = (self._tokens[self._at].map or [first])[0]
            end = (token.map or [0, start])[1]
            self._strip(_TERM, start, end)
            if not self._lines[start - 1].strip():
                written.append("")
            body = self._write_blocks(start, end)
            written += [f":   {body[0] if body else ''}", *_indent(body[1:])]
        self._at += 1
        return written

    def _write_table(self, _token: Token, start: int, end: int) -> list[str]:
        self._mark(start, "table")
        while self._tokens[self._at].type != "table_close":
            if self._tokens[self._at].type == "inline":
                self._take_text(start)
            else:
                self._at += 1
        self._at += 1
        return [line for line in self._lines[start:end] if line.strip()]


_MERGED: Final = {"bullet_list_open", "ordered_list_open", "blockquote_open"}
"""Blocks that Python-Markdown makes one of when two of a kind follow each other."""
_TIGHT: Final = {"bullet_list_open", "ordered_list_open", "fence", "html_block", "math_block"}
"""Blocks that may follow a text in a list without blank lines, and leave it one."""


def _indent(lines: list[str]) -> list[str]:
    return [f"{_INDENT}{line}" if line else "" for line in lines]
