"""All rows of a store in another one, read some at a time, and the proof that they are the same.

It can be repeated: rows that are there and equal are left alone. A target that has other rows is
refused before anything is written, since nobody could tell which of the two is right. It knows
queries and declared tables, and no engine.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Order, Read, Store, Update
from edge_api.db.table import Row, Table

ROWS_AT_ONCE: Final = 500


async def pages(
    store: Store, query: Read, at_once: int = ROWS_AT_ONCE
) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows of a query without order, limit and offset: others read in between.

    Of its columns the key has to be one. Raises Problem.
    """
    key = query.table.key
    where = query.where
    while True:
        page = Read(query.table, query.columns, where, (Order(key),), at_once)
        (outcome,) = await store.run(page)
        if outcome.rows:
            yield outcome.rows
        if len(outcome.rows) < at_once:
            return
        where = (*query.where, Filter(key, "gt", outcome.rows[-1][key]))


async def missing(source: Store, target: Store, table: Table) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows of one store whose keys another one lacks. Raises Problem."""
    async for rows in pages(source, Read(table)):
        (known,) = await target.run(Read(table, (table.key,), (key_in(table, rows),)))
        keys = {row[table.key] for row in known.rows}
        yield [row for row in rows if row[table.key] not in keys]


def key_in(table: Table, rows: Sequence[Row]) -> Filter:
    """Return what holds of the rows with the keys of these."""
    return Filter(table.key, "in", tuple(row[table.key] for row in rows))


Tell = Callable[[Table, int], None]
"""Hears how many rows of a table have been looked at."""

SHOWN: Final = 3
"""Keys that a sentence names."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """What one store holds of a table."""

    rows: int
    digest: str
    """SHA-256 over the rows in the order of their key, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Copied:
    """One table that both stores hold now."""

    table: Table
    proof: TableDigest
    stored: int
    """How many of its rows were stored by this run."""


async def copy_tables(
    source: Store, target: Store, tables: Iterable[Table], tell: Tell
) -> Sequence[Copied]:
    """Copy every row that the target lacks, and compare both stores in whole.

    Raises Problem `conflict` for a target with other rows, for a source that changes meanwhile,
    and where the two differ at the end.
    """
    version = source.version()
    tables = tuple(tables)
    await _refuse_others(source, target, tables)
    stored = {table.name: await _copy(source, target, table, tell) for table in tables}
    copied = [
        Copied(table, await _prove_same(source, target, table), stored[table.name])
        for table in tables
    ]
    if source.version() != version:
        await _refuse_changed(source, copied)
    return copied


async def _refuse_changed(source: Store, copied: Iterable[Copied]) -> None:
    """Look at the rows again: a version may differ where only others on the server have written."""
    for each in copied:
        if await prove(source, each.table) != each.proof:
            raise Problem(
                "conflict",
                "The source was changed meanwhile: end what writes to it, and copy again",
            )


async def _refuse_others(source: Store, target: Store, tables: Sequence[Table]) -> None:
    """Look at everything before anything is written."""
    found = [message for table in tables for message in await _find_others(source, target, table)]
    if found:
        raise Problem(
            "conflict",
            f"The target has other rows, and nothing was copied: {'; '.join(found)}. "
            "Copy into an empty store",
        )


async def _find_others(source: Store, target: Store, table: Table) -> Sequence[str]:
    if table.singleton:  # a new store has that row already, and takes the source's
        return []
    keys: list[Any] = []
    extra = [row[table.key] async for rows in missing(target, source, table) for row in rows]
    async for rows in pages(target, Read(table)):
        (same,) = await source.run(Read(table, where=(key_in(table, rows),)))
        known = {row[table.key]: row for row in same.rows}
        keys += [row[table.key] for row in rows if known.get(row[table.key], row) != row]
    return [*_say(table, "differ", keys), *_say(table, "are not in the source", extra)]


def _say(table: Table, what: str, keys: Sequence[Any]) -> Sequence[str]:
    if not keys:
        return []
    named = ", ".join(map(str, keys[:SHOWN])) + (", ..." if len(keys) > SHOWN else "")
    return [f"{len(keys)} of {table.name} {what} ({named})"]


async def _copy(source: Store, target: Store, table: Table, tell: Tell) -> int:
    """Store the rows that are missing, a page in each transaction; return how many."""
    if table.singleton:
        await _copy_singleton(source, target, table)
    looked = stored = 0
    async for rows in pages(source, Read(table)):
        (known,) = await target.run(Read(table, (table.key,), (key_in(table, rows),)))
        keys = {row[table.key] for row in known.rows}
        new = [row for row in rows if row[table.key] not in keys]
        if new:
            await target.run(Insert(table, new))
        looked, stored = looked + len(rows), stored + len(new)
        tell(table, looked)
    return stored


async def _copy_singleton(source: Store, target: Store, table: Table) -> None:
    """Let the target's row be as the source's where both have one, and gone where it is gone."""
    (found,), (known,) = await source.run(Read(table)), await target.run(Read(table))
    if found.rows == known.rows:
        return
    if not found.rows:
        await target.run(Delete(table, (Filter(table.key, "is", None, negated=True),)))
    for row in found.rows:
        values = {name: value for name, value in row.items() if name != table.key}
        await target.run(Update(table, values, (Filter(table.key, "eq", row[table.key]),)))


async def _prove_same(source: Store, target: Store, table: Table) -> TableDigest:
    ours, theirs = await prove(source, table), await prove(target, table)
    if ours != theirs:
        raise Problem(
            "conflict",
            f"{table.name} differs after the copy: {ours.rows} rows in the source and "
            f"{theirs.rows} in the target; copy again while nobody writes to either",
        )
    return ours


async def prove(store: Store, table: Table) -> TableDigest:
    """Return how many rows a table has, and their digest. Raises Problem."""
    digest, number = hashlib.sha256(), 0
    async for rows in pages(store, Read(table)):
        for row in rows:
            digest.update(_serialize(table.columns, row))
        number += len(rows)
    return TableDigest(number, digest.hexdigest())


def _serialize(columns: Mapping[str, Any], row: Row) -> bytes:
    """Return a row in the form that all engines share, ended by a line feed."""
    values = [row[name] for name in columns]
    text = json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f"{text}\n".encode("utf-8", "surrogatepass")
