"""Languages: their tags (BCP 47), their words, and detection of the language of a text.

Common words identify a language, and are no keywords. For an unlisted language, metrics that
depend on it are left out.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unicodedata import normalize

UNKNOWN: Final = "und"  # the tag of an unknown language (section 4.1)
MAX_TAG_LENGTH: Final = 35  # characters, enough for every tag in use (section 4.4.1)

_TAG: Final = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"
    r"(?:-[a-z]{4})?"
    r"(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*"
    r"(?:-x(?:-[a-z0-9]{1,8})+)?"
)

_SCRIPT: Final = re.compile(r"[a-z]{4}")
_REGION: Final = re.compile(r"[a-z]{2}")


def primary(tag: str) -> str:
    """Return the primary language of a tag, without script and region."""
    return tag.partition("-")[0].lower()


def normalize_tag(stated: str) -> str | None:
    """Return a tag in its usual case, or `None` if it names no language."""
    tag = stated.strip().replace("_", "-").lower()
    is_tag = len(tag) <= MAX_TAG_LENGTH and tag.isascii() and _TAG.fullmatch(tag) is not None
    return _apply_case(tag) if is_tag and primary(tag) != UNKNOWN else None


def _apply_case(tag: str) -> str:
    """Return a lower-case tag in the usual case: `zh-Hant-TW` (section 2.1.1)."""
    parts = tag.split("-")
    plain = next((at for at, part in enumerate(parts) if len(part) == 1), len(parts))
    for at, part in enumerate(parts[1:plain], start=1):
        if _SCRIPT.fullmatch(part):
            parts[at] = part.title()
        elif _REGION.fullmatch(part):
            parts[at] = part.upper()
    return "-".join(parts)


@dataclass(frozen=True, slots=True)
class Flesch:
    """The coefficients of a reading ease formula: base - sentence * words - word * syllables."""

    base: float
    sentence: float
    word: float
    hyphenation: str  # the dictionary for counting syllables


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    common: frozenset[str]  # words that carry no subject, folded
    letters: str = ""  # of its alphabet beyond a to z, folded
    abbreviations: frozenset[str] = frozenset()
    """Folded, without their full stop, which ends no sentence."""
    flesch: Flesch | None = None


def _read(text: str) -> dict[str, Language]:
    return {
        tag: Language(
            frozenset(entry["common"].split()),
            entry.get("letters", ""),
            frozenset(entry.get("abbreviations", "").split()),
            Flesch(*entry["flesch"]) if "flesch" in entry else None,
        )
        for tag, entry in tomllib.loads(text).items()
    }


_UNLISTED: Final = Language(frozenset())
LANGUAGES: Final[Mapping[str, Language]] = _read(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def language_of(tag: str) -> Language:
    """Return the language of a tag (BCP 47)."""
    return LANGUAGES.get(primary(tag), _UNLISTED)


_SAMPLE: Final = 3000  # words
_MIN_COMMON_SHARE: Final = 0.15
"""The share of common words; running text has 0.3 and more, a list of names hardly any."""
_MIN_DISTINCT: Final = 2  # common words; one alone is a coincidence
_MIN_LEAD: Final = 1.2  # over the common words of the second language
_MAX_FOREIGN_SHARE: Final = 0.2
"""The share of letters in words with letters that the language does not use."""


def guess_language(words: Iterable[str]) -> str:
    """Return the tag of the language that words are in, or `und`."""
    counts = _count(words)
    total = sum(counts.values())
    hits = sorted(
        (
            (sum(count for word, count in counts.items() if word in known.common), tag)
            for tag, known in LANGUAGES.items()
        ),
        reverse=True,
    )
    (best, tag), (second, _) = hits[:2]
    is_clear = best >= max(1, _MIN_COMMON_SHARE * total, _MIN_LEAD * second)
    return tag if is_clear and _could_be(counts, LANGUAGES[tag]) else UNKNOWN


def _count(words: Iterable[str]) -> Counter[str]:
    """Return the counts of the first words, folded and without numbers."""
    sample = (word for word, _ in zip(words, range(_SAMPLE), strict=False))
    folded = (normalize("NFC", word).casefold().replace("\u2019", "'") for word in sample)
    return Counter(word for word in folded if not word[:1].isdigit())


def _could_be(counts: Counter[str], known: Language) -> bool:
    distinct = sum(word in known.common for word in counts)
    letters = sum(len(word) * count for word, count in counts.items())
    foreign = sum(
        len(word) * count
        for word, count in counts.items()
        if any(each.isalpha() and not each.isascii() and each not in known.letters for each in word)
    )
    return distinct >= _MIN_DISTINCT and foreign <= _MAX_FOREIGN_SHARE * letters
