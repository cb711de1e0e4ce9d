"""The measures of a text: how much there is of it, and how hard it is to read."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyphen  # type: ignore[import-untyped]

from edge_api.domain.analysis.document import Document
from edge_api.domain.analysis.guess import guess_language
from edge_api.domain.analysis.language_tags import primary
from edge_api.domain.analysis.languages import Flesch, language_of
from edge_api.domain.analysis.words import count_words, has_spaces, sentence_lengths, words_in
from edge_api.schema.reading import reading_minutes

LONG_WORD: Final = 6
"""Letters that a long word has more of (Björnsson's LIX, 1968)."""
LONG_SENTENCE: Final = 30
LONG_PARAGRAPH: Final = 150
"""Words."""
_SPOKEN_MOST: Final = 40
"""Letters of a word that anybody says; of a longer one syllables are reckoned, not looked up."""
_UNSPACED: Final = frozenset(
    ("ja", "zh", "cmn", "yue", "wuu", "nan", "hak", "lzh", "th", "lo", "km", "my", "bo", "dz")
)
"""Languages that put no spaces between words."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The measures of one document."""

    words: int
    sentences: int
    paragraphs: int
    reading_minutes: int
    avg_sentence_words: float
    lix: float | None
    """Läsbarhetsindex: words in a sentence, and long words in a hundred. `None` for a language that
    puts no spaces between words, where neither can be counted."""
    flesch_reading_ease: float | None
    """`None` for a language without such a formula."""
    language: str
    """A BCP 47 tag; `und` where nobody could tell."""
    long_sentences: int
    long_paragraphs: int


def measure(document: Document, language: str | None = None) -> Metrics:
    """Return the measures of a document, in the language that is given, stated or guessed."""
    texts = [block.text for block in document.blocks]
    words = [word for text in texts for word in words_in(text)]
    stated = document.page.language if document.page else None
    tag = language or stated or guess_language(words)
    known = language_of(tag)
    lengths = [length for text in texts for length in sentence_lengths(text, known)]
    sentences = max(1, len(lengths))
    return Metrics(
        words=len(words),
        sentences=len(lengths),
        paragraphs=sum(1 for _ in _paragraph_lengths(document)),
        reading_minutes=reading_minutes(document.reading),
        avg_sentence_words=round(len(words) / sentences, 1),
        lix=_lix(words, sentences) if _is_spaced(words, tag) else None,
        flesch_reading_ease=_ease(words, sentences, known.flesch),
        language=tag,
        long_sentences=sum(length > LONG_SENTENCE for length in lengths),
        long_paragraphs=sum(length > LONG_PARAGRAPH for length in _paragraph_lengths(document)),
    )


def _paragraph_lengths(document: Document) -> Iterator[int]:
    """Yield the words of each paragraph that has any."""
    lengths = (count_words(each.text) for each in document.blocks if each.kind == "paragraph")
    return filter(None, lengths)


def _is_spaced(words: list[str], tag: str) -> bool:
    return primary(tag) not in _UNSPACED and has_spaces(words)


def _lix(words: list[str], sentences: int) -> float:
    long = sum(len(word) > LONG_WORD and any(map(str.isalpha, word)) for word in words)
    return round(len(words) / sentences + 100 * long / len(words), 1) if words else 0.0


def _ease(words: list[str], sentences: int, formula: Flesch | None) -> float | None:
    if formula is None or not words:
        return None
    syllables = _count_syllables(words, formula.hyphenation)
    per_sentence, per_word = len(words) / sentences, syllables / len(words)
    return round(formula.base - formula.sentence * per_sentence - formula.word * per_word, 1)


def _count_syllables(words: Iterable[str], hyphenation: str) -> int:
    dictionary = load_hyphenation(hyphenation)
    try:
        return sum(
            count * _syllables(word, dictionary)
            for word, count in Counter(word.lower() for word in words).items()
        )
    finally:
        dictionary.hd.cache.clear()  # it would keep the words of every document


def _syllables(word: str, dictionary: pyphen.Pyphen) -> int:
    if len(word) > _SPOKEN_MOST:
        return len(word) // 3
    return len(dictionary.positions(word)) + 1


@lru_cache
def load_hyphenation(name: str) -> pyphen.Pyphen:
    """Return a dictionary of hyphenation, which takes a moment to load."""
    return pyphen.Pyphen(lang=name)
