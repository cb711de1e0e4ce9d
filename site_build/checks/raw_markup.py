"""Faults in an author's markup: in HTML, and in text that would take too long to convert.

Marks are put into a text before its conversion, and show in the result where each part was written.
Python-Markdown searches for the end of every bracket, tag and brace anew, so thousands of open ones
would hold a build for hours; no text for people has so many.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from site_build.markup.blocks import find_fenced
from site_build.markup.convert import Conversion
from site_build.text import shorten

ATTRIBUTE = "data-at"
"""The attribute that marks an HTML tag; its value is the number of the mark."""

_FIRST_MARK = 0xF0000
_LAST_MARK = 0x10FFFD
"""Private code points, from the first to the last of which each is the mark of a place."""
_MARK_LOOKALIKE = re.compile(f"[{chr(_FIRST_MARK)}-{chr(0x10FFFF)}]")
"""A code point in an author's text that would be taken for a mark."""
_MARK = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}]")
_HARMLESS_MARK = re.compile(
    rf'(?:="[^"<>]*|<h[1-6][^>]*>(?:<[^>]*>)*\s*){_MARK.pattern}'
    rf"|\](?:\(|:)\s*{_MARK.pattern}(?![<&])"
)
"""A mark that changed no HTML: in an attribute, before a heading's text, in what is no link."""

_SHIFTED = re.compile(rf"(?:{_MARK.pattern}|{ATTRIBUTE}=)[^\n]*\t")
"""A mark before a tab in the same line, which shifts the tab and so may change the result."""

# Text before a block's content: indentation, quotes, bullets, numbers, definitions, notes.
_PREFIX = r"^(?:[ \t>*+:\-]|[0-9]{1,9}[.)]|\[\^[^\]\n]{1,99}\]:)*+"
# Text at whose start a mark changes nothing: the text does not begin a block itself.
_SAFE_TEXT = r"(?![ \t\n]*(?:```|~~~|[-=*_#>|:<]|\[TOC\]|\[[^\]\n]*\]:|$))"
_PLACES = re.compile(
    rf"{_PREFIX}#{{1,6}}[ \t]*+(?P<heading>)"
    rf"|{_PREFIX}(?P<underlined>){_SAFE_TEXT}(?=[^\n]*\n[ \t>]*+(?:=+|-+)[ \t]*$)"
    r"|^[ \t>]*+\[\^[^\]\n]*\]:(?P<note>)"
    r"|\](?:\([ \t]*+<?|:[ \t]*+(?=[\w/.#?%{~<])<?)(?P<destination>)(?![ \t]*\n|https?://)"
    r"|\](?:\(|:)[ \t]*+\n[ \t]*+(?P<later>)(?=[\w/.#?])(?!https?://)"
    r"|!\[(?P<description>)(?=[ \t]*\])"
    r"|<(?:a|area|img|h[1-6]|source|video|audio|iframe|embed|track|object)"
    r"(?:\s(?P<attribute>)|(?P<tag>)(?=[/>]))",
    re.MULTILINE | re.IGNORECASE,
)
"""Places that get a mark; the name of the group says what is there."""

_FENCED = re.compile(
    r"^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(?P<fence>`{3,}+|~{3,}+)[^`\n]*\n"
    r"(?:(?:.*?\n)??[ \t>]*(?P=fence)[`~]*[ \t]*$|.*)",
    re.MULTILINE | re.DOTALL,
)
"""Text that looks like fenced code, up to its last fence or to the end of the text."""
_NO_LINE_END = re.compile(r"[^\n]")


