"""Texts that the converter could not get through in any sensible time, told before it starts.

Python-Markdown looks for the end of every bracket, tag and brace anew, so thousands of open ones
in one paragraph would hold a build for hours. No text for people comes near these bounds.
"""

import re
from collections.abc import Iterator

MOST_OPEN = 500
"""Openings that lack their end, in one paragraph; of `<` in the whole text."""

MOST_STEPS = 5_000_000
"""Code points between openings and their ends, summed up over one paragraph."""

MOST_COPIES = 200_000_000
"""Lines that begin something new, times the length of the paragraph that each is cut out of."""

_FENCE = re.compile(r"^(?:`{3,}|~{3,})", re.MULTILINE)
_PARAGRAPH = re.compile(r"^(?:[^\S\n]*+\S[^\n]*+(?:\n|\Z))+", re.MULTILINE)
_BEGINNING = re.compile(
    r"^[ \t>]*+(?:[=*_-][=*_ \t-]*$|#|:[ \t]|!!!|\*?\[[^\]\n]*\]:)", re.MULTILINE
)
_COUNTED = (
    (re.compile(r"\[\^"), 2_000, "marks of footnotes"),
    (re.compile(r"^[ \t>]*\[TOC\]", re.MULTILINE), 10, "tables of contents"),
    (re.compile(r"^[ \t>]*\*\[", re.MULTILINE), 500, "abbreviations"),
)
"""Signs, and how many of them may stand in one text."""
_PAIRS = {
    "[": re.compile(r"\\.|(?P<open>\[)|\]"),
    "](": re.compile(r"\\.|(?P<open>\]\()|\)"),
    "{": re.compile(r"(?P<open>\{)|\}"),
}
_TAG_ENDS = re.compile(r"(?P<open><)|>")


def find_excess(markdown: str) -> tuple[int, str] | None:
    """Return the offset of the first thing that is too much, and what to do, or None."""
    text, loose = _blank_fences(markdown)
    copies = MOST_COPIES // (len(text) + 1)
    return (
        next(filter(None, (_count(text, *each) for each in _COUNTED)), None)
        or _count(text, _FENCE, 5 * copies, "fences")
        or _count(text, _FENCE, copies, "fences without their ends", loose)
        or _weigh(text, "<", _TAG_ENDS, 0)
        or next(_weigh_paragraphs(text), None)
    )


def _count(
    text: str, sign: re.Pattern[str], most: int, name: str, start: int = 0
) -> tuple[int, str] | None:
    found = [each.start() for each in sign.finditer(text, start)]
    return (found[most], f"more than {most} {name}; split the text") if len(found) > most else None


def _blank_fences(text: str) -> tuple[str, int]:
    """Return `text` with blanks for fenced code, and from where on a fence stands open."""
    lines = text.split("\n")
    opened = -1
    fence = ""
    blanks: list[str] = []
    for number, line in enumerate(lines):
        if opened < 0 and (found := _FENCE.match(line)):
            opened, fence, blanks = number, found[0], []
        elif opened >= 0 and line.rstrip() == fence:
            lines[opened + 1 : number] = blanks
            opened = -1
        elif opened >= 0:
            blanks.append(" " * len(line))
    loose = sum(len(line) + 1 for line in lines[:opened]) if opened >= 0 else len(text)
    return "\n".join(lines), loose


def _weigh_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    is_light = all(_is_light(text, sign) for sign in _PAIRS)
    if is_light and text.count("\n") * len(text) < MOST_COPIES:
        return  # No paragraph of the text can be too much.
    for paragraph in _PARAGRAPH.finditer(text):
        for sign, ends in _PAIRS.items():
            if offence := _weigh(paragraph[0], sign, ends, paragraph.start()):
                yield offence
        most = MOST_COPIES // len(paragraph[0])
        if offence := _count(paragraph[0], _BEGINNING, most, "blocks without blank lines"):
            yield paragraph.start() + offence[0], offence[1]


def _is_light(text: str, sign: str) -> bool:
    """Return whether a text has so few of a sign that their ends need not be looked for."""
    count = text.count(sign)
    return count <= MOST_OPEN and count * len(text) <= MOST_STEPS


def _weigh(text: str, sign: str, ends: re.Pattern[str], start: int) -> tuple[int, str] | None:
    """Add up how far each `sign` stands from its end, or from the end of `text`."""
    if _is_light(text, sign):
        return None
    opened: list[int] = []
    steps = 0
    for found in ends.finditer(text):
        if found.lastgroup == "open":
            opened.append(found.start())
        elif opened and found[0][0] != "\\":
            steps += found.start() - opened.pop()
    steps += sum(len(text) - offset for offset in opened)
    if len(opened) <= MOST_OPEN and steps <= MOST_STEPS:
        return None
    where = start + (opened[0] if opened else text.index(sign))
    return where, f"too many `{sign}` stand open here; close them, or put them in a code block"
