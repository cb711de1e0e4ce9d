"""The FTS5 queries for what a person typed, and the highlights of the words that were found."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby, islice, pairwise, zip_longest
from operator import attrgetter
from typing import Final, NamedTuple
from unicodedata import combining, normalize

from edge_api.schema.index import MAX_QUERY_LENGTH, Segments, TextSegment

MATCH_START, MATCH_END = "\ufdd0", "\ufdd1"
WORD_BREAK: Final = "\x1f"
"""Separates words for FTS5 where a reader sees no space. A control character, since FTS5 takes
noncharacters, such as MATCH_START, for parts of words."""
ELLIPSIS: Final = "\u2026"
"""The text in place of an omitted one."""

_MARKED: Final = re.compile(f"{MATCH_START}(.*?){MATCH_END}", re.DOTALL)
_UNSPACED_LETTER: Final = (
    "[\u0e01-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3105-\u312f\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters of scripts without spaces between words (Thai, Lao, Tibetan, Burmese, Khmer, kana, Han),
and of Korean, whose particles have none before them."""
_UNSPACED_PATTERN: Final = re.compile(_UNSPACED_LETTER)
_MAX_BREAK_DISTANCE: Final = 24  # characters between a cut and the space that it is moved to


def to_index_text(text: str) -> str:
    """Insert word breaks, remove highlight markers and NUL."""
    for sign in (MATCH_START, MATCH_END, WORD_BREAK):
        text = text.replace(sign, "")
    return split_unspaced(text.replace("\x00", " "))


def split_unspaced(text: str) -> str:
    """Return the text with each letter of a script without spaces as a word of its own.

    A phrase query then finds such letters anywhere in a text, even a single one.
    """
    return (
        text if text.isascii() else _UNSPACED_PATTERN.sub(rf"{WORD_BREAK}\g<0>{WORD_BREAK}", text)
    )


def parse_highlights(text: str) -> Segments:
    """Return the segments of a text that the engine has marked."""
    pieces = enumerate(_MARKED.split(text.replace(WORD_BREAK, "")))
    return tuple(TextSegment(piece, number % 2 == 1) for number, piece in pieces if piece)


