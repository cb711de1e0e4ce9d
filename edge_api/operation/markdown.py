"""Plain text in Markdown that is made here."""

import re
from typing import Final

_SPECIAL: Final = re.compile(r"([\\\[\]`*_<>#&|~])")


def escape(text: str) -> str:
    """Return plain text so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text)
