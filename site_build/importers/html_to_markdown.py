"""Converts HTML of other systems to Markdown that this journal renders to the same text."""

import re
from collections import defaultdict
from functools import partial
from html import escape, unescape
from itertools import islice
from typing import Final
from urllib.parse import quote

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

_DROPPED: Final = (
    "head",
    "script",
    "style",
    "template",
    "noscript",
    "svg",
    "button",
    ".linenos",
    ".gutter",
    ".footnotes hr",
    ".wp-block-file__button",
    # Ghost
    ".kg-bookmark-description",
    ".kg-bookmark-metadata",
    ".kg-bookmark-thumbnail",
    ".kg-video-overlay",
    ".kg-video-player-container",
    ".kg-audio-thumbnail",
    ".kg-audio-player",
    ".kg-signup-card",
    ".kg-file-card-metadata",
    # Substack
    ".subscription-widget-wrap",
    ".subscription-widget-wrap-editor",
    ".subscribe-widget",
    ".image-link-expand",
    ".hide-text",
    ".captioned-button-wrap",
    ".file-embed-button.narrow",
    ".button-wrapper:has(a:is([href*='%%'], [href*='/subscribe?'], [href*='action=share']))",
    ".button-wrapper:has(a[href$='/comments'])",
)
"""Elements without a text of the author: code for browsers, players, line numbers of code."""
_ONE_CELL: Final = "table:not(:has(:is(tr, tbody, td, th):not(:first-child), caption))"
_RENAMED: Final = {
    # Emphasis within emphasis (a caption is emphasised), and boxes around pictures.
    **dict.fromkeys((":is(b, strong) :is(b, strong)", ":is(i, em) :is(i, em)"), "span"),
    **dict.fromkeys(("figcaption :is(i, em)", "table :is(td, th) > p:only-child"), "span"),
    **dict.fromkeys((".wp-block-gallery", ".blocks-gallery-grid", ".blocks-gallery-item"), "span"),
    **dict.fromkeys((".kg-gallery-container", ".kg-gallery-image"), "span"),
    **dict.fromkeys((".captioned-image-container", ".image2-inset"), "span"),
    f"{_ONE_CELL} :is(tr, td, th)": "div",
    _ONE_CELL: "div",
    "table:not(:has(thead)):has(:is(tr:first-child > td)):not(table table)": "html-table",
    "table:has([colspan], [rowspan], br, p, div, tfoot, caption, ul, ol, pre):not(table table)": (
        "html-table"
    ),
    "table:has(dl, table, blockquote, h2, h3):not(table table)": "html-table",
    "kbd": "html-kbd",
    **dict.fromkeys(("summary", ".kg-toggle-heading"), "html-summary"),
    ".kg-toggle-card": "details",
    ".kg-gallery-row": "p",
    ".kg-callout-card": "alert",
    ".pullquote": "blockquote",
}
"""Selectors of elements, and the name by which markdownify converts each rightly. A table with a
head and plain cells is written with pipes, any other as HTML."""
_AROUND: Final = {
    **dict.fromkeys(("b", "strong"), ("**", "**")),
    **dict.fromkeys(("i", "em"), ("*", "*")),
    **dict.fromkeys(("del", "s", "strike"), ("~~", "~~")),
    **{
        name: (f"<{name}>", f"</{name}>")
        for name in ("cite", "ins", "mark", "small", "sub", "sup", "u")
    },
    "abbr": ('<abbr title="{title}">', "</abbr>"),
    "html-kbd": ("<kbd>", "</kbd>"),
    **dict.fromkeys(("p", "div", "section", "article", "aside", "header"), ("\n\n", "\n\n")),
    **dict.fromkeys(("footer", "main", "address", "center", "form"), ("\n\n", "\n\n")),
    "alert": ("\n\n> [!NOTE]\n> ", "\n\n"),
    "figcaption": ("\n\n*", "*\n\n"),
    "details": ("\n\n<details>\n", "\n\n</details>\n\n"),
    "footnote-mark": ("[^", "]"),
    "footnote-text": ("\n\n[^{number}]: ", "\n\n"),
}
"""Markdown before and after the text of an element; names of attributes in braces."""
_INNER_LINK: Final = re.compile("^#")
_SPECIAL: Final = re.compile(
    # TeX as WordPress.com and MathJax read it; single dollar signs mostly mean prices.
    r"(?:\$latex\s|\\\()(?P<line>.+?)(?:\$|\\\))|(?:\$\$|\\\[)(?P<block>.+?)(?:\$\$|\\\])"
    r"|(?P<sign>[\\`*\[\]$]|(?<![^\W_])_|_(?![^\W_])|<(?=[a-zA-Z/!?])|~~|\{(?=[:#.])"
    r"|(?<=^\d)[.)](?=\s)|(?<=^\d\d)[.)](?=\s)|(?<=^\d{4})[.)](?=\s)"
    r"|^(?:#{1,6}(?=\s|$)|[-+](?=\s|$)|>|[-=]+\s*$|:(?=\s)|!{3}))|(?P<entity>&(?=#?\w+;))"
)
"""Signs with a meaning in Markdown, some only where a line begins, and formulas."""
_LANGUAGE: Final = re.compile(
    r"(?:^|\b(?:language|lang|highlight-source|highlight|brush:|sourceCode|hljs)[-\s]\s*)"
    r"(?!(?:hljs|language|lang|highlight|wp|brush|sourceCode|notranslate|plain\w*|text)\b|default)"
    r"([a-z][\w+#]*+)(?![-:])"
)
_EMBEDDED: Final = {
    r"(?:https?:)?//(?:www\.)?youtube(?:-nocookie)?\.com/embed/(?!videoseries)([\w-]+).*": (
        r"https://www.youtube.com/watch?v=\1"
    ),
    r"(?:https?:)?//player\.vimeo\.com/video/(\d+).*": r"https://vimeo.com/\1",
    r"(https://open\.spotify\.com)/embed/(\w+/\w+).*": r"\1/\2",
    "^//": "https://",
}
"""Addresses of embedded players, and the pages that show the same to people."""


