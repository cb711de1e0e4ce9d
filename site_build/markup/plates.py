"""Links in place of what a page does not show: pages of others in it, and their films and sounds.

The site's policy lets a page play files of its own site, and nothing else.
"""

import re
from html import escape

from selectolax.lexbor import LexborHTMLParser

from site_build.text import shorten

_PIECE = re.compile(
    r"<!--.*?-->|<(?P<kind>iframe|video|audio)(?=[\s>/])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    r".*?</(?P=kind)\s*>|<[a-z/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
    re.DOTALL | re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:https?:)?//(?P<host>[^/?#\s:@]+)|(?![a-z][a-z0-9+.-]*:).", re.IGNORECASE | re.DOTALL
)
"""A web address with its host, or one on the site itself, without."""
_BLANKS = re.compile(r"[\t\n\r]|^[\x00- ]+| +$")
"""What browsers take out of an address (URL Standard, section 4.4)."""
_SEEN = {
    r".*//(?:www\.)?youtube(?:-nocookie)?\.com/embed/(?!videoseries)([\w-]+).*": (
        r"//www.youtube.com/watch?v=\1"
    ),
    r".*//player\.vimeo\.com/video/(\d+).*": r"//vimeo.com/\1",
    "^//": "https://",
}
"""Where people see what stands at addresses that are made for frames."""


def show_plates(html: str, site_url: str, *, plays: bool) -> str:
    """Return HTML with a link, its plate, for each frame, and for films and sounds of other sites.

    `plays` says that those of the site itself stay, with their controls; else they are links too.
    Each has to be closed, as `repair` sees to; a frame without an address is removed.
    """
    if not re.search(r"<(?:iframe|video|audio)[\s>/]", html, re.IGNORECASE):
        return html
    site = _ADDRESS.match(site_url)
    own = site["host"] if site else None

    def show(found: re.Match[str]) -> str:
        kind = (found["kind"] or "").lower()
        wanted = f"{kind}[src], {kind} > source[src]"
        node = LexborHTMLParser(found[0]).css_first(wanted) if kind else None
        address = _BLANKS.sub("", node.attributes["src"] or "") if node else ""
        for pattern, seen in _SEEN.items():
            address = re.sub(pattern, seen, address)
        target = _ADDRESS.match(address)
        if target is None:
            return "" if kind == "iframe" else found[0]
        is_own = target["host"] in {None, own}
        if plays and is_own and kind != "iframe":
            silent = r"^<\w++(?![^>]*\s(?:autoplay|controls)\b)"
            return re.sub(silent, f"<{kind} controls", found[0], flags=re.IGNORECASE)
        host = target["host"] or own or "this site"
        is_film = kind == "video" or re.search("youtu|vimeo|video|twitch|loom", host)
        verb = "Watch" if is_film else "Listen" if kind == "audio" else "Open"
        words = f"{verb} on {re.sub(r'^(?:www|player|open|embed|w)[.]', '', host)}"
        rel = "" if is_own else ' rel="external"'
        plain = shorten(re.sub(r"^https?://(?:www\.)?", "", address))
        return (
            f'<a class="plate" href="{escape(address)}"{rel}>{escape(words)} '
            f"<small>{escape(plain)}</small></a>"
        )

    return _PIECE.sub(show, html)
