"""The metrics of a text: words, sentences, readability and keywords."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Final
from unicodedata import category

import pyphen  # type: ignore[import-untyped]
from annotated_types import Interval

from edge_api.analysis.document import ParsedDocument
from edge_api.analysis.languages import Flesch, Language, guess_language, language_of, primary
from edge_api.schema.reading_time import reading_minutes

WORD_CHARACTERS: Final = r"\w" + "".join(
    letter for letter in map(chr, range(0x300, 0x1F000)) if category(letter).startswith("M")
)
"""The content of a character class: letters, digits and combining marks, which words in the scripts
of India contain."""
_WORD: Final = re.compile(
    rf"\w[{WORD_CHARACTERS}]*(?:['\u2019\-\u2010\u2011\u200c\u200d][{WORD_CHARACTERS}]+|(?<=\d)[.,:](?=\d)[{WORD_CHARACTERS}]+)*"
)

# A sentence ends after a run of such signs; the lookbehind keeps a search from starting within it.
_SENTENCE_END: Final = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]+[\"'\u201d\u2019\xbb)\]]*(?=\s)"
    r"|[\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965]+"
)
_LAST_WORD: Final = re.compile(r"[^\s(\[\"'\u201c\u2018\xab]{1,12}\Z")
_NEXT_WORD: Final = re.compile(r"\s{1,2}[\"'\u201c\u2018\xab(\[]{0,3}(\w{1,20})")

_UNSPACED_LETTERS: Final = re.compile(
    "[\u0e01-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3105-\u312f\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters of scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana and
Han, but not Korean."""


def tokenize(text: str) -> list[str]:
    """Return the words of plain text; a number counts as a word."""
    return _WORD.findall(text)


def sentence_lengths(text: str, language: Language) -> Iterator[int]:
    """Yield the number of words of each sentence that has any."""
    return filter(None, (len(tokenize(part)) for part in _sentences(text, language)))


def _sentences(text: str, language: Language) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        # A full stop may also end an abbreviation or an initial, and a sentence may go on after it.
        if end[0][0] in ".!?\u2026":
            is_small = text[end.end() : end.end() + 2].strip()[:1].islower()
            if is_small and end[0][-1] not in "!?":
                continue
            if end[0] == "." and _is_abbreviation(text, end, language):
                continue
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def _is_abbreviation(text: str, stop: re.Match[str], language: Language) -> bool:
    """Return whether a full stop ends an abbreviation or an initial, and not the sentence."""
    last = _LAST_WORD.search(text, max(0, stop.start() - 13), stop.start())
    word = last[0].casefold() if last else ""
    is_abbreviation = word in language.abbreviations
    if word.isdigit() or not (is_abbreviation or len(word) == 1):
        return False
    following = _NEXT_WORD.match(text, stop.end())
    begins = following is not None and following[1].casefold() in language.stop_words
    return not (begins and (word in language.stop_words or not is_abbreviation))


LONG_WORD: Final = 6  # letters; a long word has more (Björnsson's LIX, 1968)
LONG_SENTENCE: Final = 30  # words; a long sentence has more
LONG_PARAGRAPH: Final = 150  # words; a long paragraph has more
_MAX_HYPHENATED: Final = 40  # letters; the syllables of longer words are estimated, not looked up
_UNSPACED_LANGUAGES: Final = frozenset(
    ("ja", "zh", "cmn", "yue", "wuu", "nan", "hak", "lzh", "th", "lo", "km", "my", "bo", "dz")
)
"""Languages without spaces between words."""


@dataclass(frozen=True)
class Measures:
    """How much there is of the text, and how hard it is to read; code does not count."""

    words: int = field(metadata={"description": "How many."})
    sentences: int = field(metadata={"description": "How many."})
    paragraphs: int = field(metadata={"description": "How many."})
    reading_minutes: Annotated[int, Interval(ge=1)]
    """By the rule that posts have."""
    avg_sentence_words: float = field(metadata={"description": "Words of a sentence."})
    lix: float | None
    """Below 40 easy, from 60 on hard; for languages that put spaces between words."""
    flesch_reading_ease: float | None
    """From 60 on easy, below 30 hard; English and German only."""
    language: str
    """A BCP 47 tag; `und` where it is unknown."""


@dataclass(frozen=True)
class TextMetrics(Measures):
    """The metrics of one document."""

    long_sentences: int
    long_paragraphs: int


def measure(document: ParsedDocument, language: str | None = None) -> TextMetrics:
    """Return the metrics of a document, in the given language, else its page's, else a guess."""
    texts = [block.text for block in document.blocks]
    words = [word for text in texts for word in tokenize(text)]
    stated = document.page.page_language if document.page else None
    tag = language or stated or guess_language(words)
    known = language_of(tag)
    lengths = [length for text in texts for length in sentence_lengths(text, known)]
    sentences = max(1, len(lengths))
    paragraphs = [len(tokenize(each.text)) for each in document.blocks if each.kind == "paragraph"]
    unspaced = sum(len(_UNSPACED_LETTERS.findall(word)) for word in words if not word.isascii())
    # An English text that quotes Japanese has a smaller share of such letters.
    is_spaced = primary(tag) not in _UNSPACED_LANGUAGES and unspaced <= 0.2 * sum(map(len, words))
    return TextMetrics(
        words=len(words),
        sentences=len(lengths),
        paragraphs=sum(length > 0 for length in paragraphs),
        reading_minutes=reading_minutes(document.reading_time_text),
        avg_sentence_words=round(len(words) / sentences, 1),
        lix=_lix(words, sentences) if is_spaced else None,
        flesch_reading_ease=_reading_ease(words, sentences, known.flesch),
        language=tag,
        long_sentences=sum(length > LONG_SENTENCE for length in lengths),
        long_paragraphs=sum(length > LONG_PARAGRAPH for length in paragraphs),
    )


