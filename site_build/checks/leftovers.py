"""Markdown that came out as letters: what was begun and has no end, or points at nothing."""

import re
from collections.abc import Iterator
from typing import Final

from site_build.text import shorten

_CODE: Final = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
_NOTE: Final = re.compile(r"\[\^([^\]\s]{1,60})\]")
_FENCE: Final = re.compile(r"^(?:<p>)?[ \t]{0,3}(`{3,9}(?!`)|~{3,9}(?!~))", re.MULTILINE)


def find_leftovers(html: str, prose: str) -> Iterator[tuple[int, str]]:
    """Yield offsets in `prose`, the text without its code, and what is wrong there."""
    if "[^" not in prose and "```" not in prose and "~~~" not in prose:
        return
    shown = _CODE.sub("", html)
    for name in dict.fromkeys(_NOTE.findall(shown)):
        sign = f"[^{name}]"
        if (at := prose.find(sign)) >= 0:
            yield at, f"`{shorten(sign)}` stands for no footnote; write a line `{sign}: …`"
    for fence in dict.fromkeys(_FENCE.findall(shown)):
        if line := re.search(rf"^[ \t>]*{re.escape(fence)}", prose, re.MULTILINE):
            message = f"no code begins here; put `{fence}` first in its line, and close it likewise"
            yield line.end() - len(fence), message
