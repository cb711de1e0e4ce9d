"""Marks in a Markdown text that survive its conversion and tell where each part was written.

A mark is one private-use character before a link's destination, in an image's empty description
or before a heading's text, and an attribute in an HTML tag. None of these places changes what the
text means, so the converter stays the one judge of that; a mark in code is simply never looked at.
"""

import re

from site_build.markup.convert import Conversion

ATTRIBUTE = "data-at"
"""Holds the number of the mark of an HTML tag."""

_FIRST = 0xF0000
_LAST = 0x10FFFD
_NUMBERED = re.compile(
    rf"(<[a-z][a-z0-9]*)(?:(\s){ATTRIBUTE}=[0-9]+ |\s{ATTRIBUTE}=[0-9]+(?=[/>])"
    rf'|\s{ATTRIBUTE}="[0-9]+")',
    re.IGNORECASE,
)
_FOREIGN = re.compile(f"[{chr(_FIRST)}-{chr(0x10FFFF)}]")
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_AT_HOME = re.compile(
    rf'(?:="[^"<>]*|<h[1-6][^>]*>(?:<[^>]*>)*\s*){_MARK.pattern}'
    rf"|\](?:\(|:)\s*{_MARK.pattern}(?![<&])"
)
"""A mark that changed nothing: in an attribute, before a heading's text, in what is no link."""

_SHIFTED = re.compile(rf"(?:{_MARK.pattern}|{ATTRIBUTE}=)[^\n]*\t")
"""A mark that changes how far a tab behind it reaches."""

# What may stand before a block's text: indentation, quotes, bullets, numbers, definitions, notes.
_PREFIX = r"^(?:[ \t>*+:\-]|[0-9]{1,9}[.)]|\[\^[^\]\n]{1,99}\]:)*+"
_UNSAFE = r"(?![ \t\n]*(?:```|~~~|[-=*_#>|:<]|\[TOC\]|\[[^\]\n]*\]:|$))"
_PLACES = re.compile(
    rf"{_PREFIX}#{{1,6}}[ \t]*+(?P<heading>)"
    rf"|{_PREFIX}(?P<underlined>){_UNSAFE}(?=[^\n]*\n[ \t>]*+(?:=+|-+)[ \t]*$)"
    r"|^[ \t>]*+\[\^[^\]\n]*\]:(?P<note>)"
    r"|\](?:\([ \t]*+<?|:[ \t]*+(?=[\w/.#?%{~<])<?)(?P<destination>)(?![ \t]*\n|https?://)"
    r"|\](?:\(|:)[ \t]*+\n[ \t]*+(?P<later>)(?=[\w/.#?])"
    r"|!\[(?P<description>)(?=[ \t]*\])"
    r"|<(?:a|area|img|h[1-6]|source|video|audio|iframe|embed|track|object)"
    r"(?:\s(?P<attribute>)|(?P<tag>)(?=[/>]))",
    re.MULTILINE | re.IGNORECASE,
)


class Marked:
    """A text with its marks, and the way back from a mark to its offset in the text."""

    def __init__(self, text: str) -> None:
        self._offsets: list[int] = []
        self.attributes = 0
        """How many of the marks are attributes."""
        altered = _FOREIGN.search(text) is not None
        text = _FOREIGN.sub("\ufffd", text)
        pieces = []
        done = 0
        for place in _PLACES.finditer(text):
            at = place.start(place.lastgroup or 0)
            pieces += [text[done:at], self._make(place)]
            done = at
        self.text = "".join([*pieces, text[done:]])
        self.faithful = not altered and _SHIFTED.search(self.text) is None
        """Whether the text without its marks is, for a converter, the one that was given."""

    def _make(self, place: re.Match[str]) -> str:
        """Return the mark for a place; what is shown by its first sign is reported there."""
        number = len(self._offsets)
        if place.lastgroup == "note" or _FIRST + number > _LAST:
            return ""
        whole = place.lastgroup in {"attribute", "tag", "description"}
        self._offsets.append(place.start() if whole else place.start(place.lastgroup or 0))
        match place.lastgroup:
            case "attribute":
                self.attributes += 1
                return f"{ATTRIBUTE}={number} "
            case "tag":
                self.attributes += 1
                return f" {ATTRIBUTE}={number}"
            case _:
                return chr(_FIRST + number)

    def find(self, marked: str) -> int | None:
        """Return the offset that the first mark in `marked` stands for."""
        mark = _MARK.search(marked)
        return self._offset(ord(mark[0]) - _FIRST) if mark else None

    def find_number(self, number: str) -> int | None:
        """Return the offset that the value of an HTML tag's attribute stands for."""
        digits = re.match("[0-9]{1,6}", number)
        return self._offset(int(digits[0])) if digits else None

    def _offset(self, number: int) -> int | None:
        return self._offsets[number] if number < len(self._offsets) else None


def strip_marks(marked: str) -> str:
    """Return `marked` without its marks."""
    return _MARK.sub("", marked)


def clean(conversion: Conversion, marked: Marked) -> Conversion | None:
    """Return the conversion of a marked text as if it had borne no marks, or None.

    A mark that comes out elsewhere, such as in code, may have changed how the text was read; so may
    one that cannot be told from what the author wrote. Then it has to be converted without marks.
    """
    html, found = _NUMBERED.subn(r"\1\2", conversion.html)
    strayed = len(_MARK.findall(html)) - len(_AT_HOME.findall(html))
    if strayed or not marked.faithful or found != marked.attributes or ATTRIBUTE in html:
        return None
    return Conversion(strip_marks(html), strip_marks(conversion.toc).replace('"> ', '">'))