class Marked:
    """A text with marks, and the offset in the original text that each mark stands for.

    Code gets no marks, as they would be shown; with `everywhere` it gets them too.
    """

    def __init__(self, text: str, *, everywhere: bool = False) -> None:
        self._offsets: list[int] = []
        self.attributes = 0
        """The number of marks that are attributes."""
        altered = _MARK_LOOKALIKE.search(text) is not None
        text = _MARK_LOOKALIKE.sub("\ufffd", text)
        self.prose = blank_code(text)
        """The text without what looks like code."""
        pieces = []
        done = 0
        for place in _PLACES.finditer(text if everywhere else blank_fences(text)):
            at = place.start(place.lastgroup or 0)
            pieces += [text[done:at], self._make(place)]
            done = at
        self.text = "".join([*pieces, text[done:]])
        self.faithful = not altered and _SHIFTED.search(self.text) is None
        """Whether the marks, taken out again, leave exactly what the author's text would give."""

    def _make(self, place: re.Match[str]) -> str:
        """Return the mark for a place; a tag or an image is reported at its first character."""
        number = len(self._offsets)
        if place.lastgroup == "note" or _FIRST_MARK + number > _LAST_MARK:
            return ""
        whole = place.lastgroup in {"attribute", "tag", "description"}
        self._offsets.append(place.start() if whole else place.start(place.lastgroup or 0))
        forms = {"attribute": f"{ATTRIBUTE}={number} ", "tag": f" {ATTRIBUTE}={number}"}
        self.attributes += place.lastgroup in forms
        return forms.get(place.lastgroup or "", chr(_FIRST_MARK + number))

    def find(self, marked: str) -> int | None:
        """Return the offset that the first mark in `marked` stands for."""
        mark = _MARK.search(marked)
        return self._offset(ord(mark[0]) - _FIRST_MARK) if mark else None

    def find_number(self, number: str) -> int | None:
        """Return the offset that the value of an HTML tag's attribute stands for."""
        digits = re.match("[0-9]{1,6}", number)
        return self._offset(int(digits[0])) if digits else None

    def _offset(self, number: int) -> int | None:
        return self._offsets[number] if number < len(self._offsets) else None


def blank_code(markdown: str) -> str:
    """Replace fenced code by blanks, and code spans by `x`, which no pattern reads as Markdown.

    Offsets stay the same. Text that only looks like code is replaced too: no page is made of this.
    """
    if "`" not in markdown and "~~~" not in markdown:
        return markdown
    text, at, pieces = _FENCED.sub(lambda code: _NO_LINE_END.sub(" ", code[0]), markdown), 0, []
    for start, end in _pair_ticks(text):
        if start >= at and text[start - 1 : start] != "\\":
            pieces += [text[at:start], _NO_LINE_END.sub("x", text[start:end])]
            at = end
    return "".join(pieces) + text[at:]


def blank_fences(text: str) -> str:
    """Return the text with blanks for code between fences at the beginning of lines.

    Only that is certainly code. A mark too many costs a second conversion, but one too few would
    lose a link.
    """
    pieces, done = [], 0
    for fenced in find_fenced(text):
        pieces += [
            text[done : fenced.code],
            _NO_LINE_END.sub(" ", text[fenced.code : fenced.code_end]),
        ]
        done = fenced.code_end
    return "".join([*pieces, text[done:]])


