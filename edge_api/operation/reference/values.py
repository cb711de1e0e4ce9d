"""The values of the reference: pages, operations, and texts as Markdown and as HTML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.lexers import get_lexer_by_name

from edge_api.schema.highlighting import CodeFormatter

_find_lexer = cache(get_lexer_by_name)
_FORMATTER: Final = CodeFormatter(nowrap=True)
_NOT_ALPHANUMERIC: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Code:
    """A block of code; `language` is the name in a fence."""

    language: str
    text: str

    @property
    def html(self) -> Markup:
        """The code with the classes of the theme."""
        return Markup(highlight(self.text, _find_lexer(self.language), _FORMATTER))  # noqa: S704  it escapes

    @property
    def markdown(self) -> str:
        """The code between fences."""
        return f"```{self.language}\n{self.text}\n```"


@dataclass(frozen=True, slots=True)
class Prose:
    """A text in Markdown (CommonMark, with tables); HTML in it is escaped."""

    markdown: str

    @property
    def html(self) -> Markup:
        """The text as blocks: paragraphs, lists, tables, and headings with anchors."""
        return Markup(_MARKDOWN.render(self.markdown))  # noqa: S704  html=False escapes

    @property
    def line(self) -> Markup:
        """The text within a paragraph or a cell."""
        return Markup(_MARKDOWN.renderInline(self.markdown))  # noqa: S704  likewise


def _render_fence(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    token = tokens[index]
    html = Code(token.info or "text", token.content.rstrip("\n")).html
    return f'<div class="highlight"><pre tabindex="0"><code>{html}</code></pre></div>\n'


def _render_heading(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    anchor = _NOT_ALPHANUMERIC.sub("-", tokens[index + 1].content.lower()).strip("-")
    return f'<{tokens[index].tag} id="{anchor}">'


_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.add_render_rule("fence", _render_fence)
_MARKDOWN.add_render_rule(
    "table_open",
    lambda *_: '<div class="table-scroll" role="group" aria-label="Table" tabindex="0">\n<table>\n',
)
_MARKDOWN.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
_MARKDOWN.add_render_rule("th_open", lambda *_: '<th scope="col">')
_MARKDOWN.add_render_rule("heading_open", _render_heading)


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a member of a body."""

    name: str  # dotted, for a member of a member
    kind: str  # such as `integer`, or `array of string`
    mark: str  # `needed`, `may be absent`, or nothing
    description: Prose
    place: str = ""  # of a parameter: path, query or header


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request or an answer."""

    media_types: tuple[str, ...]
    fields: tuple[Field, ...]
    example: Code | None  # `None` for a request, which the languages show


@dataclass(frozen=True, slots=True)
class ResponseEntry:
    """One status of an operation."""

    status: str
    phrase: str  # HTTP's name of the status
    description: Prose
    headers: Mapping[str, Prose]
    body: Body | None  # `None` for an error: all errors have one body


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
    access: Prose  # the credential and the limits
    parameters: tuple[Field, ...]
    body: Body | None
    answers: tuple[ResponseEntry, ...]
    problems: tuple[ResponseEntry, ...]
    examples: tuple[Example, ...]
    remark: Prose  # why there are no examples


@dataclass(frozen=True, slots=True)
class ReferencePage:
    """One page of the reference: its own text, then operations."""

    path: str
    name: str  # in the list of pages
    title: str
    description: str
    prose: Prose
    entries: tuple[Entry, ...] = ()
