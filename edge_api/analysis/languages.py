"""Languages: their tags (BCP 47), their words, and detection of the language of a text.

Stop words identify a language, and are no keywords. For an unlisted language, metrics that
depend on it are left out.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
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
        if re.fullmatch("[a-z]{4}", part):  # a script
            parts[at] = part.title()
        elif re.fullmatch("[a-z]{2}", part):  # a region
            parts[at] = part.upper()
    return "-".join(parts)


@dataclass(frozen=True, slots=True)
class Flesch:
    """The coefficients of a Flesch formula, which gives the reading ease of a text.

    It is base - sentence * (words per sentence) - word * (syllables per word).
    """

    base: float
    sentence: float
    word: float
    hyphenation: str  # the dictionary for counting syllables


@dataclass(frozen=True, slots=True)
class Language:
    """The data of one language, case-folded; it comes from `languages.toml`."""

    stop_words: frozenset[str]  # common words, which say nothing about the subject
    letters: str = ""  # the letters of its alphabet beyond a to z
    abbreviations: frozenset[str] = frozenset()
    """Words whose full stop ends no sentence, without that full stop."""
    flesch: Flesch | None = None


LANGUAGES: Final[Mapping[str, Language]] = {
    tag: Language(
        frozenset(entry["common"].split()),
        entry.get("letters", ""),
        frozenset(entry.get("abbreviations", "").split()),
        Flesch(*entry["flesch"]) if "flesch" in entry else None,
    )
    for tag, entry in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}


def language_of(tag: str) -> Language:
    """Return the language of a tag (BCP 47)."""
    return LANGUAGES.get(primary(tag), Language(frozenset()))


def guess_language(words: Iterable[str]) -> str:
    """Return the tag of the language that words are in, or `und`."""
    folded = (
        normalize("NFC", word).casefold().replace("\u2019", "'") for word in islice(words, 3000)
    )
    counts = Counter(word for word in folded if not word[:1].isdigit())
    total = sum(counts.values())
    hits = sorted(
        (
            (sum(count for word, count in counts.items() if word in known.stop_words), tag)
            for tag, known in LANGUAGES.items()
        ),
        reverse=True,
    )
    (best, tag), (second, _) = hits[:2]
    # At least 30 % of the words of a running text are common, of a list of names hardly any.
    if best < max(1, 0.15 * total, 1.2 * second):
        return UNKNOWN
    known = LANGUAGES[tag]
    distinct = sum(word in known.stop_words for word in counts)
    letters = sum(len(word) * count for word, count in counts.items())
    foreign = sum(
        len(word) * count
        for word, count in counts.items()
        if any(each.isalpha() and not each.isascii() and each not in known.letters for each in word)
    )
    # A single common word may be a coincidence; letters of other languages are rare in a text.
    return tag if distinct > 1 and foreign <= 0.2 * letters else UNKNOWN
