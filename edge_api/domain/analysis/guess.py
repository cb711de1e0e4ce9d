"""Which language a text is in, told by its commonest words; nobody is told more than that shows."""

from collections import Counter
from collections.abc import Iterable
from typing import Final
from unicodedata import normalize

from edge_api.domain.analysis.language_tags import UNKNOWN
from edge_api.domain.analysis.languages import LANGUAGES, Language

_SAMPLE: Final = 3000
"""Words that are looked at."""
_SHARE_LEAST: Final = 0.15
"""Of common words among all; running text has 0.3 and more, a list of names hardly any."""
_DIFFERENT_LEAST: Final = 2
"""Common words; one alone is a coincidence."""
_LEAD_LEAST: Final = 1.2
"""Times as many common words as the second language has."""
_FOREIGN_MOST: Final = 0.2
"""Of letters, the share that words may have which the language cannot spell."""


def guess_language(words: Iterable[str]) -> str:
    """Return the tag of the language that words are in, or `und`."""
    counts = _count(words)
    total = sum(counts.values())
    hits = sorted(((_hits(counts, known), tag) for tag, known in LANGUAGES.items()), reverse=True)
    (best, tag), (second, _) = hits[:2]
    is_clear = best >= max(1, _SHARE_LEAST * total, _LEAD_LEAST * second)
    return tag if is_clear and _could_be(counts, LANGUAGES[tag]) else UNKNOWN


def _count(words: Iterable[str]) -> Counter[str]:
    """Return how often each of the first words stands there, folded; numbers are of no language."""
    sample = (word for word, _ in zip(words, range(_SAMPLE), strict=False))
    folded = (normalize("NFC", word).casefold().replace("\u2019", "'") for word in sample)
    return Counter(word for word in folded if not word[:1].isdigit())


def _hits(counts: Counter[str], known: Language) -> int:
    """Return how many of the words are common ones of a language."""
    return sum(count for word, count in counts.items() if word in known.common)


def _could_be(counts: Counter[str], known: Language) -> bool:
    different = sum(word in known.common for word in counts)
    letters = sum(len(word) * count for word, count in counts.items())
    foreign = sum(len(word) * count for word, count in counts.items() if _is_foreign(word, known))
    return different >= _DIFFERENT_LEAST and foreign <= _FOREIGN_MOST * letters


def _is_foreign(word: str, known: Language) -> bool:
    """Tell whether a word has a letter that the language has not, as of another script."""
    if word.isascii():
        return False
    return any(not each.isascii() and each.isalpha() and each not in known.letters for each in word)
