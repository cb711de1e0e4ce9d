"""Copying all rows of a store into another one, page by page, and comparing both stores.

A copy can be repeated: equal rows in the target stay as they are. A target that has other rows is
refused before anything is written, since the copy cannot decide which of the two is right. This
module knows queries and declared tables, and no engine.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Order, Read, Store, Update, read_all
from edge_api.db.table import Row, Table

PAGE_SIZE: Final = 500


async def read_pages(
    store: Store, query: Read, page_size: int = PAGE_SIZE
) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows of a query in pages, in the order of their key; others can read in between.

    The query has the key among its columns; its order, limit and offset are ignored. Raises
    Problem.
    """
    key = query.table.key
    where = query.where
    while True:
        page = Read(query.table, query.columns, where, (Order(key),), page_size)
        (result,) = await store.run(page)
        if result.rows:
            yield result.rows
        if len(result.rows) < page_size:
            return
        where = (*query.where, Filter(key, "gt", result.rows[-1][key]))


async def missing_rows(source: Store, target: Store, table: Table) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows of `source` whose keys `target` lacks. Raises Problem."""
    async for rows in read_pages(source, Read(table)):
        yield await _rows_not_in(target, table, rows)


async def _rows_not_in(store: Store, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows whose keys the store lacks."""
    known = await read_all(store, Read(table, (table.key,), (key_in(table, rows),)))
    keys = {row[table.key] for row in known}
    return [row for row in rows if row[table.key] not in keys]


def key_in(table: Table, rows: Sequence[Row]) -> Filter:
    """Return a filter that matches all rows with the keys of `rows`."""
    return Filter(table.key, "in", tuple(row[table.key] for row in rows))


OnProgress = Callable[[Table, int], None]
"""Called with the number of rows of a table that have been processed."""

MAX_SHOWN_KEYS: Final = 3  # the most keys in a message


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that is equal in both stores after the copy."""

    table: Table
    rows: int
    digest: str
    """SHA-256 over the rows in the order of their key, in hexadecimal."""
    stored: int
    """The number of its rows that this run stored."""


async def copy_tables(
    source: Store, target: Store, tables: Iterable[Table], on_progress: OnProgress
) -> Sequence[CopiedTable]:
    """Copy every row that the target lacks, and compare all rows of both stores.

    Raises Problem `conflict` for a target with other rows, for a source that changes meanwhile,
    and where the two differ at the end.
    """
    version = source.version()
    tables = tuple(tables)
    # Check all tables before anything is written.
    found = [message for table in tables for message in await _conflicts_of(source, target, table)]
    if found:
        raise Problem(
            "conflict",
            f"The target has other rows, and nothing was copied: {'; '.join(found)}. "
            "Copy into an empty store",
        )
    stored = {table.name: await _copy(source, target, table, on_progress) for table in tables}
    copied = [
        CopiedTable(table, *await _check_equal(source, target, table), stored[table.name])
        for table in tables
    ]
    # Compare again, since writes to other databases may change the version too.
    for each in copied if source.version() != version else ():
        if await digest_table(source, each.table) != (each.rows, each.digest):
            raise Problem(
                "conflict",
                "The source was changed meanwhile: end what writes to it, and copy again",
            )
    return copied


async def _conflicts_of(source: Store, target: Store, table: Table) -> Sequence[str]:
    if table.singleton:  # a new store has that row already, and the copy replaces it
        return []
    keys: list[Any] = []
    extra = [row[table.key] async for rows in missing_rows(target, source, table) for row in rows]
    async for rows in read_pages(target, Read(table)):
        known = {
            row[table.key]: row
            for row in await read_all(source, Read(table, where=(key_in(table, rows),)))
        }
        keys += [row[table.key] for row in rows if known.get(row[table.key], row) != row]
    return [*_list_keys(table, "differ", keys), *_list_keys(table, "are not in the source", extra)]


def _list_keys(table: Table, what: str, keys: Sequence[Any]) -> Sequence[str]:
    if not keys:
        return []
    shown = ", ".join(map(str, keys[:MAX_SHOWN_KEYS])) + (
        ", ..." if len(keys) > MAX_SHOWN_KEYS else ""
    )
    return [f"{len(keys)} of {table.name} {what} ({shown})"]


async def _copy(source: Store, target: Store, table: Table, on_progress: OnProgress) -> int:
    """Store the missing rows, a page in each transaction; return their number."""
    if table.singleton:
        await _copy_singleton(source, target, table)
    copied = stored = 0
    async for rows in read_pages(source, Read(table)):
        if new := await _rows_not_in(target, table, rows):
            await target.run(Insert(table, new))
        copied, stored = copied + len(rows), stored + len(new)
        on_progress(table, copied)
    return stored


async def _copy_singleton(source: Store, target: Store, table: Table) -> None:
    """Make the target's row equal to the source's, or delete it where the source has none."""
    (found,), (known,) = await source.run(Read(table)), await target.run(Read(table))
    if found.rows == known.rows:
        return
    if not found.rows:
        await target.run(Delete(table, (Filter(table.key, "is", None, negated=True),)))
    for row in found.rows:
        values = {name: value for name, value in row.items() if name != table.key}
        await target.run(Update(table, values, (Filter(table.key, "eq", row[table.key]),)))


async def _check_equal(source: Store, target: Store, table: Table) -> tuple[int, str]:
    copied, found = await digest_table(source, table), await digest_table(target, table)
    if copied != found:
        raise Problem(
            "conflict",
            f"{table.name} differs after the copy: {copied[0]} rows in the source and "
            f"{found[0]} in the target; copy again while nobody writes to either",
        )
    return copied


async def digest_table(store: Store, table: Table) -> tuple[int, str]:
    """Return the number of rows of a table, and their digest. Raises Problem."""
    digest, number = hashlib.sha256(), 0
    async for rows in read_pages(store, Read(table)):
        for row in rows:
            # A row is serialized to the same bytes in all engines, ended by a line feed.
            text = json.dumps(
                [row[name] for name in table.columns],
                ensure_ascii=False,
                sort_keys=True,
                separators=(",", ":"),
            )
            digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))
        number += len(rows)
    return number, digest.hexdigest()
