"""PostgreSQL's words: what `store.sql` says differently for this engine, and how patterns bind.

Nothing here leans on the locale of the server.
"""

import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from edge_api.store.matching import ANY, ESCAPE, RUNS, fold
from edge_api.store.sql import Dialect

_RUN = "%"


@lru_cache(maxsize=1024)
def number_marks(text: str) -> str:
    """Return a text with `$1`, `$2` and so on for its question marks; no declared name has one."""
    first, *others = text.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


def like_operands(pattern: str) -> tuple[str]:
    """Return the operand of `like`: only the second wildcard for runs is none of PostgreSQL's."""
    return ("".join(_RUN if piece in RUNS else piece for piece in _pieces(pattern)),)


def ilike_operands(pattern: str) -> tuple[str, str, str]:
    """Return the operands of `ilike`: letters of text, what each is folded to, and the pattern.

    Of a text only those letters are folded that the pattern could be after: the others fit a
    wildcard or nothing, folded or not. A table of all letters made a scan many times slower.
    """
    (folded,) = like_operands(fold(pattern))
    wanted = {piece[-1] for piece in _pieces(folded)} | {ANY, _RUN}
    pairs = [(other, letter) for letter in sorted(wanted) for other in _variants().get(letter, "")]
    return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs), folded


def _pieces(pattern: str) -> Iterator[str]:
    """Yield the characters of a pattern; one that a backslash makes plain comes with that."""
    characters = iter(pattern)
    for character in characters:
        yield character + next(characters, "") if character == ESCAPE else character


@cache
def _variants() -> dict[str, str]:
    """Return, by folded letter, the other letters that fold to it (some 1,400 in all)."""
    variants: dict[str, str] = {}
    for letter in map(chr, range(sys.maxunicode + 1)):
        folded = fold(letter)
        if folded != letter:
            variants[folded] = variants.get(folded, "") + letter
    return variants


POSTGRESQL: Final = Dialect(
    operations=MappingProxyType(
        {
            "eq": "{column} = ?",
            "neq": "{column} <> ?",
            "gt": "{column} > ?",
            "gte": "{column} >= ?",
            "lt": "{column} < ?",
            "lte": "{column} <= ?",
            "like": "{column} LIKE ?",
            "ilike": "translate({column}, ?, ?) LIKE ?",
            # One parameter however long the list.
            "in": "{column} = ANY (?)",
            "is": "{column} IS NULL",
        }
    ),
    operands=MappingProxyType(
        {"like": like_operands, "ilike": ilike_operands, "is": lambda _null: ()},
    ),
    no_limit=None,
    mark=number_marks,
)