def parse(html: str) -> BeautifulSoup:
    """Return the elements of HTML."""
    # The parser takes this for a broken declaration, and refuses all of the text with it.
    html = re.sub(
        r"(?i)<(?=!\[(?!(?:temp|cdata|ignore|include|rcdata|if|else|endif)(?=[\s\[\]>])))",
        "&lt;",
        html,
    )
    return BeautifulSoup(html, "html.parser", multi_valued_attributes=None)


def convert(html: str) -> str:
    """Return Markdown for the HTML of a text.

    Tables that pipes cannot show, `<details>` and some formatting stay HTML; frames, films and
    sounds become links.
    """
    html = re.sub(r"<!--.*?(?:-->|\Z)", "", html, flags=re.DOTALL)
    soup = parse(html)
    for element in _select(soup, html, *_DROPPED):
        element.decompose()
    _mark_footnotes(soup)
    for selector, name in _RENAMED.items():
        for element in _select(soup, html, selector):
            element.name = name
    # Media become links.
    for element in _select(
        soup,
        html,
        "iframe[src]",
        "video[src]",
        "audio[src]",
        "embed[src]",
        "source[src]:first-of-type:is(video > *, audio > *)",
    ):
        link = quote_target(element["src"])
        name = link if element.name == "iframe" else link.rpartition("/")[2]
        element.string = str(element.get("title") or name or link)
        element.name, element["href"] = "a", link
    converter = _HtmlConverter(heading_style="atx", bullets="-", wrap=True, wrap_width=None)
    converter.linked = frozenset(str(e["href"]) for e in soup.find_all("a", href=_INNER_LINK))
    return str(converter.convert_soup(soup)).strip() + "\n"


