"""Words and sentences, as somebody would count them by hand.

The reading time of posts is counted by a coarser rule (`schema/reading.py`), which stays as it is
so that the minutes of what is published do.
"""

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import category

from edge_api.domain.analysis.languages import Language

_MARKS: Final = "".join(
    letter for letter in map(chr, range(0x300, 0x1F000)) if category(letter).startswith("M")
)
"""Of every script."""
LETTER: Final = rf"\w{_MARKS}"
"""What words are made of, as a part of a class: letters, digits, and the marks that stand on
letters, without which words of India would fall into pieces."""
_WORD: Final = re.compile(
    rf"\w[{LETTER}]*(?:['\u2019\-\u2010\u2011\u200c\u200d][{LETTER}]+|(?<=\d)[.,:](?=\d)[{LETTER}]+)*"
)

# What ends a sentence stands at the end of a run of signs, so that each run is looked at once.
_END: Final = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]+[\"'\u201d\u2019\xbb)\]]*(?=\s)"
    r"|[\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965]+"
)
_LAST_WORD: Final = re.compile(r"[^\s(\[\"'\u201c\u2018\xab]{1,12}\Z")
_NEXT_WORD: Final = re.compile(r"\s{1,2}[\"'\u201c\u2018\xab(\[]{0,3}(\w{1,20})")

_UNSPACED: Final = re.compile(
    "[\u0e01-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3105-\u312f\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Letters of scripts that put no spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana
and Han. Korean does put them."""
_UNSPACED_SHARE: Final = 0.2
"""Of such letters among all; a text in English about Japanese has fewer."""


def words_in(text: str) -> list[str]:
    """Return the words of plain text, as they are spelled; a number is one."""
    return _WORD.findall(text)


def count_words(text: str) -> int:
    """Return the number of words in plain text."""
    return sum(1 for _ in _WORD.finditer(text))


def has_spaces(words: list[str]) -> bool:
    """Tell whether words are of a script that puts spaces between them, as far as one can see."""
    letters = sum(map(len, words))
    unspaced = sum(len(_UNSPACED.findall(word)) for word in words if not word.isascii())
    return unspaced <= _UNSPACED_SHARE * letters


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
    if end[0][0] not in ".!?\u2026":
        return True
    is_bare = end[0][-1] in "!?"
    if not is_bare and text[end.end() : end.end() + 2].strip()[:1].islower():
        return False
    return end[0] != "." or not _is_short(text, end, language)


def _is_short(text: str, stop: re.Match[str], language: Language) -> bool:
    """Tell whether a stop belongs to an abbreviation or an initial.

    What is also a word of its own, such as I and no, is one if a sentence could begin behind it.
    """
    last = _LAST_WORD.search(text, max(0, stop.start() - 13), stop.start())
    word = last[0].casefold() if last else ""
    is_abbreviation = word in language.abbreviations
    if word.isdigit() or not (is_abbreviation or len(word) == 1):
        return False
    following = _NEXT_WORD.match(text, stop.end())
    begins = following is not None and following[1].casefold() in language.common
    return not (begins and (word in language.common or not is_abbreviation))
