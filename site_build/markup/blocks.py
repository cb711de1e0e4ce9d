"""Parses the blocks of a text as GitHub does, and makes Python-Markdown's elements of them.

markdown-it-py parses the blocks (CommonMark 0.31.2, with GitHub's tables) into tokens, and each
becomes an element of Python-Markdown's tree. Inline Markdown is left to Python-Markdown, as are
the places of footnotes, attribute lists and tables of contents.
"""

import re
from collections.abc import Callable, Iterator
from html import escape
from itertools import pairwise
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions.attr_list import get_attrs_and_remainder
from markdown.util import ETX, STX
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block, table
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

DEEPEST: Final = 60
"""The most levels of nesting; a list takes two."""
_INDENT: Final = 4
_ALERT: Final = re.compile(r"\[!(note|tip|important|warning|caution)\] *(?:\n|\Z)", re.IGNORECASE)
_MARKDOWN_INSIDE: Final = re.compile(r"<([A-Za-z][\w-]*)(?=\s)[^<>]*\smarkdown(?=[\s=>])")
"""A tag with the attribute `markdown`: Python-Markdown reads what is in its element."""
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_PLUGINS: Final = {
    "admonition": admon_plugin,
    "deflist": deflist_plugin,
    "footnote": footnote_plugin,
}
"""Plugins of markdown-it-py, by the processor of Python-Markdown that each replaces."""
REPLACED: Final = (
    "indent",
    "hashheader",
    "setextheader",
    "hr",
    "olist",
    "ulist",
    "quote",
    "table",
    "admonition",
    "deflist",
    "defindent",
)
"""Names of the block processors of Python-Markdown that `Blocks` replaces."""


class TooDeepError(Exception):
    """Blocks are nested too deeply; `line` is where, counted from 0."""

    def __init__(self, line: int) -> None:
        super().__init__("lists or quotes are nested too deeply")
        self.line = line


class ParsedBlocks(NamedTuple):
    """The blocks that markdown-it-py has found in a text."""

    lines: list[str]
    tokens: list[Token]
    definitions: dict[str, object]
    """Definitions of links, as markdown-it-py stores them."""


class _Reader(MarkdownIt):
    """A parser of markdown-it-py that neither changes nor checks the addresses of links."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the name is the library's
        return url

    def validateLink(self, url: str) -> bool:  # noqa: N802
        del url
        return True


class Fenced(NamedTuple):
    """A code block whose fences begin their lines, by offsets in a text."""

    start: int
    code: int
    code_end: int
    end: int
    info: str


def find_fenced(text: str) -> Iterator[Fenced]:
    """Yield the code blocks whose fences begin their lines; an unclosed one is left out."""
    fence, opening = "", None
    for line in re.finditer(r"(?m)^(?:(`{3,})([^`\n]*)|(~{3,})(.*))$", text):
        run, info = line[1] or line[3], line[2] or line[4] or ""
        if opening is None:
            fence, opening = run, line
        elif run.startswith(fence) and not info.strip():
            info_string = (opening[2] or opening[4] or "").strip()
            yield Fenced(opening.start(), opening.end() + 1, line.start(), line.end(), info_string)
            opening = None


def _read_element(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse an element with the attribute `markdown` as one block, even across blank lines."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    found = _MARKDOWN_INSIDE.match(line) if html_block(state, start, end, silent=True) else None
    if found is None or silent:
        return found is not None
    tags, level, fence = re.compile(rf"<(/?){found[1]}(?![\w-])", re.IGNORECASE), 0, ""
    after = start
    while after < end and (state.isEmpty(after) or state.sCount[after] >= state.blkIndent):
        line = state.src[state.bMarks[after] + state.tShift[after] : state.eMarks[after]]
        after += 1
        if fence:  # tags in code end nothing
            fence = "" if line.rstrip() == fence else fence
        elif opening := _FENCE.match(line):
            fence = opening[0]
        else:
            level += sum(-1 if tag[1] else 1 for tag in tags.finditer(line))
            if level <= 0:
                break
    state.line = after
    token = state.push("html_block", "", 0)
    token.map = [start, after]
    token.content = state.getLines(start, after, state.blkIndent, keepLastLF=True)
    return True


def _read_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a table; a `|` in a code span of a row does not separate cells."""
    text, first = state.src, len(state.tokens)
    is_table = table(state, start, end, silent)
    if silent or not is_table:
        return is_table
    begin, after = state.eMarks[start + 1], state.eMarks[state.line - 1]
    rows = re.sub(
        r"(?<![`\\])(`+)(?!`)[^\n]*?(?<!`)\1(?!`)",
        lambda code: re.sub(r"(?<!\\)\|", STX, code[0]),
        text[begin:after],
    )
    if STX in rows:
        del state.tokens[first:]
        state.src = text[:begin] + rows + text[after:]
        table(state, start, end, silent)
        state.src = text
        for token in state.tokens[first:]:
            token.content = token.content.replace(STX, "|")
    return True