def _select(soup: BeautifulSoup, html: str, *selectors: str) -> list[Tag]:
    """Return elements; to save time, selectors whose first name the text lacks are not tried."""
    tried = [each for each in selectors if re.findall(r"[\w-]+", each)[0] in html]
    return [*soup.select(",".join(tried))] if tried else []


def _mark_footnotes(soup: BeautifulSoup) -> None:
    """Mark the footnotes: a link to an element of the text in which another link leads back."""
    links = soup.find_all("a", href=_INNER_LINK)
    by_id = {
        str(each.get("id") or each["name"]): (
            each.find_parent(["li", "p", "div"]) if each.name == "a" else each
        )
        for each in (soup.select("[id], a[name]") if links else ())
    }
    for link in links:
        mark = link.parent if link.parent and link.parent.name == "sup" else link
        names = [
            f"#{each[key]}" for each in (link, mark) for key in ("id", "name") if key in each.attrs
        ]
        note = by_id.get(str(link["href"])[1:])
        if note and (ways_back := note.find_all("a", href=names)) and names:
            for back in ways_back:
                (back.find_parent("sup") or back.find_parent(class_="label") or back).extract()
            number = str(note.get("number") or 1 + len(soup.find_all("footnote-text")))
            note.name, note["number"] = "footnote-text", number
            mark.name, mark.string = "footnote-mark", number
            soup.append(note.extract())


def _surround(before: str, after: str, el: Tag, text: str, *, parent_tags: set[str]) -> str:
    """Put the Markdown of `_AROUND` around a text, unless it would not be read as Markdown."""
    inner = text.strip()
    is_block = before.startswith("\n")
    if (
        not inner
        or "_noformat" in parent_tags
        or (not is_block and re.search(r"\n\s*\n|^[#>|-]\s", inner))
    ):
        return "" if is_block and not inner else text  # emphasis ends with its paragraph
    if is_block:
        breaks = {"footnote-text": "\n    ", "alert": "\n> ", "figcaption": " "}
        text = inner = inner.replace("\n", breaks.get(el.name, "\n"))
        before, after = (" ", " ") if "_inline" in parent_tags else (before, after)
    elif "<" not in before:
        before = "" if getattr(el.previous_sibling, "name", "") == el.name else before
        after = "" if getattr(el.next_sibling, "name", "") == el.name else after
    values = defaultdict(str, {key: escape(str(value)) for key, value in el.attrs.items()})
    return text.replace(inner, before.format_map(values) + inner + after, 1)


def plain_text(html: str) -> str:
    """Return the plain text of a title, a caption or an excerpt."""
    return " ".join(unescape(re.sub(r"</?[a-zA-Z!][^>]*>", " ", html)).split())


def quote_target(address: object) -> str:
    """Return an address, quoted for the parentheses of a link; for a player, that of its page."""
    target = " ".join(str(address or "").split())
    for pattern, seen in _EMBEDDED.items():
        target = re.sub(pattern, seen, target)
    return quote(target, safe="!#$%&'*+,/:;=?@[]~", errors="ignore")


