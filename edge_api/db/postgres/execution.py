"""Queries executed on a connection, in the SQL of PostgreSQL, whatever the locale of the server."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

import asyncpg

from edge_api.db.postgres.connection import Connection
from edge_api.db.postgres.errors import violation
from edge_api.db.query import ESCAPE, RUN_WILDCARDS, Query, QueryResult, fold
from edge_api.db.sql import COMPARISONS, Dialect
from edge_api.db.transaction import Fetch, TransactionStep, plan_steps
from edge_api.db.types import ColumnType

_TRIGRAMS: Final = (
    "CREATE FUNCTION search_trigrams(given text) RETURNS text[] "
    "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$\n"
    "    SELECT coalesce(array_agg(DISTINCT a || b || c), '{{}}') FROM (SELECT letter AS a, "
    "lead(letter) OVER w AS b, lead(letter, 2) OVER w AS c FROM unnest(string_to_array("
    'lower(given COLLATE "default"), NULL)) WITH ORDINALITY AS t (letter, place) '
    "WINDOW w AS (ORDER BY place)) AS triples WHERE c IS NOT NULL\n$$"
)
"""Expensive on purpose: the planner is to look it up in the index, not to compute it."""
SEARCH: Final = (
    _TRIGRAMS,
    "CREATE INDEX {table}_search ON {table} USING gin (search_trigrams({joined}))",
)
"""The statements that make the index of a table's searched columns."""


CASED_END: Final = 0x20000
"""The code point after the last letter with a case: a tenth of all need checking."""
_WILDCARD: Final = "%"


@lru_cache(maxsize=1024)
def number_placeholders(text: str) -> str:
    """Return a text with `$1`, `$2` and so on for its question marks; no declared name has one."""
    first, *others = text.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


def like_operands(pattern: str) -> tuple[str]:
    """Return the operand of `like`, with PostgreSQL's wildcard for runs."""
    return ("".join(_WILDCARD if piece in RUN_WILDCARDS else piece for piece in _pieces(pattern)),)


def ilike_operands(pattern: str) -> tuple[bool, str, str, str]:
    """Return the operands of `ilike`: whether no text needs folding, letters, to what, the pattern.

    PostgreSQL's ILIKE folds ASCII. Of the others only letters that the pattern could match are
    folded: with all 1,400 a scan took a hundred times as long.
    """
    (folded,) = like_operands(fold(pattern))
    wanted = sorted({piece[-1] for piece in _pieces(folded)})
    pairs = [(other, letter) for letter in wanted for other in _variants().get(letter, "")]
    letters = "".join(other for other, _ in pairs)
    return not letters, letters, "".join(letter for _, letter in pairs), folded


def _pieces(pattern: str) -> Iterator[str]:
    characters = iter(pattern)
    for character in characters:
        yield character + next(characters, "") if character == ESCAPE else character


@cache
def _variants() -> dict[str, str]:
    """Return, by folded letter, the others that fold to it, but for ASCII (some 1,400 in all)."""
    variants: dict[str, str] = {}
    for letter in map(chr, range(0x80, CASED_END)):
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
            "search": "search_trigrams({joined}) @> (SELECT array_agg(each) FROM"
            " unnest(CAST(? AS text[])) AS word, unnest(search_trigrams(word)) AS each)",
        }
    ),
    operands=MappingProxyType(
        {"like": like_operands, "ilike": ilike_operands, "is": lambda _null: ()}
    ),
    no_limit=None,
    case_placeholders=MappingProxyType(
        {ColumnType.INTEGER: "CAST(? AS bigint)", ColumnType.JSON: "CAST(? AS json)"}
    ),
    format_placeholders=number_placeholders,
)


async def execute(
    connection: Connection, lists: Sequence[Sequence[Query]], *, defer_inserts: bool = False
) -> list[list[QueryResult]]:
    """Run lists of queries, as `plan_steps` says, and return the results of each.

    Raises Problem `invalid` or `conflict`, and `errors.EngineError` where the engine cannot.
    """
    steps = plan_steps(lists, POSTGRESQL, defer_inserts=defer_inserts)
    records: Sequence[Any] | None = None
    try:
        while True:
            records = await _execute_one(connection, steps.send(records))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _execute_one(connection: Connection, step: TransactionStep) -> Sequence[Any]:
    """Run a step; new rows are stored in one trip to the server, however many."""
    try:
        if isinstance(step, Fetch):
            return await connection.fetch(step.statement.text, *step.statement.parameters)
        if len(step.records) == 1:
            return await connection.fetch(step.text, *step.records[0])
        await connection.executemany(step.text, step.records)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise violation(error, step.table, step.rows[0]) from None
    return ()
