"""Names of emoji, such as `:tada:`, shown as GitHub shows them."""

import re

from pymdownx.gemoji_db import aliases, emoji

_SIGNS = emoji | {name: emoji[meant] for name, meant in aliases.items()}
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
    return _PIECE.sub(
        lambda piece: re.sub(":[^:]+:", _show, piece[0]) if piece["names"] else piece[0], html
    )


def _show(name: re.Match[str]) -> str:
    sign = _SIGNS.get(name[0])
    points = sign.get("unicode_alt") or sign["unicode"] if sign else ""
    return "".join(chr(int(point, 16)) for point in points.split("-")) if sign else name[0]
