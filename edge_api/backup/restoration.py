"""State that a restore carries over from the store it replaces.

Revocations and suppressions stay, erased people are erased again, and what was sent is not sent
again, nor to webhook addresses that were removed. Each table declares what a restore does with its
rows (`Table.irreversible_changes`, `Table.on_restore`). Both stores are used by queries, not as
files.
"""

from collections.abc import Callable, Mapping
from typing import Final

from edge_api.auth.actor import OPERATOR, Clock, audit_entry
from edge_api.auth.erasure import PERSONAL_DATA, Privacy
from edge_api.db.internal_tables import ANNOUNCED_POSTS, EMAIL_OUTBOX
from edge_api.db.newsletter_tables import FAR, MAILINGS
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update
from edge_api.db.table import IrreversibleChange, OnRestore, Row, Table
from edge_api.db.tables import TABLES
from edge_api.db.transfer import key_in, missing_rows, read_pages
from edge_api.db.types import format_instant
from edge_api.outbox import run_unless_conflict

_RESTORED: Final = "the store was restored; skip it if it had gone out: resuming mails it again"


async def carry_over(former: Store, restored: Store, clock: Clock) -> Mapping[str, int]:
    """Carry over what a restore must not undo, and compare the stores. Raises Problem.

    It can be repeated. Return numbers of rows by what happened to them: four sums, and for each
    compared table the rows that only the former store has, and those that only the restored has.
    """
    carry = _CarryOver(former, restored, clock)
    numbers = {
        "revoked, removed, used or announced since, and still so": sum(
            [await carry.redo(t, each) for t in TABLES.values() for each in t.irreversible_changes]
            + [await carry.delete_gone(table) for table in _tables_with("removed")]
        ),
        "suppressions, lines of the mail log and the like, taken over": sum(
            [await carry.add_missing(table) for table in _tables_with("added")]
            # The cursors of mailings, which are carried over, are beyond these letters.
            + [await carry.add_missing(EMAIL_OUTBOX, lambda row: row["queue"] == "newsletter")]
        ),
        "mails and events that had been sent since, and are not sent again": sum(
            [await carry.delete_gone(table) for table in _tables_with("delivered")]
        ),
        "rows of people who had been erased since, erased again": await carry.erase_again(),
    }
    for table in _tables_with("compared"):
        numbers |= {
            f"{table.name} that came since, in the former store alone": sum(
                [len(rows) async for rows in missing_rows(former, restored, table)]
            ),
            f"{table.name} that were deleted since, other than by an erasure, and are back": sum(
                [len(rows) async for rows in missing_rows(restored, former, table)]
            ),
        }
    return numbers


async def settle_newsletter(restored: Store, clock: Clock, *, is_carried: bool) -> int:
    """Let new posts of the next build wait for the owner's press, since they may have been mailed.

    Unless all was carried over, hold the mailings that had begun; return their number. Raises
    Problem.
    """
    await restored.run(Update(ANNOUNCED_POSTS, {"texts": ""}, (Filter("id", "eq", 1),)))
    if is_carried:
        return 0
    letters = Filter("queue", "eq", "newsletter"), Filter("dead_at", "is", None)
    (waiting,) = await restored.run(Read(EMAIL_OUTBOX, ("id", "subject_id"), letters))
    begun = tuple({row["subject_id"] for row in waiting.rows})
    is_open = Filter("queued_at", "is", None), Filter("id", "in", begun)
    where = (
        Filter("ended_at", "is", None),
        Filter("held_at", "is", None),
        Filter("due_at", "is", None, negated=True),
        Filter("id", "any", is_open),
    )
    held = {"held_at": format_instant(clock()), "held_for": _RESTORED}
    far = dict.fromkeys(("due_at", "queued_at"), FAR)
    hold, _ = await restored.run(Update(MAILINGS, held, where), Update(EMAIL_OUTBOX, far, letters))
    return len(hold.rows)


def _tables_with(on_restore: OnRestore) -> list[Table]:
    return [table for table in TABLES.values() if table.on_restore == on_restore]


class _CarryOver:
    """Carries over changes from the former store to the restored one."""

    def __init__(self, former: Store, restored: Store, clock: Clock) -> None:
        self._former = former
        self._restored = restored
        self._clock = clock

    async def redo(self, table: Table, change: IrreversibleChange) -> int:
        """Repeat an irreversible change in restored rows; return the number of rows."""
        number, column = 0, change.columns[0]
        has_happened = (
            Filter(column, "is", None, negated=True)
            if change.value is None
            else Filter(column, "eq", change.value)
        )
        async for rows in read_pages(self._former, Read(table, where=(has_happened,))):
            queries = [
                Update(
                    table,
                    {each: row[each] for each in change.columns},
                    (Filter(table.key, "eq", row[table.key]), _not_happened(change, row)),
                )
                for row in rows
            ]
            number += sum(len(result.rows) for result in await self._restored.run(*queries))
        return await self._audit(table, number, *change.columns)

    async def add_missing(self, table: Table, is_wanted: Callable[[Row], bool] = bool) -> int:
        """Add missing rows, unless another row has the same value in a unique column."""
        number = 0
        async for rows in missing_rows(self._former, self._restored, table):
            inserts = [Insert(table, [row]) for row in filter(is_wanted, rows)]
            number += sum([await run_unless_conflict(self._restored, each) for each in inserts])
        return await self._audit(table, number)

    async def delete_gone(self, table: Table) -> int:
        """Delete rows that the former store no longer has: they were sent, or must not return."""
        number = 0
        async for rows in missing_rows(self._restored, self._former, table):
            await self._restored.run(Delete(table, (key_in(table, rows),)))
            number += len(rows)
        return await self._audit(table, number)

    async def erase_again(self) -> int:
        """Erase rows whose keys are stored as erased, and rows that name those keys."""
        found = await Privacy(self._restored, self._clock).erase(None, OPERATOR)
        number = sum(
            len(rows) for table, rows in found.items() if not PERSONAL_DATA[table].kept_reason
        )
        if number:
            await self._restored.scrub(full=True)
        return number

    async def _audit(self, table: Table, number: int, *columns: str) -> int:
        if number:
            entry = audit_entry(OPERATOR, "restore", table, number, self._clock(), *columns)
            await self._restored.run(entry)
        return number


def _not_happened(change: IrreversibleChange, row: Row) -> Filter:
    """Return the filter of a restored row in which the change has not happened yet."""
    if change.value is not None:
        return Filter(change.columns[0], "in", change.former_values)
    if change.replaces:
        return Filter(change.columns[0], "neq", row[change.columns[0]])
    return Filter(change.columns[0], "is", None)
