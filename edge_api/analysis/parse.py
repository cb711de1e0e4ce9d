"""Parsers of HTML, Markdown and plain text, which return a document.

The prose of HTML is the content of `main`, or else of `body`, without navigation, asides, footers
and code. Headings, links, images, lists and tables count everywhere. Markdown (CommonMark with
tables) is converted to HTML first. In plain text, empty lines separate paragraphs.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser, LexborNode

from edge_api.analysis.document import (
    Block,
    BlockKind,
    Counts,
    DocumentFormat,
    Heading,
    PageMetadata,
    ParsedDocument,
)
from edge_api.analysis.languages import normalize_tag

_BLOCKS: Final[Mapping[str, BlockKind]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("li", "dt", "dd", "figcaption", "caption", "summary", "legend"), "item"),
    **dict.fromkeys(("td", "th"), "cell"),
    **dict.fromkeys(
        (
            "p",
            "div",
            "body",
            "main",
            "article",
            "section",
            "header",
            "blockquote",
            "address",
            "figure",
            "fieldset",
            "details",
            "hgroup",
            "hr",
            "table",
            "ul",
            "ol",
            "dl",
            "tr",
            "center",
            "form",
        ),
        "paragraph",
    ),
}
"""Elements that begin a new block of prose, with its kind."""
_SKIPPED: Final = frozenset(
    (
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "math",
        "head",
        "iframe",
        "object",
        "canvas",
        "audio",
        "video",
        "select",
        "textarea",
        "datalist",
    )
)
"""Elements whose content is ignored."""
_NOT_PROSE: Final = frozenset(("nav", "footer", "aside", "pre", "button"))
"""Elements whose text is not prose of the document."""
MAX_DEPTH: Final = 256  # nested elements; real pages have fewer than 60

_NOT_NESTED: Final = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "html",
        "head",
        "body",
        "p",
        "li",
        "dt",
        "dd",
        "option",
        "optgroup",
        "tr",
        "td",
        "th",
        "tbody",
        "thead",
        "tfoot",
        "colgroup",
        "caption",
        "rt",
        "rp",
    )
)
"""Elements that add no depth: empty ones, and those that the next of their kind closes (HTML,
13.1.2.4)."""


class _TreeWalk:
    """Walks the tree, without recursion, and collects the parts of the document."""

    def __init__(self, host: str | None, *, only_main: bool) -> None:
        self.blocks: list[Block] = []
        self.headings: list[Heading] = []
        self.counts = dict.fromkeys((field.name for field in fields(Counts)), 0)
        self._host = host
        self._only_main = only_main
        self._main_depth = self._not_prose_depth = 0
        self._kinds: list[BlockKind] = ["paragraph"]
        self._prose: list[str] = []
        self._heading: list[str] | None = None
        self._link: list[str] | None = None

    def walk(self, root: LexborNode) -> None:
        node: LexborNode | None = root
        depth = 0
        while node is not None:
            is_entered = self._enter(node)
            inner = node.child if is_entered else None
            if inner is not None:
                node, depth = inner, depth + 1
                continue
            if is_entered:
                self._leave(node)
            while node.next is None and depth:
                node, depth = node.parent, depth - 1
                assert node is not None  # noqa: S101  the depth was counted on the way down
                self._leave(node)
            node = node.next if depth else None

    def _enter(self, node: LexborNode) -> bool:
        """Read a node; return whether to visit its children."""
        if node.is_text_node:
            self._add_text(node.text_content or "")
            return False
        tag = node.tag or ""
        hidden = node.attributes.get("aria-hidden") or ""
        if tag in _SKIPPED or "hidden" in node.attributes or hidden.lower() == "true":
            return False
        self._main_depth += tag == "main"
        self._not_prose_depth += tag in _NOT_PROSE
        if tag in _BLOCKS:
            self._end_block()
            self._kinds.append(_BLOCKS[tag])
        if tag == "a" and "href" in node.attributes and self._link is None:
            label = node.attributes.get("aria-label") or node.attributes.get("title")
            self._link = [label or ""]
        elif tag == "img":
            self.counts["images"] += 1
            self.counts["images_without_alt"] += "alt" not in node.attributes
            if self._link is not None:
                self._link.append(node.attributes.get("alt") or "")
        elif tag == "br":
            self._add_text(" ")
        elif tag in ("ul", "ol", "dl"):
            self.counts["lists"] += 1
        elif tag == "table":
            self.counts["tables"] += 1
            self.counts["tables_without_header"] += node.css_first("th") is None
        elif _BLOCKS.get(tag) == "heading" and self._heading is None:
            self._heading = []
        return True

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "a" and "href" in node.attributes:
            self._end_link(node)
        if _BLOCKS.get(tag) == "heading" and self._heading is not None:
            self.headings.append(Heading(int(tag[1]), _collapse(self._heading)))
            self._heading = None
        if tag in _BLOCKS:
            self._end_block()
            self._kinds.pop()
        self._main_depth -= tag == "main"
        self._not_prose_depth -= tag in _NOT_PROSE

    def _add_text(self, text: str) -> None:
        for collected in (self._heading, self._link):
            if collected is not None:
                collected.append(text)
        if not self._not_prose_depth and (self._main_depth or not self._only_main):
            self._prose.append(text)

    def _end_block(self) -> None:
        text = _collapse(self._prose)
        if text:
            self.blocks.append(Block(self._kinds[-1], text))
        self._prose = []

    def _end_link(self, node: LexborNode) -> None:
        self.counts["links"] += 1
        self.counts["external_links"] += self._is_external(node.attributes["href"] or "")
        text = self._link or []
        self.counts["links_without_text"] += not _collapse(text)
        if text and text[-1] in ("#", "\xb6", "\xa7"):  # a permalink beside its heading
            for collected in (self._heading, self._prose):
                if collected and collected[-1] == text[-1]:
                    collected.pop()
        self._link = None

    def _is_external(self, address: str) -> bool:
        try:
            parts = urlsplit(address.strip())
        except ValueError:
            return False
        is_web = parts.scheme in ("", "http", "https")
        return is_web and parts.hostname not in (None, self._host)


def parse_html(html: str, url: str | None = None) -> ParsedDocument:
    """Return the document of HTML, a page or a fragment; `url` is its address."""
    tree = LexborHTMLParser(limit_nesting(html))
    host = urlsplit(url).hostname if url else None
    walk = _TreeWalk(host, only_main=tree.css_first("main") is not None)
    if tree.body is not None:
        walk.walk(tree.body)
    # A fragment has no tags of a whole page, and needs no title and no description.
    is_page = re.search(r"(?i)<(?:!doctype|html|head|body|title)\b", html) is not None
    titles = [_collapse([node.text()]) for node in tree.css("title")[:1]]
    title = next(filter(None, [*titles, *(each.text for each in walk.headings[:1])]), None)
    return ParsedDocument(
        kind="html",
        title=title,
        blocks=tuple(walk.blocks),
        headings=tuple(walk.headings),
        counts=Counts(**walk.counts),
        page=_read_metadata(tree) if is_page else None,
        reading_time_text="\n".join(block.text for block in walk.blocks),
    )


def _read_metadata(tree: LexborHTMLParser) -> PageMetadata:
    scripts = [node.text() for node in tree.css('script[type="application/ld+json" i]')]
    types, errors = read_json_ld_types(scripts)
    return PageMetadata(
        page_language=normalize_tag(_attribute(tree, "html", "lang") or ""),
        description=_attribute(tree, 'meta[name="description" i]', "content"),
        has_main=tree.css_first("main") is not None,
        has_canonical=bool(_attribute(tree, 'link[rel~="canonical" i]', "href")),
        has_open_graph=bool(_attribute(tree, 'meta[property="og:title" i]', "content")),
        json_ld=len(scripts),
        json_ld_errors=errors,
        json_ld_types=types,
    )


def _attribute(tree: LexborHTMLParser, selector: str, name: str) -> str | None:
    node = tree.css_first(selector)
    return _collapse([node.attributes.get(name) or ""]) or None if node is not None else None


def _collapse(parts: list[str]) -> str:
    return " ".join("".join(parts).split())


def read_json_ld_types(blocks: Iterable[str]) -> tuple[tuple[str, ...], int]:
    """Return the types in blocks of JSON-LD (`@type`), and the number of invalid blocks."""
    types, errors = dict[str, None](), 0
    for block in blocks:
        try:
            value = orjson.loads(block)
        except orjson.JSONDecodeError:
            errors += 1
            continue
        types.update(dict.fromkeys(_types(value)))
    return tuple(types)[:20], errors


def _types(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            named = item.get("@type")
            for name in named if isinstance(named, list) else [named]:
                if isinstance(name, str):
                    yield name[:100]
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))


def limit_nesting(html: str) -> str:
    """Return the HTML with at most `MAX_DEPTH` nested elements.

    A parser's time grows with the square of the depth. Browsers limit it too, to 512. In one pass
    over the text, deeper tags are removed, and their content is kept.
    """
    if html.count("<") <= MAX_DEPTH:
        return html
    opened, dropped, depth = Counter[str](), Counter[str](), 0

    def filter_tag(tag: re.Match[str]) -> str:
        nonlocal depth
        name, is_kept = tag[2].lower(), True
        if name in _NOT_NESTED:
            return tag[0]
        if not tag[1]:
            is_kept = depth < MAX_DEPTH
            (opened if is_kept else dropped)[name] += 1
            depth += is_kept
        elif dropped[name]:
            is_kept = False
            dropped[name] -= 1
        elif opened[name]:  # an end tag without a start tag closes nothing
            opened[name] -= 1
            depth -= 1
        return tag[0] if is_kept else ""

    return re.sub(r"<(/?)([A-Za-z][^\s/>]*)[^>]*>?", filter_tag, html)


_MARKDOWN: Final = MarkdownIt("commonmark").enable("table")
MAX_UNCLOSED_BRACKETS: Final = 200  # brackets that are not closed; real texts have a few
MAX_BRACKET_DEPTH: Final = 32  # nested brackets


def parse_text(text: str, _url: str | None = None) -> ParsedDocument:
    """Return the document of plain text."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # Split at each empty line by itself, so that a text of nothing but line feeds is not slow.
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n[^\S\n]*(?=\n)", lines))
    blocks = tuple(Block("paragraph", part) for part in paragraphs if part)
    return ParsedDocument("text", None, blocks, reading_time_text=text)


