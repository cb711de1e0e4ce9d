"""The FTS5 queries for what a person typed: pure, and open to any text."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from typing import Final, NamedTuple
from unicodedata import combining, normalize

from edge_api.schema.search import WORDS_LONGEST
from edge_api.store.search.marks import DENSE, split_dense

TERMS_MOST: Final = 16
"""Terms of a question that count: each costs a look into the index."""
_COMMON: Final = (
    "a about all an and any are as at be been but by can could did do does for from had has have "
    "how i if in into is it its me my no not of on or our should so some than that the their them "
    "then there these they this to up us was we were what when where which who why will with would "
    "you your"
)
COMMON_WORDS: Final = frozenset(_COMMON.split())
"""English words that a post need not have where other words are asked for."""
_WORD: Final = re.compile(rf"{DENSE}+|(?:(?!{DENSE})[^\W_])+")
"""What FTS5's tokenizer takes for one word, or a run of letters of scripts without spaces."""
_POSSESSIVE: Final = re.compile(r"(?<=[^\W_])['’]s\b")  # noqa: RUF001
_PAIR: Final = re.compile(rf"(?=({DENSE}{DENSE}))")

Forms = Callable[[str], Sequence[str]]
"""Returns the other words of the posts that have the stem of a word."""


class Question(NamedTuple):
    """FTS5 queries, and the words that they were made of."""

    exact: str
    """Posts with every word as typed."""
    every: str
    """Posts with every word in any form; the last may be the beginning of one."""
    marked: str
    """Posts with any of the words in any form: what is marked in those of `every`."""
    words: tuple[str, ...]
    """The words that tell posts apart, also those of phrases; of scripts without spaces, each two
    letters that stand together."""
    each: tuple[str, ...]
    """For each of `words`: posts with it in any form."""
    pairs: tuple[str, ...]
    """For each of `words` but the last: posts where the next one follows it."""


class _Term(NamedTuple):
    text: str
    """A phrase or a word; it holds no quotation mark, so that it is one FTS5 string between two."""
    is_phrase: bool
    is_open: bool = False
    """Whether it may be the beginning of a word."""

    @property
    def is_common(self) -> bool:
        """Whether a post need not have it."""
        return not self.is_phrase and self.text.casefold() in COMMON_WORDS


def has_word(words: str) -> bool:
    """Tell whether there is a word in what a person typed."""
    return _WORD.search(words, 0, WORDS_LONGEST) is not None


def make_question(words: str, forms: Forms) -> Question:
    """Return the queries for what a person typed, in which there is a word."""
    given = _read_terms(words)
    telling = [at for at, term in enumerate(given) if not term.is_common]
    needed = (telling or [*range(len(given))])[:TERMS_MOST]
    terms = [given[at] for at in needed]
    every = [_widen(term, forms) for term in terms]
    spans = [
        _quote(" ".join(term.text for term in given[first : last + 1]))
        for first, last in pairwise(needed)
    ]
    parts = [*_take_apart(terms)]
    return Question(
        exact=_require([_quote(term.text) for term in terms], spans),
        every=_require(every, spans),
        marked=" OR ".join(every),
        words=tuple(part.text for part in parts),
        each=tuple(_widen(part, forms) for part in parts),
        pairs=tuple(_quote(f"{one.text} {next_.text}") for one, next_ in pairwise(parts)),
    )


def _read_terms(words: str) -> list[_Term]:
    """Return each phrase, and each word between them, once: it would find the same again.

    Every second piece between quotation marks is a phrase, if it is closed.
    """
    clean = words[:WORDS_LONGEST].encode("utf-8", "replace").decode().replace("\x00", " ")
    pieces = clean.split('"')
    found = [
        _Term(text, is_phrase)
        for number, piece in enumerate(pieces)
        for is_phrase in [number % 2 == 1 and number < len(pieces) - 1]
        for text in ([piece] if is_phrase else _POSSESSIVE.sub("", piece).split())
        if _WORD.search(text)
    ]
    terms: dict[str, _Term] = {}
    for term in found:
        terms.setdefault(term.text.casefold(), term)
    if found and _is_unfinished(clean, last := found[-1]) and terms[last.text.casefold()] is last:
        terms[last.text.casefold()] = last._replace(is_open=True)
    return list(terms.values())


def _is_unfinished(words: str, last: _Term) -> bool:
    """Tell whether the last term may still be typed.

    A quotation mark at the end closes a phrase, a sign closes a word; and one letter or digit
    begins words in every post. An accent is part of its letter, also as a character of its own.
    """
    letters = "".join(sign for sign in normalize("NFC", last.text) if not combining(sign))
    is_ended = not (words[-1].isspace() or words[-1].isalnum())
    return not is_ended and all(len(word) > 1 for word in _WORD.findall(letters)[-1:])


def _take_apart(terms: Sequence[_Term]) -> Iterator[_Term]:
    """Yield the words of terms that tell posts apart, each once."""
    texts = dict.fromkeys(
        part
        for term in terms
        for word in _WORD.findall(term.text)
        for part in _PAIR.findall(word) or [word]
        if word.casefold() not in COMMON_WORDS and (len(word) > 1 or re.match(DENSE, word))
    )
    last = _WORD.findall(terms[-1].text)[-1]
    open_part = (_PAIR.findall(last) or [last])[-1] if terms[-1].is_open else None
    for text in islice(texts, TERMS_MOST):
        yield _Term(text, is_phrase=False, is_open=text == open_part)


def _quote(text: str) -> str:
    return f'"{split_dense(text)}"'


def _widen(term: _Term, forms: Forms) -> str:
    """Return the query for a term as typed, or with its last word in another form."""
    start = term.text.rfind(last := _WORD.findall(term.text)[-1])
    others = () if term.is_phrase else forms(last)
    quoted = [_quote(term.text[:start] + form) for form in others]
    return " OR ".join([_quote(term.text) + "*" * term.is_open, *quoted])


def _require(queries: Sequence[str], spans: Sequence[str]) -> str:
    """Return the query for posts that match all queries.

    A span begins with the term of its query: it finds no more posts, but ranks those higher where
    terms stand together as typed.
    """
    joined = zip_longest(queries, spans, fillvalue="")
    return " AND ".join(f"({query} OR {span})" if span else f"({query})" for query, span in joined)
