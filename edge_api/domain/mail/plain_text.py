"""Strangers' text made fit to stand in a message: on one line, and with nothing that acts.

It knows nothing of messages. What is taken away is what readers do not see: control characters,
line separators, marks that turn the direction of writing.
"""

import unicodedata
from typing import Final

_JOINERS: Final = frozenset("\u200c\u200d")
"""Format characters that are part of how words are spelled, and of some emoji."""
_LABEL_SIGNS: Final = frozenset(" .'-&+\u2019")
"""What stands in names beside letters, and separates nothing in a header of addresses."""


def one_line(text: str) -> str:
    """Return a text on one line, as long as it was or shorter.

    Line ends, tabs and other control characters become spaces; characters of Unicode's category
    Cf, such as those that turn the direction of writing, go, and so do lone surrogates.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_tame, text))


def label(text: str) -> str:
    """Return the letters, digits and spaces of a name, which no reader takes for an address."""
    kept = (sign if _is_label(sign) else " " for sign in one_line(text))
    return " ".join("".join(kept).split())


def _tame(sign: str) -> str:
    category = unicodedata.category(sign)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category in ("Cf", "Cs") and sign not in _JOINERS else sign


def _is_label(sign: str) -> bool:
    return sign in _LABEL_SIGNS or sign in _JOINERS or unicodedata.category(sign)[0] in "LMN"
