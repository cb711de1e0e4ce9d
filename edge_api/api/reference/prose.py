"""Text that stands in two forms: the Markdown it is written in, and HTML for the page."""

import re
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
    parser.add_render_rule("th_open", _render_head_cell)
    parser.add_render_rule("heading_open", _render_heading)
    return parser


def _render_fence(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    token = tokens[index]
    html = Code(token.info or "text", token.content.rstrip("\n")).html
    return f'<div class="highlight"><pre tabindex="0"><code>{html}</code></pre></div>\n'


def _render_head_cell(*_: Any) -> str:
    return '<th scope="col">'


def _render_heading(_: Any, tokens: Any, index: int, *_rest: Any) -> str:
    return f'<{tokens[index].tag} id="{make_anchor(tokens[index + 1].content)}">'


_BLOCKS: Final = _make_parser()
