"""What mail programs support of HTML and CSS, and a judge of letters that knows it.

The facts are those of "Can I email" (caniemail.com, MIT licence) as of September 2025: for each of
its features, whether the programs of `PROGRAMS` support it: `y`es, `a`lmost, `n`o or `u`nknown.
"""

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser

PROGRAMS: Final = (
    "Apple Mail",
    "Apple Mail on iOS",
    "Gmail",
    "Gmail on iOS",
    "Gmail on Android",
    "Outlook.com",
    "Yahoo",
    "Thunderbird",
    "Outlook for Windows",
)
SUPPORT: Final = {
    "html-align": "yyyyyyyyy",
    "html-background": "yyyaayyya",
    "html-blockquote": "yyyyyyyyy",
    "html-body": "yyaaaaayy",
    "html-cellpadding": "yyyyyyyyy",
    "html-cellspacing": "yyyyyyyyy",
    "html-code": "yyyyyyyyy",
    "html-del": "yyyyyyyyy",
    "html-dir": "yyyyyyyya",
    "html-div": "yyyyyyyyy",
    "html-doctype": "yyyyyyynn",
    "html-h1-h6": "yyyyyyyyy",
    "html-height": "yyyyyyyya",
    "html-hr": "yyyyyyyyy",
    "html-img": "yyyyyyyuy",
    "html-lang": "yyyyyyayy",
    "html-lists": "yyaaaaaya",
    "html-meta-color-scheme": "ynnnnnnyn",
    "html-p": "yyyyyyyyy",
    "html-pre": "yyyyyyyyy",
    "html-role": "yyyyyyayy",
    "html-small": "yyyyyyyyy",
    "html-span": "yyyyyyyyy",
    "html-strong": "yyyyyyyyy",
    "html-style": "yyaaayyya",
    "html-table": "yyyyyyyyy",
    "html-width": "yyyyyyyya",
    "css-at-media-prefers-color-scheme": "yynnnynnn",
    "css-background-color": "yyyyyyyyy",
    "css-background-image": "yyyyyyayn",
    "css-background-position": "yyyyyyyyn",
    "css-background-size": "yyyaayyyn",
    "css-border": "yyyyyyyya",
    "css-border-collapse": "yyyyyyyyy",
    "css-font": "yyyyyyyyy",
    "css-font-size": "yyyyyyaya",
    "css-font-weight": "yyyyyyaya",
    "css-height": "yyyyyynya",
    "css-important": "yyaaayaya",
    "css-line-height": "yyyyyyyya",
    "css-margin": "yyaaaaaya",
    "css-max-width": "yyyyyyyya",
    "css-padding": "yyyyyyyya",
    "css-selector-class": "yyyaayyyy",
    "css-selector-descendant": "yyyaayyyy",
    "css-selector-grouping": "yyyaayyyy",
    "css-selector-type": "yyyaayyyy",
    "css-text-align": "yyyaayaya",
    "css-text-decoration": "yyyaayyya",
    "css-vertical-align": "yyyyyyyyy",
    "css-white-space": "yyyaayyyn",
    "css-width": "yyyyyyyya",
    "css-word-break": "aayaaanyy",
    "image-gif": "yyyyyyyya",
    "image-jpg": "yyyyyyyyy",
    "image-png": "yyyyyyyyy",
    "image-webp": "yyaaayyyn",
}
GRACEFUL: Final = {
    "html-doctype": "a few leave it out",
    "html-meta-color-scheme": "dark mode is told by the sheet too",
    "css-at-media-prefers-color-scheme": "the letter is light then, or turned by the program",
    "css-background-image": "the cell has a colour",
    "css-background-position": "as css-background-image",
    "css-background-size": "as css-background-image",
    "css-height": "the cell has the attribute",
    "css-white-space": "`pre` keeps blanks by itself, and long lines are not broken",
    "css-word-break": "long words are not broken",
    "image-webp": "a picture's words are shown",
}
"""Features that one of the programs lacks, and what a reader has there instead."""

ELEMENTS: Final = {
    **dict.fromkeys(
        ("table", "tbody", "td", "tfoot", "th", "thead", "tr", "caption"), "html-table"
    ),
    **dict.fromkeys(("dd", "dl", "dt", "li", "ol", "ul"), "html-lists"),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "html-h1-h6"),
    **{
        name: f"html-{name}"
        for name in (
            "blockquote",
            "body",
            "code",
            "del",
            "div",
            "hr",
            "img",
            "p",
            "pre",
            "small",
            "span",
            "strong",
            "style",
        )
    },
}
OLD_ELEMENTS: Final = frozenset(
    ("a", "b", "br", "em", "head", "html", "i", "meta", "sub", "sup", "title", "u")
)
"""Elements of HTML 3.2 that every program shows, and that the source has no page about."""
ATTRIBUTES: Final = {
    "align": "html-align",
    "background": "html-background",
    "bgcolor": "css-background-color",
    "border": "html-table",
    "cellpadding": "html-cellpadding",
    "cellspacing": "html-cellspacing",
    "class": "css-selector-class",
    "colspan": "html-table",
    "dir": "html-dir",
    "height": "html-height",
    "lang": "html-lang",
    "role": "html-role",
    "rowspan": "html-table",
    "start": "html-lists",
    "style": "html-style",
    "width": "html-width",
}
OLD_ATTRIBUTES: Final = frozenset(("alt", "charset", "content", "href", "name", "src"))
PROPERTIES: Final = {
    "border-bottom": "css-border",
    "border-color": "css-border",
    "border-left": "css-border",
    "border-right": "css-border",
    "border-top": "css-border",
    "font-family": "css-font",
    "font-style": "css-font",
}
OLD_PROPERTIES: Final = frozenset(("color",))  # of CSS 1, as the old elements


def find_unsupported(html: str) -> Iterator[str]:
    """Yield each element, attribute, property, query and kind of picture that programs lack."""
    tree = LexborHTMLParser(html)
    sheet = "".join(each.text() for each in tree.css("style"))
    rules = re.fullmatch(
        r"\s*@media \(prefers-color-scheme: dark\) \{(?P<rules>(?:[^{}]*\{[^{}]*\})*)\s*\}\s*",
        sheet,
    )
    if rules is None:
        yield f"the sheet {sheet[:80]}"
    used = {f"at-media-{name}" for name in re.findall(r"@media \(([a-z-]+)", sheet)}
    declarations = set(re.findall(r"[{;]\s*([a-z-]+):", sheet[sheet.find("{") + 1 :]))
    for node in tree.css("*"):
        tag = str(node.tag)
        if tag not in OLD_ELEMENTS and ELEMENTS.get(tag) not in SUPPORT:
            yield f"<{tag}>"
        for name, value in node.attributes.items():
            if name not in OLD_ATTRIBUTES and ATTRIBUTES.get(name) not in SUPPORT:
                yield f"<{tag} {name}>"
            if name == "style":
                inner = re.sub(r"'[^']*'|\([^)]*\)", "", value or "")
                declarations |= {each.split(":")[0].strip() for each in inner.split(";")} - {""}
        if tag == "img":
            kind = str(node.attributes["src"]).lower().rpartition(".")[2].replace("jpeg", "jpg")
            if f"image-{kind}" not in SUPPORT:
                yield f"a picture of the kind {kind}"
    used |= {PROPERTIES.get(each, f"css-{each}") for each in declarations - OLD_PROPERTIES}
    yield from sorted(
        f"{each} of style" for each in used if each.startswith("css-") and each not in SUPPORT
    )
