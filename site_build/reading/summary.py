"""A description for a document whose author gave none: the beginning of its first paragraph."""

import re

from site_build.checks.burden import find_burden
from site_build.checks.examine import render
from site_build.post import Document

_BEGINNING = 4_000
"""Code points in which the first paragraph is looked for."""

_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]^\n]+\]:[^\n]+$", re.MULTILINE)


def summarise(document: Document, longest: int) -> str:
    """Return the first paragraph as plain text of at most `longest` code points, or an empty one.

    Never raises, whatever the text.
    """
    beginning = _cut_beginning(document.markdown)
    if find_burden(beginning):
        return ""
    try:
        page = render(document, beginning)
    except Exception:  # noqa: BLE001 - a check of the whole text will tell what the converter said
        return ""
    for paragraph in page.css("body > p"):
        for mark in paragraph.css("sup, script, style"):
            mark.decompose()
        if text := " ".join(paragraph.text().split()):
            return _shorten(text, longest)
    return ""


def _cut_beginning(text: str) -> str:
    """Return the first paragraphs, with the definitions of links that stand further down."""
    if len(text) <= _BEGINNING:
        return text
    end = text.rfind("\n\n", 0, _BEGINNING)
    end = end if end > 0 else _BEGINNING
    definitions = _DEFINITION.findall(text, end)
    return "\n".join([text[:end], "", *definitions])


def _shorten(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    words = text[:longest].rpartition(" ")[0] or text[: longest - 1]
    return words.rstrip(" ,;:.\u2013\u2014-") + "\u2026"