class Blocks(BlockProcessor):
    """Makes the elements of all blocks, in place of Python-Markdown's own processors.

    Processors that stay, such as that of abbreviations, get one paragraph at a time.
    """

    def __init__(self, md: Markdown, make_formula: Callable[[str], str]) -> None:
        super().__init__(md.parser)
        self._md = md
        self._make_formula = make_formula
        self._fences, self._html = (
            md.preprocessors[name] for name in ("fenced_code_block", "html_block")
        )
        processors = md.parser.blockprocessors
        self._extensions: dict[str, Any] = {
            name: processors[name] for name in _PLUGINS if name in processors
        }
        self._reader = _Reader("commonmark", {"maxNesting": DEEPEST + 10})
        self._reader.options["inline_definitions"] = True
        # GitHub tries a table only where no other block begins; the library would try it first.
        rules = self._reader.block.ruler
        rules.before("lheading", "table", _read_table, {"alt": ["paragraph"]})
        for name in self._extensions:
            self._reader.use(_PLUGINS[name])
        if "markdown_block" in processors:
            rules.before(
                "html_block",
                "markdown_in_html",
                _read_element,
                {"alt": ["paragraph", "reference", "blockquote"]},
            )
        self._reader.use(dollarmath_plugin, allow_labels=False, allow_blank_lines=False)
        self._reader.core.ruler.enableOnly(["normalize", "block"])
        for name in REPLACED:
            processors.deregister(name, strict=False)
        for name in ("fenced_code_block", "html_block"):
            md.preprocessors.deregister(name)
        self.reset()

    def reset(self) -> None:
        """Forget the text that was converted last."""
        self.parsed = ParsedBlocks([], [], {})
        """The blocks of the whole text; those of text within elements are not kept."""
        self._passed_on: list[str] = []
        """The blocks that `run` leaves to the other processors; compared by identity."""
        self._notes: dict[str, Element] = {}
        """Elements of footnotes, by the placeholders of their texts."""

    def test(self, parent: Element, block: str) -> bool:
        """Return True: this processor takes every block."""
        del parent, block
        return True

    def run(self, parent: Element, blocks: list[str]) -> bool:
        """Make the elements of some blocks; raises TooDeepError."""
        if blocks is self._passed_on:
            return False
        text = "\n\n".join(blocks)
        blocks.clear()
        if text in self._notes:
            parent.extend(self._notes[text])
            return True
        definitions: dict[str, object] = {}
        tokens = self._reader.parse(text, definitions)
        for token in tokens:
            if token.level > DEEPEST:
                raise TooDeepError(token.map[0] if token.map else 0)
        parsed = ParsedBlocks(text.split("\n"), tokens, definitions)
        self.parsed = self.parsed if self.parsed.lines else parsed
        self._build(parent, parsed)
        return True

    def _build(self, root: Element, parsed: ParsedBlocks) -> None:
        """Add the elements of the tokens to `root`; raises TooDeepError."""
        open_elements = [root]
        for before, token in pairwise([Token("", "", 0), *parsed.tokens]):
            parent = open_elements[-1]
            if token.type in {"paragraph_open", "paragraph_close"}:
                continue
            if token.nesting > 0:
                open_elements.append(self._open(parent, token))
            elif token.nesting < 0:
                open_elements.pop()
            elif token.type == "code_block":
                depth = sum(each.tag in {"ol", "ul"} for each in open_elements)
                code = _read_code(token, parsed, depth).split("\n")
                indented = "\n".join(f"{' ' * _INDENT}{line}" for line in code)
                self._add_text(parent, indented, is_tight=False)
            elif token.type != "inline":
                self._add_leaf(parent, token)
            elif before.type == "paragraph_open":
                self._add_text(parent, token.content, is_tight=before.hidden)
            else:
                parent.text = token.content

    def _open(self, parent: Element, token: Token) -> Element:
        """Return the element that a token opens; the next blocks go into it."""
        if token.type == "admonition_title_open":  # discarded: `_make_box` has made the title
            return Element("p")
        if token.type == "footnote_reference_open":  # the extension puts it at the end of the text
            key, note = f"{STX}{token.meta['label']}{ETX}", Element("div")
            self._notes[key] = note
            self._extensions["footnote"].footnotes.setFootnote(token.meta["label"], key)
            return note
        if token.type == "admonition_open":
            return self._open_admonition(parent, token)
        element = SubElement(parent, token.tag)
        for name, value in token.attrs.items():
            if name == "style":  # the alignment of a table cell
                element.set("class", str(value).replace("text-align:", "align-"))
            else:
                element.set(name, str(value))
        return element

    def _open_admonition(self, parent: Element, token: Token) -> Element:
        extension = self._extensions["admonition"]
        found = extension.RE.match(f"!!!{token.info}")  # a foldable `???` becomes a box, too
        if not found:
            SubElement(parent, "p").text = f"{token.markup}{token.info}"
            return parent
        names, title = extension.get_class_and_title(found)
        return _make_box(SubElement(parent, "div"), names, title)

    def _add_text(self, parent: Element, text: str, *, is_tight: bool) -> None:
        """Add a paragraph, or bare text if `is_tight`, with the processors that stay."""
        alert = _ALERT.match(text) if parent.tag == "blockquote" and not len(parent) else None
        if alert:
            parent.tag = "div"
            _make_box(parent, alert[1].lower(), alert[1].title())
            text = text[alert.end() :]
        if "\n<" in f"\n{text}":  # Python-Markdown counts more elements as blocks
            text = "\n".join(self._html.run(text.split("\n"))).strip("\n")
        terms = self._extensions.get("deflist")
        if terms and terms.test(parent, text):  # several terms with one definition
            terms.run(parent, [text])
            return
        outer, self._passed_on = self._passed_on, text.split("\n\n")
        # Bare text would become the tail of a `<pre>`, which highlighting clears.
        is_tight = is_tight and not (len(parent) and parent[-1].tag == "pre")
        self.parser.state.set("list" if is_tight else "paragraph")
        self.parser.parseBlocks(parent, self._passed_on)
        self.parser.state.reset()
        self._passed_on = outer

    def _add_leaf(self, parent: Element, token: Token) -> None:
        """Add a block without blocks inside: code, HTML, a formula, a rule, a link definition.

        Raises TooDeepError.
        """
        content = token.content.rstrip("\n")
        if token.type == "hr":
            SubElement(parent, "hr")
            return
        if token.type == "definition":
            name = " ".join(token.meta["label"].split()).lower()
            self._md.references.setdefault(name, (token.meta["url"], token.meta["title"]))
            return
        if token.type == "html_block" and _MARKDOWN_INSIDE.search(content):
            pieces, done = [], 0
            for fenced in find_fenced(content):
                pieces += [
                    content[done : fenced.start],
                    self._make_code(fenced.info, content[fenced.code : fenced.code_end]),
                ]
                done = fenced.end
            text = "".join([*pieces, content[done:]])
            text = "\n".join(self._html.run(text.split("\n")))
            if text != content:  # if equal, Python-Markdown leaves the element as it is
                try:
                    self.parser.parseChunk(parent, text)
                except TooDeepError as refusal:
                    line = token.map[0] if token.map else 0
                    raise TooDeepError(line + refusal.line) from None
                return
        if token.type == "html_block":
            placeholder_text = self._md.htmlStash.store(content)
        elif token.type == "math_block" or token.info.strip() == "math":
            placeholder_text = self._make_formula(content.strip())
        else:
            placeholder_text = self._make_code(token.info.strip(), token.content)
        self._add_text(parent, placeholder_text, is_tight=parent.tag in {"li", "dd"})

    def _make_code(self, info: str, code: str) -> str:
        """Return the placeholder of a code block; `info` is the text behind the opening fence.

        Python-Markdown's `fenced_code` makes the HTML, of one block at a time.
        """
        title, opening = _read_info(info)
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", code))])
        ended = code if code.endswith("\n") or not code else f"{code}\n"
        text = f"{fence}{opening}\n{ended}{fence}"
        (placeholder,) = filter(None, self._fences.run(text.split("\n")))
        if title:
            stash = self._md.htmlStash.rawHtmlBlocks
            caption = f"<figcaption>{escape(title, quote=False)}</figcaption>"
            stash[-1] = f'<figure class="code">{caption}{str(stash[-1]).rstrip()}</figure>'
        return placeholder


