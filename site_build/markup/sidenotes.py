"""Footnotes that also stand beside the text, where a page is wide enough."""

import re

_NOTE = re.compile(
    r'<li id="fn-([^"]+)" value="(\d+)">\s*<p>((?:(?!<p\b).){1,800}?)</p>\s*</li>', re.DOTALL
)
"""A footnote of one paragraph. A longer one would push those after it far away from their marks."""
_ONCE = re.compile(r' id="[^"]*"|(?:\s|&#160;)*<a [^>]*class="footnote-backref".*?</a>')
"""What a note has once in a page."""
_NO_PLACE = re.compile(r'<(/?)(?:h[1-6]|t[dh]|table|summary|figcaption|div class="footnote")\b')
"""Tags of elements that have no side: a heading is read out whole, a cell is too narrow."""


def add_sidenotes(html: str) -> str:
    """Return HTML with each short footnote of one paragraph also behind the mark that names it.

    The copy is `hidden`, until a style sheet shows it and hides the note below the text.

    A note with several marks stays below, where each of them finds it, and so does one whose mark
    has no room at its side.
    """
    for name, number, text in _NOTE.findall(html):
        before, mark, after = html.partition(f'<sup id="fnref-{name}">')
        link, end, rest = after.partition("</sup>")
        places = _NO_PLACE.findall(before)
        is_alone = html.count(f'href="#fn-{name}"') == 1
        if not end or not is_alone or places[-1:] == [""]:
            continue
        note = f"<sup>{number}</sup> {_ONCE.sub('', text)}"
        html = f'{before}{mark}{link}{end}<span class="sidenote" hidden>{note}</span>{rest}'
        html = html.replace(f'<li id="fn-{name}"', f'<li class="beside" id="fn-{name}"')
    return html