def _pair_ticks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start of each run of backquotes, and the end of the next run of the same length.

    Runs are paired backwards: looking ahead from each would take quadratic time.
    """
    ends: dict[str, int] = {}
    pairs = []
    # No code span extends beyond its paragraph.
    for run in reversed([*re.finditer(r"`+|\n(?=[ \t]*\n)", text)]):
        if run[0] == "\n":
            ends.clear()
        elif end := ends.get(run[0]):
            pairs.append((run.start(), end))
        ends[run[0]] = run.end()
    return reversed(pairs)


def strip_marks(marked: str) -> str:
    """Return `marked` without its marks."""
    return _MARK.sub("", marked)


def clean(conversion: Conversion, marked: Marked) -> Conversion | None:
    """Return the conversion of a marked text without the marks; None if they may have changed it.

    They may have if a mark comes out in another place, such as in code, or looks like something
    that the author wrote. Then the text has to be converted without marks.
    """
    html, found = re.subn(
        rf"(?i)(<[a-z][a-z0-9]*)(?:(\s){ATTRIBUTE}=[0-9]+ |\s{ATTRIBUTE}=[0-9]+(?=[/>])"
        rf'|\s{ATTRIBUTE}="[0-9]+")',
        r"\1\2",
        conversion.html,
    )
    strayed = len(_MARK.findall(html)) - len(_HARMLESS_MARK.findall(html))
    if strayed or not marked.faithful or found != marked.attributes or ATTRIBUTE in html:
        return None
    return Conversion(strip_marks(html), strip_marks(conversion.toc).replace('"> ', '">'))


_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<end>/?)(?P<name>[A-Za-z][^\s/>]*+)"
    r"(?P<rest>(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)>",
    re.DOTALL,
)
_SHOWN: Final = 30  # characters of an element's name in a message
_MISPLACED: Final = {
    "script": "has no effect: the site runs no script of a text; remove it",
    "embed": "has no effect: the site shows no embedded program; remove it, or link to it",
    "object": "has no effect: the site shows no embedded program; remove it, or link to it",
    "iframe": "is shown as a link: pages show no other page within them; write the link",
    **dict.fromkeys(("html", "head", "body"), "belongs to the page around a text; take it out"),
}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RAW: Final = _names("script style textarea title")
"""Elements whose content is no markup (HTML, section 13.1.2)."""
FOREIGN: Final = _names("svg math")
"""Elements whose content is not HTML but another vocabulary."""
VOID: Final = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements without an end tag (HTML, section 13.1.2)."""
CLOSED_BY_OTHERS: Final = _names(
    "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rp rt"
)
"""Elements whose end tag may be left out (HTML, section 13.1.2.4)."""
TABLE_PARTS: Final = _names("caption col colgroup tbody td tfoot th thead tr")
"""Elements that browsers drop outside of a table."""
ELEMENTS: Final = (
    RAW
    | FOREIGN
    | VOID
    | CLOSED_BY_OTHERS
    | _names(
        "a abbr address article aside audio b bdi bdo blockquote body button canvas caption cite "
        "code data datalist del details dfn dialog div dl em fieldset figcaption figure footer "
        "form h1 h2 h3 h4 h5 h6 head header hgroup html i iframe ins kbd label legend main map "
        "mark menu meter nav noscript object ol output picture pre progress q ruby s samp search "
        "section select slot small span strong sub summary sup table template time u ul var video"
    )
)
"""Every element of HTML that is not obsolete."""
ENDS_PARAGRAPH: Final = _names(
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul"
)
"""Elements that no paragraph can hold: it ends where one begins."""


class Flaw(NamedTuple):
    """A tag, and its fault if it has one."""

    tag: str
    """The beginning of the tag: `<div` or `</div`."""
    ordinal: int
    """Its position among the tags of the page that begin so, from 0."""
    number: str
    """The number of the tag's mark; empty without one."""
    name: str
    """The name of the element."""
    message: str = ""
    """The fault and its fix; empty for a tag without a fault."""


def find_flaws(html: str) -> Iterator[Flaw]:
    """Yield the flaws of the tags of a page, each at the tag that shows it."""
    open_tags: list[Flaw] = []
    seen: dict[str, int] = {}
    until = ""
    for found in _TAG.finditer(html):
        name = (found["name"] or "").lower()
        closes = bool(found["end"])
        if not name or (until and not (closes and name == until)):
            continue
        until = "" if closes or name not in RAW | FOREIGN else name
        tag = f"<{found['end']}{name}"
        mark = re.search(rf"\s{ATTRIBUTE}=\"?([0-9]{{1,6}})", found["rest"])
        place = Flaw(tag, seen.get(tag, 0), mark[1] if mark else "", name)
        seen[tag] = place.ordinal + 1
        if closes:
            yield from _close(place, open_tags)
            continue
        if name in TABLE_PARTS and seen.get("<table", 0) == seen.get("</table", 0):
            yield place._replace(
                message=f"`<{name}>` is outside of a table; write `<table>` around it"
            )
        if name in ENDS_PARAGRAPH and open_tags and open_tags[-1].name == "p":
            open_tags.pop()
        if name not in VOID:
            open_tags.append(place)
        if complaint := _complain(name):
            yield place._replace(message=complaint)
    for place in open_tags:
        yield from _explain_open(place)


