"""What a person typed, as a question that FTS5 takes: pure, and open to any text."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final
from unicodedata import combining, east_asian_width, normalize

from edge_api.schema.search import WORDS_LONGEST

TERMS_MOST: Final = 16
"""Terms of a question that count: each costs a look into the index."""
_TOKEN: Final = re.compile(r"[^\W_]+")
"""What FTS5's tokenizer takes for one word."""
_WIDE: Final = frozenset("WH")
"""East Asian widths (UAX 11) of signs that are words: ideographs, kana, Hangul."""


def make_question(words: str) -> str:
    """Return the FTS5 query for what a person typed; empty when there is no word in it."""
    given = list(filter(_has_word, _terms(words[:WORDS_LONGEST])))
    terms = list(islice(_fold(given), TERMS_MOST))
    is_open = _is_open(words, given) and given[-1:] == terms[-1:] and not _repeats_last(given)
    return " AND ".join(f'"{term}"' for term in terms) + ("*" if is_open else "")


def _fold(terms: Iterable[str]) -> Iterable[str]:
    """Return each term once: to look for it again would cost as much, and find the same."""
    folded: dict[str, str] = {}
    for term in terms:
        folded.setdefault(term.casefold(), term)
    return folded.values()


def _repeats_last(terms: list[str]) -> bool:
    """Tell whether the last term stands before too: as a whole word, which says more."""
    return terms[-1].casefold() in map(str.casefold, terms[:-1])


def _is_open(words: str, terms: list[str]) -> bool:
    """Tell whether the last term is still being typed.

    A quotation mark at the end closes a phrase, a sign closes a word; and one letter of an alphabet
    begins words in every post, which would be costly and say nothing.
    """
    is_ended = not (words[-1:].isspace() or words[-1:].isalnum())
    return bool(terms) and not is_ended and not _ends_in_letter(terms[-1])


def _ends_in_letter(term: str) -> bool:
    """Tell whether the last word of a term is one letter of an alphabet, or one digit.

    An accent is part of its letter, also where it is a character of its own.
    """
    letters = "".join(sign for sign in normalize("NFC", term) if not combining(sign))
    last = _TOKEN.findall(letters)[-1:]
    return all(len(token) == 1 and east_asian_width(token) not in _WIDE for token in last)


def _terms(words: str) -> Iterator[str]:
    """Yield each phrase and each word between them.

    Every second piece between quotation marks is a phrase, if it is closed. Pieces hold no
    quotation mark, so that each is one FTS5 string when it stands between two.
    """
    clean = words.encode("utf-8", "replace").decode().replace("\x00", " ")
    pieces = clean.split('"')
    for number, piece in enumerate(pieces):
        is_phrase = number % 2 == 1 and number < len(pieces) - 1
        yield from [piece] if is_phrase else piece.split()


def _has_word(term: str) -> bool:
    return any(map(str.isalnum, term))
