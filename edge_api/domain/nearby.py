"""Which known paths look like one that is not there: for whoever followed a link with a slip in it.

The work is bounded whatever is asked: few of the asked path's trigrams are looked up, and few of
the paths that share them are compared letter by letter. What answers at a path is not known here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

_LONGEST: Final = 200
"""Characters of an asked path that are looked at."""
_RAREST: Final = 16
"""Trigrams that are looked up: those that the fewest paths have."""
_CANDIDATES: Final = 40
"""Paths that are compared letter by letter."""
_LIKENESS: Final = 0.6
"""Of 1, as difflib counts it, for a path to be worth naming."""


class Nearby:
    """The paths of one edition, by their trigrams."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Take the paths that may be named."""
        self._paths = tuple(paths)
        self._holders: dict[str, list[int]] = defaultdict(list)
        for number, path in enumerate(self._paths):
            for trigram in set(_cut(path.lower())):
                self._holders[trigram].append(number)

    def find(self, asked: str, limit: int) -> list[str]:
        """Return at most `limit` paths that look like `asked`, the likest first."""
        wanted = asked.lower()[:_LONGEST]
        likeness = {path: _compare(wanted, path.lower()) for path in self._choose(wanted)}
        likely = [path for path, score in likeness.items() if score >= _LIKENESS]
        return sorted(likely, key=lambda path: (-likeness[path], path))[:limit]

    def _choose(self, wanted: str) -> Iterator[str]:
        """Yield the paths that share the most of the rarest trigrams."""
        known = sorted(
            (trigram for trigram in set(_cut(wanted)) if trigram in self._holders),
            key=lambda trigram: (len(self._holders[trigram]), trigram),
        )
        shared = Counter[int]()
        for trigram in known[:_RAREST]:
            shared.update(self._holders[trigram])
        for number, _ in shared.most_common(_CANDIDATES):
            yield self._paths[number]


def _cut(text: str) -> Iterator[str]:
    for start in range(len(text) - 2):
        yield text[start : start + 3]


def _compare(one: str, other: str) -> float:
    """Return how alike two paths are: as a whole, or by their last parts alone."""
    return max(_ratio(one, other), _ratio(_name(one), _name(other)))


def _name(path: str) -> str:
    """Return the last part of a path, without the ending of a file."""
    last = path.rstrip("/").rpartition("/")[2]
    return last.rpartition(".")[0] or last


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