def find_unterminated(prose: str) -> Iterator[tuple[int, str]]:
    """Yield offsets in `prose`, a text without its code, where a comment or a quote has no end."""
    comment = prose.find("<!--", prose.rfind("-->") + 1)
    if comment >= 0:
        yield comment, "the comment `<!--` is never closed; write `-->`"
    # A `<` begins no tag where a quote before its `>` has no end.
    for tag in re.finditer(
        r"(?<!\\)<(?P<name>[A-Za-z][a-z0-9-]*+)"
        r"(?!(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+>)(?P<rest>\s[^<>]*+)>",
        prose,
    ):
        if re.search("[\"']", re.sub("\"[^\"]*\"|'[^']*'", "", tag["rest"])):
            name = f"<{shorten(tag['name'], _SHOWN)} …>"
            yield tag.start(), f"`{name}` has a quote that is never closed; write it before the `>`"


def _complain(name: str) -> str:
    """Return what is wrong with using an element at all, or an empty text."""
    shown = shorten(name, _SHOWN)
    if name in _MISPLACED:
        return f"`<{name}>` {_MISPLACED[name]}"
    if name.endswith(":"):
        return f'`<{shown}…>` is no link within HTML; write `<a href="…">`'
    is_known = name in ELEMENTS or "-" in name
    fix = "is no element of HTML; use another, or put it between backticks"
    return "" if is_known else f"`<{shown}>` {fix}"


def _close(place: Flaw, open_tags: list[Flaw]) -> Iterator[Flaw]:
    name = place.name
    if all(each.name != name for each in open_tags):
        if name not in VOID:
            yield place._replace(
                message=f"`</{shorten(name, _SHOWN)}>` ends nothing that is open; take it out"
            )
        return
    while (last := open_tags.pop()).name != name:
        yield from _explain_open(last)


def _explain_open(place: Flaw) -> Iterator[Flaw]:
    """Yield the flaw of an element without its end tag; unknown elements are reported already."""
    if (name := place.name) in ELEMENTS - CLOSED_BY_OTHERS:
        yield place._replace(message=f"`<{name}>` is not closed; write `</{name}>`")


MOST_OPEN = 500
"""The most openings without an end in one paragraph; for `<`, in the whole text."""

MOST_STEPS = 5_000_000
"""The most code points between openings and their ends, summed up over one paragraph."""

_COUNTED = (
    (re.compile(r"\[\^"), 2_000, "marks of footnotes"),
    (re.compile(r"^[ \t>]*\[TOC\]", re.MULTILINE), 10, "tables of contents"),
    (re.compile(r"^[ \t>]*\*\[", re.MULTILINE), 500, "abbreviations"),
)
"""Patterns, the most matches of each in one text, and the name of what they match."""
_PAIRS = {
    "[": re.compile(r"\\.|(?P<open>\[)|\]"),
    "](": re.compile(r"\\.|(?P<open>\]\()|\)"),
    "{": re.compile(r"(?P<open>\{)|\}"),
}


def find_excess(markdown: str) -> tuple[int, str] | None:
    """Return the offset and the fix of markup that takes too long to convert; None without it."""
    text = blank_fences(markdown)
    return (
        next(filter(None, (_count(text, *each) for each in _COUNTED)), None)
        or _weigh(text, "<", re.compile(r"(?P<open><)|>"), 0)
        or next(_weigh_paragraphs(text), None)
    )


def _count(text: str, sign: re.Pattern[str], most: int, name: str) -> tuple[int, str] | None:
    found = [each.start() for each in sign.finditer(text)]
    return (found[most], f"more than {most} {name}; split the text") if len(found) > most else None


def _weigh_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    if all(_is_light(text, sign) for sign in _PAIRS):
        return  # No paragraph of the text can exceed a limit.
    for paragraph in re.finditer(r"(?m)^(?:[^\S\n]*+\S[^\n]*+(?:\n|\Z))+", text):
        for sign, ends in _PAIRS.items():
            if offence := _weigh(paragraph[0], sign, ends, paragraph.start()):
                yield offence


def _is_light(text: str, sign: str) -> bool:
    """Return whether a text has so few of a sign that their ends need not be searched for."""
    count = text.count(sign)
    return count <= MOST_OPEN and count * len(text) <= MOST_STEPS


def _weigh(text: str, sign: str, ends: re.Pattern[str], start: int) -> tuple[int, str] | None:
    """Return the offset and message of an excess: too many open `sign`, or too far from their ends.

    A sign without its end counts up to the end of `text`.
    """
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
