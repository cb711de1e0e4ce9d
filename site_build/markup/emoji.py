"""Names of emoji, such as `:tada:`, shown as GitHub shows them."""

import re

from pymdownx.gemoji_db import aliases, emoji

_SIGNS = {
    name: "".join(
        chr(int(point, 16)) for point in (sign.get("unicode_alt") or sign["unicode"]).split("-")
    )
    for name, sign in (emoji | {name: emoji[meant] for name, meant in aliases.items()}).items()
}
ESCAPED = "wbr"
"""The element that stands before a name whose first colon is escaped."""
_PIECE = re.compile(
    r"<(?P<raw>code|pre|script|style|textarea|svg|math)\b.*?</(?P=raw)|<!--.*?-->"
    rf"|<{ESCAPED}>:[a-z0-9_+-]+:|<[a-z/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    r"|(?<![A-Za-z0-9_:])(?P<names>(?::[a-z0-9_+-]++:)++)(?![A-Za-z0-9_:])",
    re.DOTALL | re.IGNORECASE,
)
"""What is no prose, or names; within a word or `a::b` they are none, unlike on GitHub."""


def show_emoji(html: str) -> str:
    """Return HTML with the signs that names stand for; an unknown name stays as it is."""
    if not any(f"{name}:" in _SIGNS for name in re.findall(":[a-z0-9_+-]+(?=:)", html)):
        return html

    def show(piece: re.Match[str]) -> str:
        names = piece["names"]
        return re.sub(":[^:]+:", lambda e: _SIGNS.get(e[0], e[0]), names) if names else piece[0]

    return _PIECE.sub(show, html)