def _make_box(element: Element, names: str, title: str | None) -> Element:
    """Return `element` as an admonition; the first of its names is its kind."""
    element.set("class", f"admonition {names}")
    if title:
        SubElement(element, "p", {"class": "admonition-title"}).text = title
    return element


def _read_code(token: Token, parsed: ParsedBlocks, depth: int) -> str:
    """Return indented code.

    Within lists, Python-Markdown wants four more spaces for each list, and GitHub the width of the
    list's marker: neither indentation is a part of the code.
    """
    width = _INDENT * (depth + 1)
    lines = [line.rstrip() for line in parsed.lines[slice(*token.map or ())]]
    if depth and all(not line[:width].strip() for line in lines):
        return "\n".join(line[width:] for line in lines).rstrip()
    return token.content.rstrip()


_TITLE: Final = re.compile(r"""(?<!\S)title=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')""")
_RANGES: Final = re.compile(r"\{(\d+(?:-\d+)?(?:, *\d+(?:-\d+)?)*)\}")


def _read_info(info: str) -> tuple[str, str]:
    """Return the title in the text behind a fence, and that text as `fenced_code` expects it."""
    if info.startswith("{") and info.endswith("}") and not _RANGES.fullmatch(info):
        attributes, _ = get_attrs_and_remainder(info[1:-1])
        return _join(dict(attributes).get("title") or ""), info
    titles = [found["double"] or found["single"] or "" for found in _TITLE.finditer(info)]
    rest = _TITLE.sub("", info)
    language = re.match(r"\.?([\w#.+-]*)", rest)
    name = language[1] if language else ""
    highlighted = re.findall(r"""(?<!\S)hl_lines=(?:"([\d -]*)"|'([\d -]*)')""", rest)
    ranges = [found for pair in highlighted for found in pair] or _RANGES.findall(rest)
    lines = " ".join(
        str(line)
        for first, last in re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", " ".join(ranges))
        for line in range(int(first), min(int(last or first), int(first) + 999) + 1)
    )
    return _join(*titles[-1:]), f'{name} hl_lines="{lines}"' if lines else name


def _join(*words: str) -> str:
    return " ".join(" ".join(words).split())
