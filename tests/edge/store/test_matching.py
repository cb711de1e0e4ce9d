"""The patterns of `like` and `ilike`, against what they are said to mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.db.query import Pattern, fold, ilike, like

DOTLESS_I = "\N{LATIN SMALL LETTER DOTLESS I}"

LIKES = [
    ("", "", True),
    ("", "a", False),
    ("a", "", False),
    ("", "%", True),
    ("abc", "abc", True),
    ("abc", "ABC", False),
    ("abc", "ab", False),
    ("abc", "bc", False),
    ("abc", "%", True),
    ("abc", "***", True),
    ("abc", "a*", True),
    ("abc", "*c", True),
    ("abc", "%b%", True),
    ("abc", "%d%", False),
    ("abc", "a_c", True),
    ("abc", "a_", False),
    ("abc", "___", True),
    ("abc", "____", False),
    ("abc", "_%_", True),
    ("a", "_%_", False),
    ("aXbXc", "a%X%c", True),
    ("ab", "a%ab", False),
    ("aab", "a%ab", True),
    ("aaa", "a%a%a", True),
    ("aa", "a%a%a", False),
    ("abcabd", "%ab_", True),
    ("abcabd", "%a_d%", True),
    ("xaxbxcx", "%a_b%c_", True),
    ("xaxbxc", "%a_b%c_", False),
    ("100%", r"100\%", True),
    ("100 ", r"100\%", False),
    ("a_b", r"a\_b", True),
    ("axb", r"a\_b", False),
    ("a*b", r"a\*b", True),
    ("axb", r"a\*b", False),
    ("\\", r"\\", True),
    ("ab", r"\a\b", True),
    ("[ab]", "[ab]", True),
    ("a", "[ab]", False),
    ("a?", "a?", True),
    ("ab", "a?", False),
    ("a.c", "a.c", True),
    ("abc", "a.c", False),
    ("🦊 fox", "_ fox", True),
    ("a\nb", "a_b", True),
    ("a\nb", "a%", True),
    ("Zoë", "zoë", False),
]

ILIKES = [
    ("abc", "ABC", True),
    ("ABC", "a_C", True),
    ("Zoë Müller", "ZOË*LLER", True),
    ("ΟΔΟΣ", "οδος", True),
    ("οδος", "%\N{GREEK SMALL LETTER SIGMA}", True),
    ("İ", "_", True),
    ("straße", "STRAẞE", True),
    ("straße", "STRA_E", True),
    ("STRASSE", "straße", False),
    ("ﬁ", "_", True),
    ("ПРИВЕТ", "привет", True),
    ("I", DOTLESS_I, False),
]


@pytest.mark.parametrize(("text", "pattern", "expected"), LIKES)
def test_like(text: str, pattern: str, expected: bool) -> None:  # noqa: FBT001  the expected answer
    """`like` is about the whole text, and upper and lower case differ."""
    assert like(text, pattern) is expected


@pytest.mark.parametrize(("text", "pattern", "expected"), [*ILIKES, *(c for c in LIKES if c[2])])
def test_ilike(text: str, pattern: str, expected: bool) -> None:  # noqa: FBT001  the expected answer
    """`ilike` takes whatever `like` takes, in any case of any script."""
    assert ilike(text, pattern) is expected


def test_no_text_is_unknown() -> None:
    """For a row without a text, neither the pattern nor its negation holds."""
    assert like(None, "%") is None
    assert ilike(None, "%") is None


@pytest.mark.parametrize("pattern", ["\\", "a\\", "%\\", "\\\\\\"])
def test_a_lone_backslash_at_the_end_is_malformed(pattern: str) -> None:
    """There is nothing left that it could make plain."""
    with pytest.raises(ValueError, match="single backslash"):
        Pattern(pattern)


def fits(text: str, pattern: str) -> bool:
    """Say what a pattern means, in the plainest way: by trying everything."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first in "*%":
        return any(fits(text[start:], rest) for start in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_":
        return bool(text) and fits(text[1:], rest)
    return text[:1] == first and fits(text[1:], rest)


CHARACTERS = "abAä*%_\\"
PIECES = st.sampled_from(["a", "b", "ä", "A", "%", "*", "_", r"\%", r"\_", "\\\\", r"\a", r"\*"])


@given(text=st.text(CHARACTERS, max_size=12), pieces=st.lists(PIECES, max_size=8))
def test_like_agrees_with_trying_everything(text: str, pieces: list[str]) -> None:
    """The fast way finds what the plain way finds."""
    pattern = "".join(pieces)

    assert like(text, pattern) is fits(text, pattern)


@given(text=st.text("abAÄäßẞΣς*%", max_size=12), pieces=st.lists(PIECES, max_size=8))
def test_ilike_agrees_with_trying_everything_on_folded_text(text: str, pieces: list[str]) -> None:
    """The fast way finds what the plain way finds in texts without case."""
    pattern = "".join(pieces)

    assert ilike(text, pattern) is fits(fold(text), fold(pattern))


@given(st.text())
def test_folding_keeps_every_character_one(text: str) -> None:
    """So `_` stands for one character, folded or not, and folding twice changes nothing."""
    assert len(fold(text)) == len(text)
    assert fold(fold(text)) == fold(text)


def test_folding_makes_both_cases_of_a_letter_one() -> None:
    """It holds for every letter that has two but the dotless i, which folds with no other."""
    strange = {
        character
        for character in map(chr, range(0x20000))
        for other in (character.upper(), character.lower())
        if len(other) == 1 and fold(other) != fold(character)
    }

    assert strange == {DOTLESS_I}


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a" * 200_000, "%a" * 2000 + "%b"),
        ("a" * 200_000, "%" + "a_" * 2000 + "b%"),
        ("ab" * 100_000, "%" + "_b" * 2000 + "c%"),
        ("a" * 200_000, "a" * 2000 + "%" + "a" * 2000 + "b"),
    ],
)
def test_no_pattern_makes_a_match_slow(text: str, pattern: str) -> None:
    """Patterns that lead other matchers astray come to their end: this test would not."""
    assert like(text, pattern) is False
