"""The patterns of `like` and `ilike`: what they mean, in plain Python, whatever the engine.

`*` and `%` stand for any run of characters, `_` for any one, and a backslash makes the next
character plain. No regular expression: the time of a match stays in proportion to the length of
the text, whatever the pattern. It knows nothing of SQL.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

RUNS: Final = "*%"
ANY: Final = "_"
ESCAPE: Final = "\\"

Characters = Sequence[str | None]
"""Characters that have to follow one another; `None` is any."""


class Segment:
    """What stands between two runs of a pattern."""

    def __init__(self, characters: Characters) -> None:
        self.length = len(characters)
        self._characters = characters
        self._literal = None if None in characters else "".join(filter(None, characters))
        # One bit a position: where in the segment a character of the text may stand.
        self._anything = sum(1 << at for at, wanted in enumerate(characters) if wanted is None)
        self._places: dict[str, int] = {}
        for at, wanted in enumerate(characters):
            if wanted is not None:
                self._places[wanted] = self._places.get(wanted, self._anything) | 1 << at

    def stands_at(self, text: str, start: int) -> bool:
        """Tell whether the segment fits at `start`, from where `text` is long enough for it."""
        if self._literal is not None:
            return text.startswith(self._literal, start)
        part = text[start : start + self.length]
        pairs = zip(self._characters, part, strict=True)
        return all(wanted in (None, found) for wanted, found in pairs)

    def find_end(self, text: str, start: int, stop: int) -> int:
        """Return where the first occurrence between `start` and `stop` ends, or -1.

        With an "any" in it by shift-and (Baeza-Yates and Gonnet, 1992): each bit tells whether a
        beginning of the segment ends here, so that the search never goes back in the text.
        """
        if self._literal is not None:
            found = text.find(self._literal, start, stop)
            return found if found < 0 else found + self.length
        beginnings, whole = 0, 1 << (self.length - 1)
        for at in range(start, stop):
            beginnings = (beginnings << 1 | 1) & self._places.get(text[at], self._anything)
            if beginnings & whole:
                return at + 1
        return -1


class Pattern:
    """A pattern, to be held against many texts. Raises ValueError for a malformed one."""

    def __init__(self, pattern: str) -> None:
        segments = [Segment(part) for part in _split(pattern)]
        self._first, self._last = segments[0], segments[-1]
        self._middle = [segment for segment in segments[1:-1] if segment.length]
        self._has_runs = len(segments) > 1

    def matches(self, text: str) -> bool:
        """Tell whether the whole of `text` fits the pattern."""
        position, stop = self._first.length, len(text) - self._last.length
        if not self._has_runs:
            return len(text) == position and self._first.stands_at(text, 0)
        if position > stop or not self._first.stands_at(text, 0):
            return False
        # The earliest place for each segment leaves the most room for the next.
        for segment in self._middle:
            position = segment.find_end(text, position, stop)
            if position < 0:
                return False
        return self._last.stands_at(text, stop)


def _split(pattern: str) -> list[Characters]:
    """Return the segments of a pattern: one more than it has wildcards for runs."""
    segments: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character in RUNS:
            segments.append([])
        else:
            segments[-1].append(_read_one(character, characters))
    return list(segments)


def _read_one(character: str, following: Iterator[str]) -> str | None:
    if character == ANY:
        return None
    if character != ESCAPE:
        return character
    escaped = next(following, None)
    if escaped is None:
        raise ValueError("the pattern must not end with a single backslash")
    return escaped


def fold(text: str) -> str:
    """Return `text` without the case of its letters, one character for each (Unicode, 3.13.3).

    That is simple case folding: an ess-zet stays one character, so that `_` counts alike on both
    sides.
    """
    if text.isascii():
        return text.lower()
    folded = text.casefold()
    # Folding never shortens a character: equal length means that each became exactly one.
    return folded if len(folded) == len(text) else "".join(map(_fold_one, text))


def _fold_one(character: str) -> str:
    spellings = (character.casefold(), character.lower(), character)
    return next(spelling for spelling in spellings if len(spelling) == 1)


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> Pattern:
    return Pattern(pattern)


@lru_cache(maxsize=64)
def _folded_pattern(pattern: str) -> Pattern:
    return Pattern(fold(pattern))


def like(text: str | None, pattern: str) -> bool | None:
    """Tell whether `text` fits `pattern`; unknown (`None`) where there is no text."""
    return None if text is None else _pattern(pattern).matches(text)


def ilike(text: str | None, pattern: str) -> bool | None:
    """Do as `like` does, whatever the case of letters on either side."""
    return None if text is None else _folded_pattern(pattern).matches(fold(text))
