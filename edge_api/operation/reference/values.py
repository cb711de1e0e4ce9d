"""What the reference is made of: pages, the operations on them, and texts in two forms.

A text has the Markdown that it is written in, and HTML for the page.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from edge_api.schema.code_markup import CodeFormatter

_FORMATTER: Final = CodeFormatter(nowrap=True)
_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Code:
    """A block of code in `language`, as a fence of Markdown names it."""

    language: str
    text: str

    @property
    def html(self) -> Markup:
        """The code with the classes that the theme colours."""
        return Markup(highlight(self.text, _lexer(self.language), _FORMATTER))  # noqa: S704  it escapes

    @property
    def markdown(self) -> str:
        """The code between fences."""
        return f"```{self.language}\n{self.text}\n```"


@dataclass(frozen=True, slots=True)
class Prose:
    """A text in Markdown (CommonMark, with tables); HTML in it is shown, not obeyed."""

    markdown: str

    @property
    def html(self) -> Markup:
        """The text as blocks: paragraphs, lists, tables, and headings that can be linked to."""
        return Markup(_BLOCKS.render(self.markdown))  # noqa: S704  html=False escapes

    @property
    def line(self) -> Markup:
        """The text within a paragraph or a cell of somebody else's."""
        return Markup(_BLOCKS.renderInline(self.markdown))  # noqa: S704  likewise


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language)


def make_anchor(heading: str) -> str:
    """Return the fragment by which a heading is linked to."""
    return _NO_LETTER.sub("-", heading.lower()).strip("-")


_SCROLLER: Final = (
    '<div class="table-scroll" role="group" aria-label="Table" tabindex="0">\n<table>\n'
)


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _render_fence)
    parser.add_render_rule("table_open", lambda *_: _SCROLLER)
    parser.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    parser.add_render_rule("th_open", lambda *_: '<th scope="col">')
    parser.add_render_rule("heading_open", _render_heading)
    return parser


def _render_fence(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    token = tokens[index]
    html = Code(token.info or "text", token.content.rstrip("\n")).html
    return f'<div class="highlight"><pre tabindex="0"><code>{html}</code></pre></div>\n'


def _render_heading(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    return f'<{tokens[index].tag} id="{make_anchor(tokens[index + 1].content)}">'


_BLOCKS: Final = _make_parser()


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a member of a body."""

    name: str
    """A member of a member stands behind the name of that, with a dot between."""
    kind: str
    """Such as `integer`, or `array of string`."""
    mark: str
    """`needed` in what is sent, `may be absent` in what comes back, or nothing."""
    sentence: Prose
    place: str = ""
    """Of a parameter: path, query or header."""


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent, or what comes back."""

    media_types: tuple[str, ...]
    fields: tuple[Field, ...]
    is_deeper: bool
    """Whether there are members that are not listed here for their depth."""
    example: Code | None
    """`None` also for what is sent: the examples in the languages show it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One status that an operation answers with."""

    status: str
    phrase: str
    """As HTTP calls the status."""
    sentence: Prose
    headers: Mapping[str, Prose]
    body: Body | None
    """`None` where there is none, and for an error: all errors have one body."""


@dataclass(frozen=True, slots=True)
class Example:
    """The same request in one language."""

    label: str
    code: Code


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation."""

    anchor: str
    method: str
    path: str
    summary: str
    about: Prose
    access: Prose
    """Which credential it takes, and how often it may be asked."""
    parameters: tuple[Field, ...]
    body: Body | None
    answers: tuple[Answer, ...]
    problems: tuple[Answer, ...]
    examples: tuple[Example, ...]
    remark: Prose
    """Why there are no examples, where there are none."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the reference: its own words, then operations."""

    path: str
    name: str
    """As the list of pages has it."""
    title: str
    description: str
    prose: Prose
    entries: tuple[Entry, ...] = ()
