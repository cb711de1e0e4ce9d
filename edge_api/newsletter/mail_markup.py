"""The markup of mail: a post's HTML in what mail programs know, cut to a size, and as plain text.

Pictures of the site stay; those of other sites and drawings become links. Formulas become text,
marks of footnotes plain numbers, and elements without a name in mail one that looks like them.
"""

import re
from collections.abc import Callable
from html import escape
from typing import Final
from urllib.parse import urlsplit

import nh3
from css_inline import CSSInliner
from markdownify import markdownify
from selectolax.lexbor import LexborHTMLParser, LexborNode

_RENAMED: Final = {
    **dict.fromkeys(("aside", "details", "figure", "section"), "div"),
    **dict.fromkeys(("figcaption", "summary"), "p"),
    **dict.fromkeys(("cite", "dfn", "q", "var"), "i"),
    **dict.fromkeys(("kbd", "samp"), "code"),
    "ins": "u",
    "mark": "span",
    "rt": "small",
    "s": "del",
}
"""Elements that some mail programs drop, and those in their place, whose class is the old name."""
_TAGS: Final = set(
    """a b blockquote br caption code dd del div dl dt em h2 h3 h4 h5 h6 hr i img li ol p pre small
    span strong sub sup table tbody td tfoot th thead tr u ul""".split()  # noqa: SIM905
)
_ATTRIBUTES: Final = {
    "*": {"class", "dir", "lang"},
    "a": {"href"},
    "img": {"alt", "src", "width"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
_SET_ATTRIBUTES: Final = {
    "pre": {"dir": "ltr"},
    "table": {"cellpadding": "0", "cellspacing": "0", "border": "0"},
}
_MAX_PICTURE_WIDTH: Final = 560
_UNSHOWN_PICTURES: Final = (".svg", ".avif", ".heic", ".tiff")
"""Kinds of pictures that common mail programs do not show."""
_INLINER: Final = CSSInliner(keep_at_rules=True, load_remote_stylesheets=False)


def adapt(html: str, page_url: str, site_url: str) -> str:
    """Return a post's HTML, as the index has it, in the elements and attributes of mail."""

    def show_picture(found: re.Match[str]) -> str:
        link, image = found.groups(default="")
        given = LexborHTMLParser(image).css("img")[0].attributes
        address, words, width = (given.get(each) or "" for each in ("src", "alt", "width"))
        target = urlsplit(address)
        if target[:2] == urlsplit(site_url)[:2] and not target.path.endswith(_UNSHOWN_PICTURES):
            # Authors also write `300px` or `50%`, which mail programs do not read alike.
            bound = min(int(width) if width.isdecimal() else 9999, _MAX_PICTURE_WIDTH)
            return f'{link}<img src="{escape(address)}" alt="{escape(words)}" width="{bound}">'
        # Without a host, the picture is in the post itself, and its address is no page.
        name = words or (target.netloc and (target.path.rpartition("/")[2] or target.netloc))
        text = escape(f"[{name}]") if name else ""
        return (
            f"{link}{text}"
            if link or not target.netloc
            else f'<a href="{escape(address)}">{text}</a>'
        )

    note = rf'<a href="{re.escape(escape(page_url))}#fn'
    for pattern, shown in (
        (rf"{note}ref-[^>]*>.*?</a>", ""),
        (rf"<sup>{note}-[^>]*>(.*?)</a></sup>", r"<small>[\1]</small>"),
        (r"(?m)^<a [^>]*>(?:Watch|Listen|Open) on .*</a>$", r"<p>\g<0></p>"),
        (r"(?s)<math.*?</math>", _show_formula),
        (r'(<a [^>]*>)?(<img(?:[^">]|"[^"]*")*>)', show_picture),
    ):
        html = re.sub(pattern, shown, html)
    html = re.sub(
        rf"<(/?)({'|'.join(_RENAMED)})(?=[\s>])",
        lambda tag: f"<{tag[1]}{_RENAMED[tag[2]]}" + ("" if tag[1] else f' class="{tag[2]}"'),
        html,
    )
    cleaned = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        set_tag_attribute_values=_SET_ATTRIBUTES,
        link_rel=None,
    )
    # What has lost its address, such as one of a script, would look like a link.
    return re.sub(r"(?s)<a(?=[\s>])(?![^>]*\shref=)[^>]*>(.*?)</a>", r"\1", cleaned)


_FORMULAS: Final = {
    "mfrac": "{}/{}",
    "msqrt": "\u221a{}",
    "msup": "{}^{}",
    "mover": "{}^{}",
    "msub": "{}_{}",
    "munder": "{}_{}",
    "msubsup": "{}_{}^{} ",
    "munderover": "{}_{}^{} ",
    "mroot": "{}^(1/{})",
}
"""The forms of formulas on one line, by the name of the element in MathML."""
_SEPARATORS: Final = {"mtable": "; ", "mtr": ", "}
_OPERATORS: Final = "=<>+\u2212\u2260\u2264\u2265\u2248\u2261\u2208\u2192\u21d2\u00d7\u00b1"
_RAISED: Final = str.maketrans(
    "0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


def _show_formula(found: re.Match[str]) -> str:
    node = LexborHTMLParser(found[0]).css("math")[0]
    tag = "p" if node.attributes.get("display") == "block" else "i"
    text = re.sub(
        r"\^(\d+)",
        lambda power: power[1].translate(_RAISED),
        " ".join(_write_formula(node).split()),
    )
    return f'<{tag} class="formula">{escape(text)}</{tag}>'


def _write_formula(node: LexborNode) -> str:
    parts, name = [_write_formula(each) for each in node.iter()], str(node.tag)
    form = _FORMULAS.get(name, "")
    if form.count("{}") == len(parts) > 0:
        # What is more than one sign, word or number, and has no brackets yet, gets them.
        return form.format(*(re.sub(r"^(?!\w+$|\W$|\(.*\)$).+", r"(\g<0>)", e) for e in parts))
    text = " " if name == "mspace" else node.text(strip=True)
    is_spaced = name == "mo" and text in _OPERATORS and node.prev
    return _SEPARATORS.get(name, "").join(parts) or (f" {text} " if is_spaced else text)


def finish(page: str, measure: Callable[[str], int], limit: int) -> tuple[str, str, bool]:
    """Return a page for mail, the text of its element `.text` as Markdown, and whether it was cut.

    The styles of its head go into its elements. While it is too long, the last part of the text is
    left out, but for the title. `#rest` stays if it was cut, `#description` if nothing else did: no
    element of a post has an id here.
    """
    tree = LexborHTMLParser(_INLINER.inline(page))
    _, *blocks = tree.css(".text")[0].iter(include_text=True)
    is_cut = False
    # Measured again, since the parts of a text are encoded to more or less than the whole.
    while (excess := measure(tree.html or "") - limit) > 0 and blocks:
        is_cut = True
        while excess > 0 and blocks:
            last = blocks.pop()
            excess -= measure(last.html or "")
            last.decompose()
    text = markdownify(
        "".join(each.html or "" for each in blocks),
        escape_asterisks=False,
        escape_underscores=False,
        bullets="-",
        sup_symbol="^",
        sub_symbol="_",
        wrap=True,
        wrap_width=76,
    ).strip()
    for selector, is_wanted in (("#rest", is_cut), ("#description", is_cut and not text)):
        for each in tree.css(selector):
            if is_wanted:
                del each.attrs["id"]  # not all mail programs take one
            else:
                each.decompose()
    return tree.html or "", text, is_cut
