"""PostgreSQL's words: queries and declared tables as this engine spells them.

Nothing here leans on the locale of the server.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from edge_api.schema.kinds import Kind
from edge_api.store.plan import ESCAPE, RUNS, fold
from edge_api.store.sql import COMPARISONS, Dialect, Spelling

SPELLING: Final = Spelling(
    types=MappingProxyType(
        {
            Kind.TEXT: 'text COLLATE "C"',
            Kind.UUID: 'text COLLATE "C"',
            Kind.TIMESTAMP: 'text COLLATE "C"',
            Kind.INTEGER: "bigint",
            Kind.JSON: "json",
        }
    ),
    # LIKE patterns, in which an underscore is one character; JSON is seen to by its type.
    rules=MappingProxyType(
        {
            Kind.UUID: "{column} LIKE '________-____-____-____-____________'",
            Kind.TIMESTAMP: "{column} LIKE '____-__-__T__:__:__.______Z'",
        }
    ),
)


CASE_ENDS: Final = 0x20000
"""From here on Unicode has ideographs and signs, which have no case: a tenth of all to look at."""
_RUN: Final = "%"


@lru_cache(maxsize=1024)
def number_marks(text: str) -> str:
    """Return a text with `$1`, `$2` and so on for its question marks; no declared name has one."""
    first, *others = text.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


def like_operands(pattern: str) -> tuple[str]:
    """Return the operand of `like`: only the second wildcard for runs is none of PostgreSQL's."""
    return ("".join(_RUN if piece in RUNS else piece for piece in _pieces(pattern)),)


def ilike_operands(pattern: str) -> tuple[bool, str, str, str]:
    """Return the operands of `ilike`: whether no text needs folding, letters, to what, the pattern.

    PostgreSQL's own ILIKE sees to ASCII. Of the others only those letters are folded that the
    pattern could be after: the rest fit a wildcard or nothing, folded or not. With a table of all
    1,400 a scan of texts that are not ASCII took a hundred times as long.
    """
    (folded,) = like_operands(fold(pattern))
    wanted = sorted({piece[-1] for piece in _pieces(folded)})
    pairs = [(other, letter) for letter in wanted for other in _variants().get(letter, "")]
    letters = "".join(other for other, _ in pairs)
    return not letters, letters, "".join(letter for _, letter in pairs), folded


def _pieces(pattern: str) -> Iterator[str]:
    """Yield the characters of a pattern; one that a backslash makes plain comes with that."""
    characters = iter(pattern)
    for character in characters:
        yield character + next(characters, "") if character == ESCAPE else character


@cache
def _variants() -> dict[str, str]:
    """Return, by folded letter, the others that fold to it, but for ASCII (some 1,400 in all)."""
    variants: dict[str, str] = {}
    for letter in map(chr, range(0x80, CASE_ENDS)):
        folded = fold(letter)
        if folded != letter:
            variants[folded] = variants.get(folded, "") + letter
    return variants


POSTGRESQL: Final = Dialect(
    operations=MappingProxyType(
        {
            **COMPARISONS,
            "like": "{column} LIKE ?",
            "ilike": (
                "(CASE WHEN ? OR octet_length({column}) = length({column}) THEN {column}"
                " ELSE translate({column}, ?, ?) END) ILIKE ?"
            ),
            # One parameter however long the list.
            "in": "{column} = ANY (?)",
        }
    ),
    operands=MappingProxyType(
        {"like": like_operands, "ilike": ilike_operands, "is": lambda _null: ()},
    ),
    no_limit=None,
    mark=number_marks,
)
