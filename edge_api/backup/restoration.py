"""What a restored older state takes over from the state that it replaces.

A key that was revoked since stays revoked, who wants no mail gets none, and what was sent is not
sent again, nor anything to an address that was removed. Each table declares what becomes of its
rows (`Table.endings`, `Table.restored`). It knows both stores as plans, and no files.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edge_api.auth.actor import OPERATOR, Change, Clock, audit_entry
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update
from edge_api.db.table import Ending, Restored, Row, Table
from edge_api.db.tables import TABLES
from edge_api.db.transfer import any_of, missing, pages


@dataclass(frozen=True, slots=True)
class Restoration:
    """What the former state had to say to the restored one, in numbers of rows."""

    ended: int
    """Keys, secrets, grants, tokens and others that had been revoked, replaced or used since."""
    remembered: int
    """Suppressions, links to unsubscribe and lines of the mail log that were new since."""
    told: int
    """Mails and events that waited then, and had been told or given up since."""
    lost: Mapping[str, int]
    """Rows of each compared table that came since, and are only in the former state."""
    back: Mapping[str, int]
    """Rows of each that had been deleted since, and are there again."""


async def carry_over(former: Store, restored: Store, clock: Clock) -> Restoration:
    """Bring into the restored state what must not be undone, and compare the two.

    It can be repeated. Raises Problem.
    """
    bearer = _Bearer(former, restored, clock)
    compared = _tables("compared")
    return Restoration(
        ended=sum([await bearer.end(t, ending) for t in TABLES.values() for ending in t.endings])
        + sum([await bearer.forget(table) for table in _tables("removed")]),
        remembered=sum([await bearer.remember(table) for table in _tables("added")]),
        told=sum([await bearer.forget(table) for table in _tables("delivered")]),
        lost={table.name: await _count_missing(former, restored, table) for table in compared},
        back={table.name: await _count_missing(restored, former, table) for table in compared},
    )


def _tables(restored: Restored) -> list[Table]:
    return [table for table in TABLES.values() if table.restored == restored]


class _Bearer:
    """Carries rows from the former state to the restored one."""

    def __init__(self, former: Store, restored: Store, clock: Clock) -> None:
        self._former = former
        self._restored = restored
        self._clock = clock

    async def end(self, table: Table, ending: Ending) -> int:
        """End what had ended, as it had."""
        number = 0
        async for rows in pages(self._former, Read(table, where=(_has_ended(ending),))):
            plans = [
                Update(
                    table,
                    {column: row[column] for column in ending.columns},
                    (Filter(table.key, "eq", row[table.key]), _goes_on(ending, row)),
                )
                for row in rows
            ]
            number += sum(len(outcome.rows) for outcome in await self._restored.run(*plans))
        return await self._note(table, number, *ending.columns)

    async def remember(self, table: Table) -> int:
        """Store what is missing; what a unique column knows already is there by another id."""
        number = 0
        async for rows in missing(self._former, self._restored, table):
            number += sum([await self._store(table, row) for row in rows])
        return await self._note(table, number)

    async def _store(self, table: Table, row: Row) -> bool:
        try:
            await self._restored.run(Insert(table, [row]))
        except Problem as problem:
            if problem.code != "conflict":
                raise
            return False
        return True

    async def forget(self, table: Table) -> int:
        """Delete what is not there any more: it was told, or nobody is to be told."""
        number = 0
        async for rows in missing(self._restored, self._former, table):
            await self._restored.run(Delete(table, (any_of(table, rows),)))
            number += len(rows)
        return await self._note(table, number)

    async def _note(self, table: Table, number: int, *columns: str) -> int:
        """Write down in the audit log how many rows were carried over."""
        if number:
            change = Change("restore", table, number, columns)
            await self._restored.run(audit_entry(OPERATOR, change, self._clock()))
        return number


async def _count_missing(source: Store, target: Store, table: Table) -> int:
    return sum([len(rows) async for rows in missing(source, target, table)])


def _has_ended(ending: Ending) -> Filter:
    """Return what holds of the rows of the former state in which it has ended."""
    if ending.value is not None:
        return Filter(ending.columns[0], "eq", ending.value)
    return Filter(ending.columns[0], "is", None, negated=True)


def _goes_on(ending: Ending, row: Row) -> Filter:
    """Return what holds of a row that has ended for as long as the restored one has not."""
    if ending.value is not None:
        return Filter(ending.columns[0], "in", ending.before)
    if ending.replaces:
        return Filter(ending.columns[0], "neq", row[ending.columns[0]])
    return Filter(ending.columns[0], "is", None)
