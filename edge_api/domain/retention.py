"""How long rows are kept: what is older than the settings allow is deleted.

Each table declares how its rows age (`Table.retention`). Age alone counts, whatever became of a
row. The secret of an unsubscribe link goes with the last row that names its address, unless it was
used.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from edge_api.domain.actor import SERVICE, Actor, Change, Clock, audit_entry
from edge_api.domain.mail.suppressions import fold_recipient
from edge_api.schema.kinds import spell_instant
from edge_api.schema.table import Row, Table
from edge_api.schema.tables import EMAIL_UNSUBSCRIBE_TOKENS, TABLES
from edge_api.settings import Settings
from edge_api.store.plan import AffectedBy, Condition, Delete, Order, Plan, Read, Store, Where

MAILED: Final[Mapping[Table, str]] = MappingProxyType(
    {table: data.mailed for table in TABLES.values() if (data := table.personal) and data.mailed}
)
"""The tables whose rows keep the token of an address, and the column that names it.

The outbox is read after the leads, so that an entry written meanwhile is seen.
"""
UNUSED: Final = Condition("used_at", "is", None)
"""Of a token: one that was used says how its address came to be suppressed."""
ROWS_AT_ONCE: Final = 500
"""Rows that are deleted in one transaction: others write in between."""
NAMES_AT_ONCE: Final = 2000
"""Rows that are looked at together."""


class Retention:
    """Deletes what has been kept for long enough."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._limits: Mapping[Table, tuple[str, int]] = {
            table: (rule.since, days)
            for table in TABLES.values()
            if (rule := table.retention)
            and rule.setting
            and (days := getattr(settings, rule.setting))
        }

    @property
    def is_limited(self) -> bool:
        """Tell whether anything is deleted by its age."""
        return bool(self._limits)

    async def apply(self, actor: Actor = SERVICE) -> Mapping[Table, int]:
        """Delete what is too old; return how many rows of each table. Raises Problem.

        Tokens are named where any went. The log of the store is emptied where nobody reads from
        it at this moment.
        """
        deleted = {
            table: await self._delete(table, since, days, actor)
            for table, (since, days) in self._limits.items()
        }
        if forgotten := await self._forget_tokens(actor):
            deleted[EMAIL_UNSUBSCRIBE_TOKENS] = forgotten
        if any(deleted.values()):
            await self._store.scrub()
        return deleted

    async def _delete(self, table: Table, since: str, days: int, actor: Actor) -> int:
        before = spell_instant(self._clock() - timedelta(days=days))
        old, oldest = (Condition(since, "lt", before),), (Order(since),)
        number = 0
        while True:
            (outcome,) = await self._store.run(Read(table, (table.key,), old, oldest, ROWS_AT_ONCE))
            keys = tuple(row[table.key] for row in outcome.rows)
            if not keys:
                return number
            change = Change("forget", table, AffectedBy(0), (since,))
            await self._store.run(
                Delete(table, (Condition(table.key, "in", keys),)),
                audit_entry(actor, change, self._clock()),
                *_delete_children(table, keys),
            )
            number += len(keys)

    async def _forget_tokens(self, actor: Actor) -> int:
        """Delete unused tokens that are as old as anything that is kept, and named nowhere."""
        days = max(
            (days for table, (_, days) in self._limits.items() if table in MAILED), default=0
        )
        if not days:
            return 0
        before = spell_instant(self._clock() - timedelta(days=days))
        old = (UNUSED, Condition("created_at", "lt", before))
        tokens = [row async for row in self._every_row(EMAIL_UNSUBSCRIBE_TOKENS, "email", old)]
        named = await self._named() if tokens else frozenset()
        ids = [row["id"] for row in tokens if fold_recipient(row["email"]) not in named]
        parts = (ids[start : start + ROWS_AT_ONCE] for start in range(0, len(ids), ROWS_AT_ONCE))
        return sum([await self._delete_tokens(tuple(part), actor) for part in parts])

    async def _named(self) -> Collection[str]:
        """Return every address that a row names, in the one spelling of each."""
        return {
            fold_recipient(row[column])
            for table, column in MAILED.items()
            async for row in self._every_row(table, column)
        }

    async def _every_row(self, table: Table, column: str, where: Where = ()) -> AsyncIterator[Row]:
        """Yield the rows that match, a few at a time: others read in between."""
        last = ""
        while True:
            beyond = (*where, Condition("id", "gt", last))
            plan = Read(table, ("id", column), beyond, (Order("id"),), NAMES_AT_ONCE)
            (outcome,) = await self._store.run(plan)
            for row in outcome.rows:
                yield row
            if len(outcome.rows) < NAMES_AT_ONCE:
                return
            last = outcome.rows[-1]["id"]

    async def _delete_tokens(self, ids: tuple[str, ...], actor: Actor) -> int:
        change = Change("forget", EMAIL_UNSUBSCRIBE_TOKENS, AffectedBy(0), ("created_at",))
        deleted, _ = await self._store.run(
            Delete(EMAIL_UNSUBSCRIBE_TOKENS, (UNUSED, Condition("id", "in", ids))),
            audit_entry(actor, change, self._clock()),
        )
        return len(deleted.rows)


def _delete_children(table: Table, keys: tuple[str, ...]) -> Iterator[Plan]:
    """Yield what deletes the rows of other tables that go with rows of this one."""
    for child in TABLES.values():
        column, parent = (child.retention and child.retention.row_of) or ("", "")
        if parent == table.name:
            yield Delete(child, (Condition(column, "in", keys),))
