"""State that a restore carries over from the store it replaces.

Revocations and suppressions stay, and what was sent is not sent again, nor to removed addresses.
Each table declares what a restore does with its rows (`Table.irreversible_changes`,
`Table.on_restore`). It knows both stores by queries, and no files.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edge_api.auth.actor import OPERATOR, Clock, audit_entry
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update
from edge_api.db.table import IrreversibleChange, OnRestore, Row, Table
from edge_api.db.tables import TABLES
from edge_api.db.transfer import key_in, missing_rows, read_pages
from edge_api.outbox import run_unless_conflict


@dataclass(frozen=True, slots=True)
class Restoration:
    """The numbers of rows that were carried over from the former state."""

    ended: int
    """Keys, secrets, grants, tokens and other rows that were revoked, replaced or used since."""
    added: int
    """Suppressions, unsubscribe links and lines of the mail log that were new since."""
    sent: int  # mails and events that were sent or given up since
    lost: Mapping[str, int]
    """Rows of each compared table that are new, and only in the former state."""
    revived: Mapping[str, int]  # rows that were deleted since, and are back


async def carry_over(former: Store, restored: Store, clock: Clock) -> Restoration:
    """Carry over what must not be undone, repeatably, and compare both. Raises Problem."""
    carry = _CarryOver(former, restored, clock)
    compared = _tables_with("compared")
    return Restoration(
        ended=sum([await carry.redo(t, e) for t in TABLES.values() for e in t.irreversible_changes])
        + sum([await carry.delete_gone(table) for table in _tables_with("removed")]),
        added=sum([await carry.add_missing(table) for table in _tables_with("added")]),
        sent=sum([await carry.delete_gone(table) for table in _tables_with("delivered")]),
        lost={table.name: await _count_missing(former, restored, table) for table in compared},
        revived={table.name: await _count_missing(restored, former, table) for table in compared},
    )


def _tables_with(restored: OnRestore) -> list[Table]:
    return [table for table in TABLES.values() if table.on_restore == restored]


class _CarryOver:
    """Carries rows from the former state to the restored one."""

    def __init__(self, former: Store, restored: Store, clock: Clock) -> None:
        self._former = former
        self._restored = restored
        self._clock = clock

    async def redo(self, table: Table, change: IrreversibleChange) -> int:
        """Apply an irreversible change to the rows that had it."""
        number = 0
        async for rows in read_pages(self._former, Read(table, where=(_has_happened(change),))):
            queries = [
                Update(
                    table,
                    {column: row[column] for column in change.columns},
                    (Filter(table.key, "eq", row[table.key]), _not_happened(change, row)),
                )
                for row in rows
            ]
            number += sum(len(result.rows) for result in await self._restored.run(*queries))
        return await self._audit(table, number, *change.columns)

    async def add_missing(self, table: Table) -> int:
        """Add missing rows, unless a unique column has them by another id."""
        number = 0
        async for rows in missing_rows(self._former, self._restored, table):
            inserts = [Insert(table, [row]) for row in rows]
            number += sum([await run_unless_conflict(self._restored, each) for each in inserts])
        return await self._audit(table, number)

    async def delete_gone(self, table: Table) -> int:
        """Delete rows that are gone: they were sent, or must not be restored."""
        number = 0
        async for rows in missing_rows(self._restored, self._former, table):
            await self._restored.run(Delete(table, (key_in(table, rows),)))
            number += len(rows)
        return await self._audit(table, number)

    async def _audit(self, table: Table, number: int, *columns: str) -> int:
        if number:
            entry = audit_entry(OPERATOR, "restore", table, number, self._clock(), *columns)
            await self._restored.run(entry)
        return number


async def _count_missing(source: Store, target: Store, table: Table) -> int:
    return sum([len(rows) async for rows in missing_rows(source, target, table)])


def _has_happened(change: IrreversibleChange) -> Filter:
    """Return the filter of former rows that have the change."""
    if change.value is not None:
        return Filter(change.columns[0], "eq", change.value)
    return Filter(change.columns[0], "is", None, negated=True)


def _not_happened(change: IrreversibleChange, row: Row) -> Filter:
    """Return the filter of a restored row that does not have the change yet."""
    if change.value is not None:
        return Filter(change.columns[0], "in", change.former_values)
    if change.replaces:
        return Filter(change.columns[0], "neq", row[change.columns[0]])
    return Filter(change.columns[0], "is", None)
