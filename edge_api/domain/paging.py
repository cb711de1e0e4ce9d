"""Whole tables, read some rows at a time in the order of their key: others read in between.

It knows stores and tables, and nothing of what rows mean.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from edge_api.schema.table import Row, Table
from edge_api.store.plan import Condition, Order, Read, Store

ROWS_AT_ONCE: Final = 500


async def pages(store: Store, plan: Read) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows of a plan without order, limit and offset. Raises Problem."""
    key = plan.table.key
    where = plan.where
    while True:
        page = Read(plan.table, where=where, order=(Order(key),), limit=ROWS_AT_ONCE)
        (outcome,) = await store.run(page)
        if outcome.rows:
            yield outcome.rows
        if len(outcome.rows) < ROWS_AT_ONCE:
            return
        where = (*plan.where, Condition(key, "gt", outcome.rows[-1][key]))


async def missing(source: Store, target: Store, table: Table) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows of one store whose keys another one lacks. Raises Problem."""
    async for rows in pages(source, Read(table)):
        (known,) = await target.run(Read(table, (table.key,), (any_of(table, rows),)))
        keys = {row[table.key] for row in known.rows}
        yield [row for row in rows if row[table.key] not in keys]


def any_of(table: Table, rows: Sequence[Row]) -> Condition:
    """Return what holds of the rows with the keys of these."""
    return Condition(table.key, "in", tuple(row[table.key] for row in rows))