def make_snippet(segments: Segments, length: int) -> Segments:
    """Return about `length` characters, from the place with the most different matched words.

    FTS5's own function `snippet` takes a time that grows with the square of the matches, and counts
    words, which in scripts without spaces may be whole paragraphs.
    """
    text = "".join(segment.text for segment in segments)
    if len(text) <= length:
        return segments
    starts = accumulate((len(segment.text) for segment in segments), initial=0)
    placed = list(zip(starts, segments, strict=False))
    matches = [(start, piece.casefold()) for start, (piece, is_match) in placed if is_match]
    begin = _snippet_start(text, _best_match(matches, length // 2), length)
    end = _break_before(text, begin + length)
    before = [TextSegment(ELLIPSIS, is_match=False)] if begin else []
    behind = [TextSegment(ELLIPSIS, is_match=False)] if end < len(text) else []
    cut = [
        TextSegment(piece[max(0, begin - start) : end - start], is_match)
        for start, (piece, is_match) in placed
        if piece and start < end and begin < start + len(piece)
    ]
    shown = [*before, *cut, *behind]
    # Adjacent segments of one kind become one.
    return tuple(
        TextSegment("".join(segment.text for segment in group), is_match)
        for is_match, group in groupby(shown, attrgetter("is_match"))
    )


def _best_match(matches: Sequence[tuple[int, str]], width: int) -> int:
    """Return the start of the `width` characters with the most different words; 0 for none.

    `matches` are the start of each matched word and the word.
    """
    best, length, first = 0, 0, 0
    last_seen: dict[str, int] = {}
    for number, (start, word) in enumerate(matches):
        last_seen[word] = number
        while start - matches[first][0] > width:
            if last_seen.get(matches[first][1]) == first:
                del last_seen[matches[first][1]]
            first += 1
        if len(last_seen) > length:
            best, length = matches[first][0], len(last_seen)
    return best


def _snippet_start(text: str, match: int, length: int) -> int:
    """Return the start of a snippet, a quarter of its length before the match, near a space."""
    begin = max(0, min(match - length // 4, len(text) - length))
    space = text.find(" ", begin, min(begin + _MAX_BREAK_DISTANCE, match))
    return begin if begin == 0 or space < 0 else space + 1


def _break_before(text: str, end: int) -> int:
    """Return the last place before `end` where a word ends, if there is one near it."""
    space = text.rfind(" ", end - _MAX_BREAK_DISTANCE, end + 1)
    return end if space < 0 or end >= len(text) else space


MAX_TERMS: Final = 16  # terms of a query that are searched for: each costs an index lookup
_STOP_WORDS_TEXT: Final = (
    "a about all an and any are as at be been but by can could did do does for from had has have "
    "how i if in into is it its me my no not of on or our should so some than that the their them "
    "then there these they this to up us was we were what when where which who why will with would "
    "you your"
)
STOP_WORDS: Final = frozenset(_STOP_WORDS_TEXT.split())
"""English words that are ignored in a query that has other words."""
_WORD: Final = re.compile(rf"{_UNSPACED_LETTER}+|(?:(?!{_UNSPACED_LETTER})[^\W_])+")
"""One word to FTS5's tokenizer, or a run of letters of scripts without spaces."""
_PLAIN_QUOTES: Final = {0: " ", **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"')}
"""A table for `str.translate`: NUL becomes a space, a typographic quotation mark a plain one."""
_UNSPACED_PAIR: Final = re.compile(rf"(?=({_UNSPACED_LETTER}{_UNSPACED_LETTER}))")

FindForms = Callable[[str], Sequence[str]]
"""Returns the other words in the index with the stem of a word."""


class FtsQuery(NamedTuple):
    """FTS5 queries, and the words that they were made of."""

    all_as_typed: str
    """Posts with every word as typed."""
    all_words: str
    """Posts with every word in any form; the last may be the beginning of one."""
    highlight: str
    """Posts with any of the words in any form; these matches are highlighted."""
    words: tuple[str, ...]
    """The words without stop words, also those of phrases; in scripts without spaces, each pair of
    adjacent letters."""
    per_word: tuple[str, ...]
    """For each of `words`: posts with it in any form."""
    adjacent_words: tuple[str, ...]
    """For each of `words` but the last: posts where the next one follows it."""


class _Term(NamedTuple):
    text: str
    """A phrase or a word without quotation marks, so that `_quote` makes one FTS5 string of it."""
    is_phrase: bool
    is_prefix: bool = False
    """Whether it may be the beginning of a word."""


def has_word(words: str) -> bool:
    """Return whether there is a word in what a person typed."""
    return _WORD.search(words, 0, MAX_QUERY_LENGTH) is not None


def make_fts_query(words: str, forms: FindForms) -> FtsQuery:
    """Return the queries for what a person typed, which must contain a word."""
    given = _read_terms(words)
    distinctive = [
        at
        for at, term in enumerate(given)
        if term.is_phrase or term.text.casefold() not in STOP_WORDS
    ]
    needed = (distinctive or [*range(len(given))])[:MAX_TERMS]
    terms = [given[at] for at in needed]
    any_forms = [_any_form(term, forms) for term in terms]
    spans = [
        _quote(" ".join(term.text for term in given[first : last + 1]))
        for first, last in pairwise(needed)
    ]
    parts = [*_split_terms(terms)]
    return FtsQuery(
        all_as_typed=_all_of([_quote(term.text) for term in terms], spans),
        all_words=_all_of(any_forms, spans),
        highlight=" OR ".join(any_forms),
        words=tuple(part.text for part in parts),
        per_word=tuple(_any_form(part, forms) for part in parts),
        adjacent_words=tuple(_quote(f"{one.text} {next_.text}") for one, next_ in pairwise(parts)),
    )


def _read_terms(words: str) -> list[_Term]:
    """Return the phrases, and the words outside of phrases, each once.

    A phrase is text between two quotation marks of any kind.
    """
    clean = words[:MAX_QUERY_LENGTH].encode("utf-8", "replace").decode().translate(_PLAIN_QUOTES)
    pieces = clean.split('"')
    found = [
        _Term(text, is_phrase)
        for number, piece in enumerate(pieces)
        for is_phrase in [number % 2 == 1 and number < len(pieces) - 1]
        for text in (
            [piece] if is_phrase else re.sub(r"(?<=[^\W_])['\u2019]s\b", "", piece).split()
        )
        if _WORD.search(text)
    ]
    terms: dict[str, _Term] = {}
    for term in found:
        terms.setdefault(term.text.casefold(), term)
    if found and _is_unfinished(clean, last := found[-1]) and terms[last.text.casefold()] is last:
        terms[last.text.casefold()] = last._replace(is_prefix=True)
    return list(terms.values())


def _is_unfinished(words: str, last: _Term) -> bool:
    """Return whether the person may still be typing the last term.

    Punctuation at the end shows that it is finished. A single letter or digit counts as finished
    too, since words of every post begin with it. A combining accent is part of its letter.
    """
    letters = "".join(sign for sign in normalize("NFC", last.text) if not combining(sign))
    is_ended = not (words[-1].isspace() or words[-1].isalnum())
    return not is_ended and all(len(word) > 1 for word in _WORD.findall(letters)[-1:])


def _split_terms(terms: Sequence[_Term]) -> Iterator[_Term]:
    """Yield the words of terms without stop words, each once."""
    texts = dict.fromkeys(
        part
        for term in terms
        for word in _WORD.findall(term.text)
        for part in _UNSPACED_PAIR.findall(word) or [word]
        if word.casefold() not in STOP_WORDS and (len(word) > 1 or re.match(_UNSPACED_LETTER, word))
    )
    last = _WORD.findall(terms[-1].text)[-1]
    prefix = (_UNSPACED_PAIR.findall(last) or [last])[-1] if terms[-1].is_prefix else None
    for text in islice(texts, MAX_TERMS):
        yield _Term(text, is_phrase=False, is_prefix=text == prefix)


def _quote(text: str) -> str:
    return f'"{split_unspaced(text)}"'


def _any_form(term: _Term, forms: FindForms) -> str:
    """Return the query for a term as typed, or with its last word in another form."""
    start = term.text.rfind(last := _WORD.findall(term.text)[-1])
    others = () if term.is_phrase else forms(last)
    quoted = [_quote(term.text[:start] + form) for form in others]
    return " OR ".join([_quote(term.text) + "*" * term.is_prefix, *quoted])


def _all_of(queries: Sequence[str], spans: Sequence[str]) -> str:
    """Return the query for posts that match all queries.

    A span is the phrase from one term to the next, as typed. The query for a term or its span finds
    no more posts than that for the term, but ranks those with the span higher.
    """
    joined = zip_longest(queries, spans, fillvalue="")
    return " AND ".join(f"({query} OR {span})" if span else f"({query})" for query, span in joined)