class _HtmlConverter(MarkdownConverter):
    """The rules of markdownify, with those that differ for this journal's Markdown."""

    linked: frozenset[str] = frozenset()
    """Targets of links within the text."""

    def escape(self, text: str, _parent_tags: object = None) -> str:
        """Escape the signs that have a meaning in Markdown, and write TeX as formulas."""
        return _SPECIAL.sub(
            lambda found: (
                f"${found['line'].strip()}$"
                if found["line"]
                else f"\n\n$${found['block']}$$\n\n"
                if found["block"]
                else "&amp;"
                if found["entity"]
                else f"\\{found[0]}"
            ),
            re.sub(r"\s*\xa0\s+|\s+\xa0\s*", " ", text),
        )

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a link; of one that leads nowhere, such as Ghost's `#/portal`, only its text."""
        target, inner = quote_target(el.get("href")), re.sub(r"\s*\n\s*", " ", text.strip())
        if (
            not target
            or not inner
            or "_noformat" in parent_tags
            or re.match("(?i)javascript:|#/", target)
        ):
            return text
        is_bare = re.match("https?:", target) and el.get_text().strip() == target
        link = f"<{target}>" if is_bare else f"[{inner}]({target})"
        return text.replace(text.strip(), link, 1)

    def convert_img(self, el: Tag, _text: str, **_: object) -> str:
        """Return a picture; its title is left out, since it would be shown as a caption."""
        source = quote_target(el.get("data-src") or el.get("src"))
        alt = self.escape(" ".join(str(el.get("alt") or el.get("title") or "").split()))
        return f"![{alt}]({source})" if source else ""

    def convert_figure(self, el: Tag, text: str, **_: object) -> str:
        """Return a figure; a picture and its caption are one paragraph."""
        parts = (
            "\n\n"
            if el.select("figure, html-table, ul, ol, dl, pre, table, blockquote, h2")
            else "\n"
        )
        return "\n\n" + re.sub(r" *\n\s*\n", parts, text.strip()) + "\n\n"

    def convert_pre(self, el: Tag, text: str, **_: object) -> str:
        """Return a block of code with the language that its classes name."""
        said = (
            str(each.get(key, ""))
            for each in (el, el.code or el, *islice(el.parents, 2))
            for key in ("data-lang", "lang", "class")
        )
        language = next(filter(None, map(_LANGUAGE.search, said)), None)
        code = text.replace("\xa0", " ").strip("\n").rstrip()
        fence = "`" * max((len(run) + 1 for run in re.findall("`{3,}", code)), default=3)
        return f"\n\n{fence}{language[1] if language else ''}\n{code}\n{fence}\n\n"

    def convert_input(self, el: Tag, _text: str, parent_tags: set[str]) -> str:
        """Return the box of a task."""
        box = f"[{'x' if 'checked' in el.attrs else ' '}] "
        return box if el.get("type") == "checkbox" and "li" in parent_tags else ""

    def convert_br(self, _el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a line break; a second one right behind it begins a paragraph."""
        return "\n" if "pre" in parent_tags else " " if "_inline" in parent_tags else f"  \n{text}"

    def convert_hN(self, n: int, el: Tag, text: str, _parent_tags: object) -> str:  # noqa: N802
        """Return a heading, with its id where a link of the text leads to it."""
        text = re.sub(r"(?<!\\)#+$", r"\\\g<0>", " ".join(text.split()))
        name = f" {{#{el['id']}}}" if f"#{el.get('id')}" in self.linked else ""
        return f"\n\n{'#' * n} {text}{name}\n\n" if text else ""

    def convert_td(self, _el: Tag, text: str, **_: object) -> str:
        """Return a cell of a table that pipes can show."""
        return " " + " ".join(text.split()).replace("|", r"\|") + " |"

    convert_th = convert_td

    def convert_html_table(self, el: Tag, _text: str, **_: object) -> str:
        """Keep a table as HTML, without its looks and without the blank lines that would end it."""
        for each in el.select("*"):
            each.attrs = {
                key: value
                for key, value in each.attrs.items()
                if key in {"colspan", "rowspan", "scope", "href", "src", "alt", "title", "start"}
            }
        html = re.sub("</?span>", "", el.decode_contents())
        return "\n\n<table>" + re.sub(r"\s*\n\s*", "\n", html) + "</table>\n\n"

    def convert_html_summary(self, el: Tag, _text: str, **_: object) -> str:
        """Return the `<summary>` of `<details>`, in which no Markdown is read."""
        return f"<summary>{escape(' '.join(el.get_text().split()))}</summary>\n\n"


for _name, _around in _AROUND.items():
    setattr(_HtmlConverter, f"convert_{_name.replace('-', '_')}", partial(_surround, *_around))
