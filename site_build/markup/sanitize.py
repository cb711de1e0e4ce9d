"""Repairs authors' HTML so that it stays within its page, and sanitizes it for feeds and the API.

Authors may write HTML; an element without its end tag, or an end tag without its element, changes
how a browser reads the rest of the page. Frames, and videos and audio of other sites, become links.
HTML for feeds and the API is also reduced to an allow-list, without scripts and styles, and with
absolute addresses.
"""

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Final

import nh3
from selectolax.lexbor import LexborHTMLParser

from site_build.markup.convert import SCROLLER
from site_build.text import shorten, strip_control_characters

_CONTAINERS: Final = "<main><article><section><aside><header><footer><nav><figure>"
"""Elements that themes put texts into, and that a stray end tag could close."""
_INSIDE, _BELOW = "repair-inside", "repair-below"
_PROBES: Final = f"<section id={_INSIDE}></section><i id={_INSIDE}></i></div><b id={_BELOW}></b>"
"""Elements that follow a text in a check of it, without quotes and comments, which could close the
text's own. Any open element of the text contains the `<section>`; open formatting continues in the
`<i>`.
"""
_COMMENT_OR_TAG: Final = re.compile(
    r"<(?P<raw>!--|(?:script|style|textarea|title|iframe|noembed|noframes|noscript|xmp|plaintext)"
    r"(?=[\s/>]))|<(?P<torn>/?[a-z])(?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+(?P<end>>?)",
    re.IGNORECASE,
)
"""The start of a comment or an element of raw text, or a tag, which may lack its `>`."""


def repair(html: str) -> str:
    """Return HTML that stays within its page; it is unchanged if it does already.

    Elements are closed, end tags without elements are removed, and the starts of unclosed comments,
    scripts and the like, which would hide the rest of the text, are escaped.
    """
    if "<" not in html or _is_contained(html):
        return html
    repaired = _escape_unterminated(html)
    for _ in range(3):
        repaired = LexborHTMLParser(repaired, is_fragment=True).html or ""
        if _is_contained(repaired):
            return repaired
    return escape(html)


def _is_contained(html: str) -> bool:
    """Return whether HTML leaves the elements around it as they are."""
    # A parser applies these tags to the whole page.
    if re.search(r"(?i)</?(?:html|head|body|frameset|plaintext)\b", html):
        return False
    page = f"{_CONTAINERS}<div id={_INSIDE}>{html}{_PROBES}"
    found = LexborHTMLParser(page).css(f"#{_INSIDE},#{_BELOW}")
    if [node.tag for node in found] != ["div", "section", "i", "b"]:
        return False
    text, block, run, below = found
    return block.parent == run.parent == text and below.parent == text.parent


def _escape_unterminated(html: str) -> str:
    """Escape the `<` of comments, raw text elements and tags that have no end."""
    find_last = cache(html.lower().rfind)

    def show(found: re.Match[str]) -> str:
        raw = (found["raw"] or "").lower()
        end = "-->" if raw == "!--" else f"</{raw}"
        has_end = raw != "plaintext" and find_last(end) >= found.end() if raw else found["end"]
        return found[0] if has_end else found[0].replace("<", "&lt;")

    return _COMMENT_OR_TAG.sub(show, html)


_EMBED_OR_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<kind>iframe|video|audio)(?=[\s>/])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    r".*?(?:(?P<end></(?P=kind)\s*>)|\Z)|<[a-z/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
    re.DOTALL | re.IGNORECASE,
)
"""A comment, a frame or player with its content, or any other tag."""
_ADDRESS = re.compile(
    r"(?:https?:)?//(?:[^/?#]*@)?(?P<host>[^/?#\s:@]+)|(?![a-z][a-z0-9+.-]*:).",
    re.IGNORECASE | re.DOTALL,
)
"""A web address with its host, or an address on the site itself, without a host."""
_PAGES_BY_EMBED = {
    r".*//(?:www\.)?youtube(?:-nocookie)?\.com/embed/(?!videoseries)([\w-]+).*": (
        r"//www.youtube.com/watch?v=\1"
    ),
    r".*//player\.vimeo\.com/video/(\d+).*": r"//vimeo.com/\1",
    "^//": "https://",
}
"""Patterns of addresses of embeds, each with the address of the page that shows the same."""


