"""Marks around the words that were found: put in by the engine, and read back as segments.

Two of Unicode's noncharacters, which text is never made of (section 23.7), and a control character
that ends words. Where a post has one all the same, it is taken out before the post is indexed, so
that nobody can forge a mark.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from edge_api.schema.search import Segment, Segments

OPENING, CLOSING = "\ufdd0", "\ufdd1"
SEAM: Final = "\x1f"
"""Ends a word for the engine where a reader sees no end: the engine takes no noncharacter for a
sign between words."""
CUT: Final = "\u2026"
"""What stands where text was left out."""

_MARKED: Final = re.compile(f"{OPENING}(.*?){CLOSING}", re.DOTALL)
DENSE: Final = (
    "[\u0e01-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3105-\u312f\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters of scripts without spaces between words (Thai, Lao, Tibetan, Burmese, Khmer, kana, Han),
and of Korean, whose particles have none before them."""
_DENSE: Final = re.compile(DENSE)
_LONGEST_WORD: Final = 24
"""Characters within which a cut looks for a place between words."""


def prepare(text: str) -> str:
    """Return the text for the index: with seams, and without anything that is taken for a mark.

    NUL would end a text for the engine.
    """
    for sign in (OPENING, CLOSING, SEAM):
        text = text.replace(sign, "")
    return split_dense(text.replace("\x00", " "))


def split_dense(text: str) -> str:
    """Return the text with each letter of a script without spaces as a word of its own.

    So a phrase of such letters is any part of a text, from one letter on.
    """
    return text if text.isascii() else _DENSE.sub(rf"{SEAM}\g<0>{SEAM}", text)


def read_marks(text: str) -> Segments:
    """Return the segments of a text that the engine has marked."""
    pieces = enumerate(_MARKED.split(text.replace(SEAM, "")))
    return tuple(Segment(piece, number % 2 == 1) for number, piece in pieces if piece)


def has_match(segments: Segments) -> bool:
    """Tell whether a word that was looked for is among the segments."""
    return any(segment.is_match for segment in segments)


def make_snippet(segments: Segments, most: int) -> Segments:
    """Return about `most` characters where the most different words stand that were looked for.

    The engine has a function for that, whose time grows with the square of the matches, and which
    counts words: those of scripts without spaces may be whole paragraphs.
    """
    text = "".join(segment.text for segment in segments)
    if len(text) <= most:
        return segments
    begin = _begin(text, _best_match(list(_list_matches(segments)), most // 2), most)
    end = _break_before(text, begin + most)
    before = [Segment(CUT, is_match=False)] if begin else []
    behind = [Segment(CUT, is_match=False)] if end < len(text) else []
    return tuple(_join([*before, *_cut(segments, begin, end), *behind]))


class _Match(NamedTuple):
    start: int
    word: str


def _list_matches(segments: Segments) -> Iterator[_Match]:
    position = 0
    for text, is_match in segments:
        if is_match:
            yield _Match(position, text.casefold())
        position += len(text)


def _best_match(matches: Sequence[_Match], width: int) -> int:
    """Return where the stretch of `width` begins that has the most different words; 0 for none."""
    best, most, first = 0, 0, 0
    last_seen: dict[str, int] = {}
    for number, match in enumerate(matches):
        last_seen[match.word] = number
        while match.start - matches[first].start > width:
            if last_seen.get(matches[first].word) == first:
                del last_seen[matches[first].word]
            first += 1
        if len(last_seen) > most:
            best, most = matches[first].start, len(last_seen)
    return best


def _begin(text: str, match: int, most: int) -> int:
    """Return where to begin so that a quarter stands before the match, behind a space if may be."""
    begin = max(0, min(match - most // 4, len(text) - most))
    space = text.find(" ", begin, min(begin + _LONGEST_WORD, match))
    return begin if begin == 0 or space < 0 else space + 1


def _break_before(text: str, end: int) -> int:
    """Return the last place before `end` where a word ends, if there is one near it."""
    space = text.rfind(" ", end - _LONGEST_WORD, end + 1)
    return end if space < 0 or end >= len(text) else space


def _cut(segments: Segments, start: int, end: int) -> Iterator[Segment]:
    position = 0
    for text, is_match in segments:
        piece = text[max(0, start - position) : max(0, end - position)]
        if piece:
            yield Segment(piece, is_match)
        position += len(text)


def _join(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yield what stands side by side and is of one kind as one segment."""
    for is_match, group in groupby(segments, attrgetter("is_match")):
        yield Segment("".join(segment.text for segment in group), is_match)