def parse_markdown(text: str, url: str | None = None) -> ParsedDocument:
    """Return the document of Markdown; `url` is its address."""
    head = re.match(r"---[ \t]*\r?\n(?:(?!---).*\r?\n)*?---[ \t]*(?:\r?\n|\Z)", text)
    body = text[head.end() :] if head else text
    document = parse_html(_MARKDOWN.render(limit_brackets(body)), url)
    title = ""
    # A title in the front matter is used if it is on one line, without the quotes around it.
    found = re.search(r"(?mi)^title[ \t]*:[ \t]*(\S.*?)[ \t]*\r?$", head[0]) if head else None
    if found and found[1] not in ("|", ">", "|-", ">-"):
        quoted = re.fullmatch(r"([\"'])(.*)\1", found[1])
        title = (quoted[2] if quoted else found[1]).strip()
    return replace(
        document, kind="markdown", title=title or document.title, page=None, reading_time_text=text
    )


def limit_brackets(markdown: str) -> str:
    """Return Markdown; if too many brackets are unclosed or nested too deep, escape these.

    For each opening bracket, a parser searches the rest of the paragraph for the closing one, which
    takes quadratic time. A bracket that is not closed on its line is text anyway, and with a
    backslash before it the parser does not search.
    """
    unmatched, pending = list[int](), list[int]()
    # A bracket, the end of a line, or a backslash with what it escapes.
    for found in re.finditer(r"\\[^\n]|[\[\]\n]", markdown):
        if found[0] == "[":
            (unmatched if len(pending) == MAX_BRACKET_DEPTH else pending).append(found.start())
        elif found[0] == "]" and pending:
            pending.pop()
        elif found[0] == "\n":
            unmatched += pending
            pending = []
    unmatched = sorted(unmatched + pending)
    if len(unmatched) <= MAX_UNCLOSED_BRACKETS:
        return markdown
    starts, ends = [0, *unmatched], [*unmatched, len(markdown)]
    return "\\".join(markdown[start:end] for start, end in zip(starts, ends, strict=True))


PARSERS: Final[Mapping[DocumentFormat, Callable[[str, str | None], ParsedDocument]]] = {
    "text": parse_text,
    "markdown": parse_markdown,
    "html": parse_html,
}
