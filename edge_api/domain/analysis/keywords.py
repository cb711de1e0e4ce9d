"""What a document is about: the words and phrases that it repeats.

Phrases are runs of words between common words and signs, as in RAKE (Rose and others, 2010). The
document alone decides, so that the answer does not change with the journal.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from edge_api.domain.analysis.document import Document
from edge_api.domain.analysis.languages import language_of
from edge_api.domain.analysis.words import LETTER, words_in

PHRASE_LONGEST: Final = 3
"""Words."""
_CANDIDATES: Final = 200
_WORD_SHORTEST: Final = 3
_WORD_LONGEST: Final = 40
"""Letters; what is longer is an address or noise."""
_FOR_EACH_WORD: Final = 0.6
"""How much more a phrase counts for each word beyond the first: it says more, and comes rarer."""
_IN_TITLE, _IN_HEADING = 2.0, 1.5
_WITHIN: Final = 1.25
"""A word that stands alone hardly more often than in a phrase is told by the phrase."""

_ADDRESS: Final = re.compile(r"(?<!\w)\w{1,20}://\S+")
"""A web address in the text, whose parts are no words of it."""
_BREAK: Final = re.compile(rf"[^{LETTER} '\-]+")

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Keyword:
    """One term, and how much of the document it is."""

    term: str
    count: int
    score: float
    """0 to 1, where the first keyword has 1."""


def find_keywords(document: Document, language: str, most: int) -> list[Keyword]:
    """Return the terms that say most about a document, the best first."""
    common = language_of(language).common
    counts: Counter[Phrase] = Counter()
    for block in document.blocks:
        counts.update(_phrases(block.text, common))
    weights = _weigh(document, counts, common)
    ranked = sorted(weights, key=lambda phrase: (-weights[phrase], phrase))[:_CANDIDATES]
    chosen = _choose(ranked, counts, most)
    top = weights[chosen[0]] if chosen else 1.0
    return [
        Keyword(" ".join(phrase), counts[phrase], round(weights[phrase] / top, 2))
        for phrase in chosen
    ]


def _weigh(
    document: Document, counts: Counter[Phrase], common: frozenset[str]
) -> dict[Phrase, float]:
    """Return the weight of every phrase that may be a keyword."""
    title = set(_phrases(document.title or "", common))
    headings = {part for each in document.headings for part in _phrases(each.text, common)}
    return {
        phrase: count
        * (1 + _FOR_EACH_WORD * (len(phrase) - 1))
        * (_IN_TITLE if phrase in title else _IN_HEADING if phrase in headings else 1.0)
        for phrase, count in counts.items()
        if len(phrase) == 1 or count > 1
    }


def _choose(ranked: list[Phrase], counts: Counter[Phrase], most: int) -> list[Phrase]:
    """Return the best phrases, none of which says what another has said."""
    chosen: list[Phrase] = []
    for phrase in ranked:
        if len(chosen) == most:
            break
        if not any(_is_told(phrase, other, counts) for other in chosen):
            chosen.append(phrase)
    return chosen


def _is_told(phrase: Phrase, other: Phrase, counts: Counter[Phrase]) -> bool:
    """Tell whether a phrase is a part of another, or the other way round, as often."""
    short, long = sorted((phrase, other), key=len)
    starts = range(len(long) - len(short) + 1)
    is_part = any(long[start : start + len(short)] == short for start in starts)
    return is_part and (phrase is long or counts[short] <= _WITHIN * counts[long])


def _phrases(text: str, common: frozenset[str]) -> Iterator[Phrase]:
    """Yield every run of one to three words that carry a subject."""
    for part in _BREAK.split(_ADDRESS.sub("\n", text).replace("\u2019", "'")):
        for run in _runs(part, common):
            for start in range(len(run)):
                for end in range(start + 1, min(start + PHRASE_LONGEST, len(run)) + 1):
                    yield tuple(run[start:end])


def _runs(part: str, common: frozenset[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for word in words_in(part):
        folded = word.casefold().removesuffix("'s")
        if _is_subject(folded) and folded not in common:
            run.append(folded)
        else:
            yield run
            run = []
    yield run


def _is_subject(word: str) -> bool:
    return _WORD_SHORTEST <= len(word) <= _WORD_LONGEST and not word.replace("-", "").isdigit()
