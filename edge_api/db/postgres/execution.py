"""Queries executed on a connection, in the SQL of PostgreSQL, whatever the locale of the server."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

import asyncpg
import orjson

from edge_api.db import sql
from edge_api.db.errors import stale_update, too_many_rows
from edge_api.db.postgres.connection import Connection
from edge_api.db.postgres.errors import violation
from edge_api.db.problems import not_one_row
from edge_api.db.query import ESCAPE, RUN_WILDCARDS, Delete, Query, QueryResult, Read, Update, fold
from edge_api.db.sql import COMPARISONS, DdlDialect, Dialect, decode
from edge_api.db.table import Row, Table
from edge_api.db.transaction import NewRows, TransactionStep, plan_steps
from edge_api.db.types import ColumnType

DDL: Final = DdlDialect(
    types=MappingProxyType(
        {
            ColumnType.TEXT: 'text COLLATE "C"',
            ColumnType.UUID: 'text COLLATE "C"',
            ColumnType.TIMESTAMP: 'text COLLATE "C"',
            ColumnType.INTEGER: "bigint",
            ColumnType.JSON: "json",
        }
    ),
    # LIKE patterns, in which an underscore is one character; JSON is seen to by its type.
    checks=MappingProxyType(
        {
            ColumnType.UUID: "{column} LIKE '________-____-____-____-____________'",
            ColumnType.TIMESTAMP: "{column} LIKE '____-__-__T__:__:__.______Z'",
        }
    ),
)


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
    result = None
    try:
        while True:
            result = await _execute_one(connection, steps.send(result))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _execute_one(connection: Connection, step: TransactionStep) -> QueryResult:
    match step:
        case Read():
            return await _read(connection, step)
        case Update():
            return await _update(connection, step)
        case Delete():
            await _refuse_more_than_allowed(connection, step)
            return QueryResult(await _changed(connection, step, sql.delete_rows(step, POSTGRESQL)))
        case NewRows():
            await _store(connection, step)
            return QueryResult()


async def _store(connection: Connection, new: NewRows) -> None:
    """Store new rows in one trip to the server, however many."""
    try:
        if len(new.records) == 1:
            await connection.fetch(new.text, *new.records[0])
        else:
            await connection.executemany(new.text, new.records)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise violation(error, new.table, new.rows) from None


async def _read(connection: Connection, query: Read) -> QueryResult:
    names = query.columns or tuple(query.table.columns)
    rows = await _fetch(connection, query.table, names, sql.read_rows(query, POSTGRESQL))
    counting = sql.count_rows(query, POSTGRESQL) if query.with_total else None
    total = await _number(connection, counting) if counting else None
    if query.as_json:
        return QueryResult([], total, orjson.dumps(rows), len(rows))
    return QueryResult(rows, total)


async def _update(connection: Connection, query: Update) -> QueryResult:
    await _refuse_more_than_allowed(connection, query)
    try:
        rows = await _changed(connection, query, sql.update_rows(query, POSTGRESQL))
    except asyncpg.IntegrityConstraintViolationError as error:
        raise violation(error, query.table, [dict(query.values)]) from None
    if len(rows) < query.at_least:
        raise stale_update()
    return QueryResult(rows)


async def _refuse_more_than_allowed(connection: Connection, query: Update | Delete) -> None:
    most = query.at_most
    if most is None:
        return
    if await _number(connection, sql.count_matches(query, most, POSTGRESQL)) > most:
        raise too_many_rows(most)


async def _changed(
    connection: Connection, query: Update | Delete, statement: sql.Statement
) -> list[Row]:
    rows = await _fetch(connection, query.table, tuple(query.table.columns), statement)
    if query.single and len(rows) != 1:
        raise not_one_row(len(rows))
    return sorted(rows, key=lambda row: row[query.table.key])


async def _number(connection: Connection, statement: sql.Statement) -> int:
    return int(await connection.fetchval(statement.text, *statement.parameters))


async def _fetch(
    connection: Connection, table: Table, names: Sequence[str], statement: sql.Statement
) -> list[Row]:
    records = await connection.fetch(statement.text, *statement.parameters)
    return decode(table, names, records)