def replace_embeds(html: str, site_url: str, *, keeps_players: bool) -> str:
    """Replace each frame, and videos and audio of other sites, by a link.

    If `keeps_players`, videos and audio of the site itself stay, with controls; else they become
    links too. Each element has to be closed, as `repair` ensures; a frame without an address is
    removed.
    """
    if not re.search(r"<(?:iframe|video|audio)[\s>/]", html, re.IGNORECASE):
        return html
    site = _ADDRESS.match(site_url)
    site_host = site["host"] if site else None

    def show(found: re.Match[str]) -> str:
        kind = (found["kind"] or "").lower() if found["end"] else ""
        wanted = f"{kind}[src], {kind} > source[src]"
        node = LexborHTMLParser(found[0]).css_first(wanted) if kind else None
        address = node.attributes["src"] or "" if node else ""
        # A browser removes blanks, and reads a backslash before the query as a slash (URL
        # Standard, section 4.4).
        address = re.sub(r"[\t\n\r]|^[\x00- ]+| +$", "", address)
        address = re.sub("^[^?#]*", lambda path: path[0].replace("\\", "/"), address)
        for pattern, page in _PAGES_BY_EMBED.items():
            address = re.sub(pattern, page, address)
        target = _ADDRESS.match(address)
        if target is None:
            return "" if kind == "iframe" else found[0]
        is_own = target["host"] in {None, site_host}
        if keeps_players and is_own and kind != "iframe":
            without_controls = r"(?i)^<\w++(?![^>]*\s(?:autoplay|controls)\b)"
            return re.sub(without_controls, f"<{kind} controls", found[0])
        host = re.sub(
            "^(?:www|player|open|embed|w)[.]", "", target["host"] or site_host or "this site"
        )
        is_film = kind == "video" or re.search("youtu|vimeo|video|twitch|loom", host)
        verb = "Watch" if is_film else "Listen" if kind == "audio" else "Open"
        rel = "" if is_own else ' rel="external"'
        plain = shorten(re.sub(r"^https?://(?:www\.)?", "", address))
        return (
            f'<a class="plate" href="{escape(address)}"{rel}>{verb} on {escape(host)} '
            f"<small>{escape(plain)}</small></a>"
        )

    return _EMBED_OR_TAG.sub(show, html)


_ALLOWED_TAGS = """
a abbr aside b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div dl
dt em figcaption figure h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q rp rt ruby s samp
section small strong sub summary sup table tbody td tfoot th thead time tr u ul var wbr
math menclose mfenced mfrac mi mlabeledtr mmultiscripts mn mo mover mpadded mphantom mprescripts
mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none
"""

_ALLOWED_ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href"},
    "col": {"span"},
    "colgroup": {"span"},
    "math": {"display"},
    "mo": {"fence", "form", "largeop", "movablelimits", "separator", "stretchy"},
    "mi": {"mathvariant"},
    "img": {"alt", "height", "src", "width"},
    "ol": {"reversed", "start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
_ALIGNMENTS = {"align-left", "align-center", "align-right"}
_ALLOWED_CLASSES = {
    "div": {"admonition", "footnote", "highlight", "note", "tip", "warning", "danger", SCROLLER}
    | {"important", "caution"},
    "figure": {"code"},
    "p": {"admonition-title"},
    "td": _ALIGNMENTS,
    "th": _ALIGNMENTS,
}


def sanitize(html: str, base_url: str) -> str:
    """Return `html` reduced to the allow-list, with addresses made absolute by `base_url`."""
    # Feeds and mail have no form elements, so the box of a task is text.
    html = re.sub(
        '<input type="checkbox" disabled[^>]*?( checked)?>',
        lambda box: "[x]" if box[1] else "[ ]",
        html,
    )
    # The mark that the converter puts behind a heading means nothing outside the page.
    plain = re.sub(
        r'<a class="heading-anchor"[^>]*>#</a>',
        "",
        replace_embeds(html, base_url, keeps_players=False),
    )
    cleaned = nh3.clean(
        plain,
        tags=set(_ALLOWED_TAGS.split()),
        # These are removed with their content; of other unknown elements the text stays.
        clean_content_tags={"script", "style", "template", "iframe", "object", "noscript", "svg"},
        attributes=_ALLOWED_ATTRIBUTES,
        allowed_classes=_ALLOWED_CLASSES,
        url_schemes={"http", "https", "mailto"},
        url_relative=("rewrite_with_base", base_url),
        link_rel="noopener",
    )
    return strip_control_characters(cleaned)  # which character references can add


_OF_CONVERTER: Final = {
    "xmlns",
    "aria-hidden",
    "aria-label",
    "class",
    "id",
    "rel",
    "role",
    "tabindex",
    "value",
}
"""Attributes of elements that the converter makes."""


def find_foreign(html: str) -> Iterator[str]:
    """Yield the beginning of each tag, and each attribute, that the allow-list does not have.

    What Markdown makes by itself is allowed, such as the box of a task.
    """
    allowed = {*_ALLOWED_TAGS.split(), "html", "head", "body", "span"}
    for node in LexborHTMLParser(html).css("*"):
        tag, given = str(node.tag), node.attributes
        if tag == "input" and given.get("type") == "checkbox" and "disabled" in given:
            continue
        if tag not in allowed:
            yield f"<{tag}"
        known = _OF_CONVERTER | _ALLOWED_ATTRIBUTES["*"] | _ALLOWED_ATTRIBUTES.get(tag, set())
        yield from (name for name in given if name not in known)
        address = given.get("href") or given.get("src") or ""
        if not re.match(r"(?i)(?:https?:|mailto:|[^:]*(?:[/?#]|$))", address):
            yield address
