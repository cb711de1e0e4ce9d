"""What this site asks of every page's HTML, as one extension of Python-Markdown.

The page's title is its only `h1`, so headings of a text that uses `h1` move one level down; links
that leave the site say so. Footnotes and tables have a module of their own. Inline styles
and event handlers are taken out, since the content security policy forbids them.
"""

import re
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.treeprocessors import Treeprocessor

from site_build.markup.accessibility import mend_footnotes, mend_tables
from site_build.markup.blocks import APART

_SUSPECT = re.compile(r"[\s\"'/](?:style|on[a-z]+)\s*=", re.IGNORECASE)
_TAG = re.compile(r"""<[a-z](?:[^<>"']|"[^"]*"|'[^']*')*>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?P<value>=\s*(?:"[^"]*"|'[^']*'))"""
    r"""|[\s/]+(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
    r"""|(?<=["'])(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_DEEPEST = 6
_BOX = '<input type="checkbox" disabled'
_BOXES = {
    f"{_BOX}/>": f'{_BOX} aria-label="Still to do">',
    f"{_BOX} checked/>": f'{_BOX} aria-label="Done" checked>',
}
"""Tasks' boxes as pymdown-extensions writes them, and with the name that they need (WCAG 4.1.2)."""


class HouseRules(Extension):
    """Registers the steps; `site_url` tells which links leave the site."""

    def __init__(self, site_url: str) -> None:
        super().__init__()
        self._host = urlsplit(site_url).netloc

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name is Python-Markdown's
        """Put the tree's step after `attr_list` (8) and before `toc` (5), and the text's last."""
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
        text = text.replace("<pre>", '<pre tabindex="0">').replace(f"{APART}\n", "")
        if _BOX in text:
            for box, html in _BOXES.items():
                text = text.replace(box, html)
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
