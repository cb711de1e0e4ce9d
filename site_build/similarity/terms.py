"""What a post is about, as terms and how often each of them comes.

A term is kept as a number, so that those of ten thousand posts fill a few mebibytes. Code,
addresses and markup say little of a subject and are left out.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias
from zlib import crc32

from site_build.post import Document

MOST_TERMS: Final = 64
"""Of one post, the most frequent ones: the others say little and cost as much."""

_IN_TITLE, _IN_DESCRIPTION, _AS_TAG = 3, 2, 4
"""How often a term counts that stands there."""

_COUNT_BITS: Final = 8
LARGEST_COUNT: Final = (1 << _COUNT_BITS) - 1

_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_NOISE: Final = re.compile(r"\]\([^)\s]*|https?://\S+|<[^<>]*>|`[^`\n]*`|&#?\w{1,10};")
_WORD: Final = re.compile(r"[^\W\d_]{4,40}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,40}")
_DENSE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Of scripts that put no blanks between words: there, two signs at a time are a term."""

Terms: TypeAlias = "array[int]"
"""For each term its number and, in the lowest 8 bits, its count."""

NO_TERMS: Final[Terms] = array("Q")


def count_terms(document: Document) -> Terms:
    """Return the terms of a post and their counts, the most frequent first."""
    counts = Counter(_list_words("\n".join(_list_prose(document.markdown))))
    for text, weight in (
        (document.title, _IN_TITLE),
        (document.description, _IN_DESCRIPTION),
    ):
        for word in _list_words(text):
            counts[word] += weight
    ranked = sorted(counts.items(), key=_rank)[:MOST_TERMS]
    tags = [(f"#{tag.casefold()}", _AS_TAG) for tag in document.tags]
    return array("Q", (_pack(name, count) for name, count in [*tags, *ranked]))


def unpack(terms: Terms) -> tuple[list[int], list[int]]:
    """Return the numbers of the terms, and their counts from 1 to LARGEST_COUNT."""
    counts = [term & LARGEST_COUNT for term in terms]
    return [term >> _COUNT_BITS for term in terms], counts


def _rank(term: tuple[str, int]) -> tuple[int, str]:
    return -term[1], term[0]


def _pack(name: str, count: int) -> int:
    return crc32(name.encode()) << _COUNT_BITS | min(count, LARGEST_COUNT)


def _list_prose(markdown: str) -> Iterator[str]:
    """Yield the lines that stand in no block of code."""
    fence = ""
    for line in markdown.split("\n"):
        found = _FENCE.match(line)
        if not fence and found:
            fence = found["mark"]
        elif fence and found and found["mark"].startswith(fence):
            fence = ""
        elif not fence:
            yield line


def _list_words(text: str) -> list[str]:
    words: list[str] = _WORD.findall(_NOISE.sub(" ", text).casefold())
    return [part for word in words for part in _part(word)] if _DENSE.search(text) else words


def _part(word: str) -> list[str]:
    """Return the word, or its pairs of signs where the script has no blanks between words."""
    return [word[at : at + 2] for at in range(len(word) - 1)] if _DENSE.match(word) else [word]