def _lix(words: list[str], sentences: int) -> float:
    """Return the Läsbarhetsindex: words per sentence plus the percentage of long words."""
    long = sum(len(word) > LONG_WORD and any(map(str.isalpha, word)) for word in words)
    return round(len(words) / sentences + 100 * long / len(words), 1) if words else 0.0


def _reading_ease(words: list[str], sentences: int, formula: Flesch | None) -> float | None:
    if formula is None or not words:
        return None
    syllables = _count_syllables(words, formula.hyphenation)
    per_sentence, per_word = len(words) / sentences, syllables / len(words)
    return round(formula.base - formula.sentence * per_sentence - formula.word * per_word, 1)


def _count_syllables(words: Iterable[str], hyphenation: str) -> int:
    dictionary, total = load_hyphenation(hyphenation), 0
    try:
        for word, count in Counter(word.lower() for word in words).items():
            is_long = len(word) > _MAX_HYPHENATED
            total += count * (len(word) // 3 if is_long else len(dictionary.positions(word)) + 1)
    finally:
        dictionary.hd.cache.clear()  # else it grows with the words of every document
    return total


@lru_cache
def load_hyphenation(name: str) -> pyphen.Pyphen:
    """Return a hyphenation dictionary from the cache; it is slow to load."""
    return pyphen.Pyphen(lang=name)


_WEB_ADDRESS: Final = re.compile(r"(?<!\w)\w{1,20}://\S+")
"""The pattern of web addresses, whose parts are no words of the text."""
_PHRASE_BREAK: Final = re.compile(rf"[^{WORD_CHARACTERS} '\-]+")

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word or a phrase that says what the document is about."""

    term: str = field(metadata={"description": "The words."})
    count: int = field(metadata={"description": "How often."})
    score: Annotated[float, Interval(ge=0, le=1)] = field(metadata={"description": "At most 1."})


def find_keywords(document: ParsedDocument, language: str, limit: int) -> list[Keyword]:
    """Return the most significant terms of a document, the best first."""
    stop_words = language_of(language).stop_words
    counts: Counter[Phrase] = Counter()
    for block in document.blocks:
        counts.update(_phrases(block.text, stop_words))
    title = set(_phrases(document.title or "", stop_words))
    headings = {part for each in document.headings for part in _phrases(each.text, stop_words)}
    weights = {
        phrase: count
        * (1 + 0.6 * (len(phrase) - 1))  # longer phrases are rarer
        * (2.0 if phrase in title else 1.5 if phrase in headings else 1.0)
        for phrase, count in counts.items()
        if len(phrase) == 1 or count > 1
    }
    ranked = sorted(weights, key=lambda phrase: (-weights[phrase], phrase))[:200]
    chosen = _choose(ranked, counts, limit)
    top = weights[chosen[0]] if chosen else 1.0
    return [
        Keyword(" ".join(phrase), counts[phrase], round(weights[phrase] / top, 2))
        for phrase in chosen
    ]


def _choose(ranked: list[Phrase], counts: Counter[Phrase], limit: int) -> list[Phrase]:
    """Return the best phrases without redundant ones."""
    chosen: list[Phrase] = []
    for phrase in ranked:
        if len(chosen) == limit:
            break
        if not any(_is_redundant(phrase, other, counts) for other in chosen):
            chosen.append(phrase)
    return chosen


def _is_redundant(phrase: Phrase, other: Phrase, counts: Counter[Phrase]) -> bool:
    """Return whether one phrase is a part of the other, and seldom occurs outside it."""
    short, long = sorted((phrase, other), key=len)
    starts = range(len(long) - len(short) + 1)
    is_part = any(long[start : start + len(short)] == short for start in starts)
    return is_part and (phrase is long or counts[short] <= 1.25 * counts[long])


def _phrases(text: str, stop_words: frozenset[str]) -> Iterator[Phrase]:
    """Yield every sequence of one to three words without stop words."""
    for part in _PHRASE_BREAK.split(_WEB_ADDRESS.sub("\n", text).replace("\u2019", "'")):
        for run in _significant_runs(part, stop_words):
            for start in range(len(run)):
                for end in range(start + 1, min(start + 3, len(run)) + 1):
                    yield tuple(run[start:end])


def _significant_runs(part: str, stop_words: frozenset[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for word in tokenize(part):
        folded = word.casefold().removesuffix("'s")
        is_number = folded.replace("-", "").isdigit()
        has_usual_length = len(folded) in range(3, 41)  # longer ones are addresses or noise
        if has_usual_length and not is_number and folded not in stop_words:
            run.append(folded)
        else:
            yield run
            run = []
    yield run
