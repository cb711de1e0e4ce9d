"""Text of strangers, cleaned for messages: on one line, and as a name beside an address."""

import unicodedata
from typing import Final

_JOINERS: Final = frozenset("\u200c\u200d")
"""Zero-width joiners, which some scripts and emoji need, although they are format characters."""
_LABEL_CHARACTERS: Final = _JOINERS.union(" .'-&+\u2019")
"""Characters that names may have besides letters and digits: headers give them no meaning."""


def one_line(text: str) -> str:
    """Return untrusted text on one line, as long as it was or shorter.

    Line ends, tabs and other control characters become spaces; characters of Unicode's category Cf,
    such as those that turn the direction of writing, and lone surrogates are removed.
    """
    return (
        text if text.isascii() and text.isprintable() else "".join(map(_sanitize_character, text))
    )


def safe_display_name(text: str) -> str:
    """Return a display name, with spaces for characters that could make it look like an address."""
    kept = (
        char if char in _LABEL_CHARACTERS or unicodedata.category(char)[0] in "LMN" else " "
        for char in one_line(text)
    )
    return " ".join("".join(kept).split())


def _sanitize_character(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category in ("Cf", "Cs") and char not in _JOINERS else char
