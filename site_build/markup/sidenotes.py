"""Footnotes that also stand beside the text, where a page is wide enough."""

import re
from collections import Counter

_NOTE = re.compile(
    r'<li id="fn-([^"]+)" value="(\d+)">\s*<p>((?:(?!<p\b).){1,800}?)</p>\s*</li>', re.DOTALL
)
"""A footnote of one paragraph. A longer one would push those after it far away from their marks."""
_ONCE = re.compile(r' id="[^"]*"(?=[^<>]*>)|(?:\s|&#160;)*<a [^>]*class="footnote-backref".*?</a>')
"""What a note has once in a page."""
_MARK = re.compile(
    r'<(h[1-6]|table|summary|figcaption)\b.*?</\1>|<div [^>]*class="footnote".*'
    r'|<sup id="fnref-([^"]+)">.*?</sup>',
    re.DOTALL,
)
"""A first mark of a note, or an element that has no side: a heading is read out whole, and a cell
is too narrow."""


def add_sidenotes(html: str) -> str:
    """Return HTML with each short footnote of one paragraph also behind the mark that names it.

    The copy is `hidden`, until a style sheet shows it and hides the note below the text.

    A note with several marks stays below, where each of them finds it, and so does one whose mark
    has no room at its side.
    """
    links = Counter(re.findall(r'href="#fn-([^"]+)"', html))
    marks = {mark for _, mark in _MARK.findall(html) if links[mark] == 1}
    notes = {
        name: f'<span class="sidenote" hidden><sup>{number}</sup> {_ONCE.sub("", text)}</span>'
        for name, number, text in _NOTE.findall(html)
        if name in marks
    }
    html = _MARK.sub(lambda found: found[0] + notes.get(found[2], ""), html)
    return re.sub(
        r'<li (?=id="fn-([^"]+)")',
        lambda found: '<li class="beside" ' if found[1] in notes else found[0],
        html,
    )
