"""The measures of a text: how much there is of it, and how hard it is to read."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyphen  # type: ignore[import-untyped]

from edge_api.domain.analysis.document import Document
from edge_api.domain.analysis.languages import Flesch, Language, guess_language, language_of
from edge_api.schema.reading import count_words, reading_minutes, words_in

LONG_WORD: Final = 6
"""Letters that a long word has more of (Björnsson's LIX, 1968)."""
LONG_SENTENCE: Final = 30
LONG_PARAGRAPH: Final = 150
"""Words."""
_SPOKEN_MOST: Final = 40
"""Letters of a word that anybody says; of a longer one syllables are reckoned, not looked up."""

# What ends a sentence stands at the end of a run of signs, so that each run is looked at once.
_END: Final = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]+[\"'\u201d\u2019\xbb)\]]*(?=\s)|[\u3002\uff01\uff1f]+"
)
_LAST_WORD: Final = re.compile(r"[^\s(\[\"'\u201c\u2018\xab]{1,12}\Z")


@dataclass(frozen=True, slots=True)
class Metrics:
    """The measures of one document."""

    words: int
    sentences: int
    paragraphs: int
    reading_minutes: int
    avg_sentence_words: float
    lix: float
    """Läsbarhetsindex: words in a sentence, and long words in a hundred."""
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
        lix=_lix(words, sentences),
        flesch_reading_ease=_ease(words, sentences, known.flesch),
        language=tag,
        long_sentences=sum(length > LONG_SENTENCE for length in lengths),
        long_paragraphs=sum(length > LONG_PARAGRAPH for length in _paragraph_lengths(document)),
    )


def _paragraph_lengths(document: Document) -> Iterator[int]:
    """Yield the words of each paragraph that has any."""
    lengths = (count_words(each.text) for each in document.blocks if each.kind == "paragraph")
    return filter(None, lengths)


def sentence_lengths(text: str, language: Language) -> Iterator[int]:
    """Yield the number of words of each sentence that has any."""
    return filter(None, (count_words(part) for part in _sentences(text, language)))


def _sentences(text: str, language: Language) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        if _ends(text, end, language):
            yield text[start : end.end()]
            start = end.end()
    yield text[start:]


def _ends(text: str, end: re.Match[str], language: Language) -> bool:
    """Tell whether a sentence ends here; a stop may belong to an abbreviation or an initial."""
    if end[0] != ".":
        return True
    if text[end.end() : end.end() + 2].strip()[:1].islower():
        return False
    last = _LAST_WORD.search(text, max(0, end.start() - 13), end.start())
    word = last[0].casefold() if last else ""
    is_short = len(word) == 1 or word in language.abbreviations
    return word.isdigit() or not is_short


def _lix(words: list[str], sentences: int) -> float:
    long = sum(len(word) > LONG_WORD for word in words)
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
