"""What this site asks of every page's HTML, as one extension of Python-Markdown.

The page's title is its only `h1`, so headings of a text that uses `h1` move one level down; links
that leave the site say so. Footnotes and tables have a module of their own. Inline styles
and event handlers are taken out, since the content security policy forbids them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.extensions import Extension
from markdown.extensions.attr_list import get_attrs_and_remainder
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import InlineProcessor, Treeprocessor
from markdown.util import AtomicString

from site_build.markup.accessibility import mend_footnotes, mend_tables

_SUSPECT = re.compile(r"[\s\"'/](?:style|on[a-z]+)\s*=", re.IGNORECASE)
_TAG = re.compile(r"""<[a-z](?:[^<>"']|"[^"]*"|'[^']*')*>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?P<value>=\s*(?:"[^"]*"|'[^']*'))"""
    r"""|[\s/]+(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
    r"""|(?<=["'])(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_DEEPEST = 6
_OPTION: Final = r"""(?:title|hl_lines)=(?:"[^"\n]*"|'[^'\n]*') *"""
# As Python-Markdown has it, with the title besides: a fence shown within another is left alone.
_FENCED: Final = re.compile(
    rf"^(?P<fence>`{{3,}}+|~{{3,}}+) *(?P<opening>\{{[^\n]*\}}|\.?[\w#.+-]* *(?:{_OPTION})*)\n"
    r"(?P<code>(?:[^\n]*\n)*?)(?P=fence) *$",
    re.MULTILINE,
)
_CODE_TITLE: Final = re.compile(r"""(?<!\S)title=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)') *""")
SIGNS: Final[Mapping[str, Sequence[str]]] = {
    "backtick": ("`",),
    "escape": ("\\",),
    "reference": ("[",),
    "link": ("[",),
    "image_link": ("![",),
    "image_reference": ("![",),
    "short_reference": ("[",),
    "short_image_ref": ("![",),
    "autolink": ("://",),
    "automail": ("@",),
    "linebreak": ("  \n",),
    "html": ("<",),
    "entity": ("&",),
    "em_strong": ("*", "_"),
    "footnote": ("[^",),
}
"""Of these a text has to hold one for the pattern of that name to fit; others are always tried."""


class HouseRules(Extension):
    """Registers the steps; `site_url` tells which links leave the site."""

    def __init__(self, site_url: str) -> None:
        super().__init__()
        self._host = urlsplit(site_url).netloc

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name is Python-Markdown's
        """Put the tree's step after `attr_list` (8) and before `toc` (5), and the text's last.

        Titles of code are taken before `fenced_code_block` (25); `inline` (20) gives way to a
        quicker one.
        """
        md.preprocessors.register(CodeTitles(md), "code_titles", 26)
        md.treeprocessors.register(QuickInline(md), "inline", 20)
        md.treeprocessors.register(_Tree(md, self._host), "house_rules", 7)
        md.postprocessors.register(_Text(md), "house_rules", -1)


class _Tree(Treeprocessor):
    """The rules for what Markdown itself has made."""

    def __init__(self, md: Markdown, host: str) -> None:
        super().__init__(md)
        self._host = host

    def run(self, root: Element) -> None:
        """Apply the rules to the tree in place."""
        frame_images(root)
        mend_tables(root)
        mend_footnotes(root)
        headings_are_high = next(root.iter("h1"), None) is not None
        for element in root.iter():
            if headings_are_high and re.fullmatch("h[1-6]", element.tag):
                element.tag = f"h{min(int(element.tag[1]) + 1, _DEEPEST)}"
            elif element.tag == "a":
                self._mark_external(element)

    def _mark_external(self, link: Element) -> None:
        target = _split(link.get("href", ""))
        if target in {"", self._host} or "rel" in link.attrib:
            return
        link.set("rel", "external")


def _split(url: str) -> str:
    """Return the host that an http link names, or an empty string."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in {"http", "https"} else ""


class _Text(Postprocessor):
    """The rules for all that has become text: raw HTML, highlighted code, attribute lists."""

    def run(self, text: str) -> str:
        """Return `text` without inline styles and event handlers, its code reached by keyboard."""
        text = text.replace("<pre>", '<pre tabindex="0">')
        return _TAG.sub(_strip, text) if _SUSPECT.search(text) else text


def _strip(tag: re.Match[str]) -> str:
    return _ATTRIBUTE.sub(lambda found: found["value"] or "", tag[0])


def frame_images(root: Element) -> None:
    """Turn paragraphs that hold only a titled image into figures, the title into the caption.

    A figure that the author wrote by hand stays as it is, its paragraphs too.
    """
    framed = {id(inside) for figure in root.iter("figure") for inside in figure.iter("p")}
    for paragraph in root.iter("p"):
        image = None if id(paragraph) in framed else _find_only_image(paragraph)
        if image is not None and (caption := image.get("title", "").strip()):
            del image.attrib["title"]
            paragraph.tag = "figure"
            SubElement(paragraph, "figcaption").text = caption


def _find_only_image(parent: Element) -> Element | None:
    """Return the image that is all a paragraph shows, by itself or as a link."""
    if len(parent) != 1 or (parent.text or "").strip() or (parent[0].tail or "").strip():
        return None
    child = parent[0]
    return _find_only_image(child) if child.tag == "a" else child if child.tag == "img" else None


class CodeTitles(Preprocessor):
    """Turns a fence that says `title="app.py"` into raw HTML: a figure with a caption.

    Python-Markdown knows fences and Pygments colours them. Here a title is only taken from the line
    that opens a fence, right before the step for fences, and put above what they make of the rest.
    """

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines with a placeholder for each titled block."""
        text = "\n".join(lines)
        return _FENCED.sub(self._frame, text).split("\n") if "title" in text else lines

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
    titles = [found["double"] or found["single"] or "" for found in _CODE_TITLE.finditer(opening)]
    return " ".join("".join(titles[-1:]).split()), _CODE_TITLE.sub("", opening)


class QuickInline(InlineProcessor):
    """Python-Markdown's step for what stands within lines: does what its base does, to the letter.

    It tries a pattern only where it may fit: each needs a sign that few pieces of text hold, and to
    look for a sign costs next to nothing.
    """

    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self._signs: list[Sequence[str]] = []

    def run(self, tree: Element, ancestors: list[str] | None = None) -> Element:
        """Apply the patterns to a tree, in place."""
        self._signs = [("",)] * len(self.inlinePatterns)
        for name, signs in SIGNS.items():
            if name in self.inlinePatterns:
                self._signs[self.inlinePatterns.get_index_for_name(name)] = signs
        return super().run(tree, ancestors)

    # The base calls itself by this name, which Python makes of `__handleInline` in its class.
    def _InlineProcessor__handleInline(self, data: str, patternIndex: int = 0) -> str:  # noqa: N802, N803
        """Return `data` with placeholders where patterns from `patternIndex` on have fitted."""
        if isinstance(data, AtomicString):
            return data
        for index, pattern in self._choose(data, patternIndex):
            matched, start = True, 0
            while matched:
                data, matched, start = self._InlineProcessor__applyPattern(  # type: ignore[attr-defined]
                    pattern, data, index, start
                )
        return data

    def _choose(self, data: str, first: int) -> Iterator[tuple[int, object]]:
        """Yield the patterns that may fit; placeholders hold no signs, so `data` tells for all."""
        for index, signs in enumerate(self._signs[first:], first):
            for sign in signs:
                if sign in data:
                    yield index, self.inlinePatterns[index]
                    break
