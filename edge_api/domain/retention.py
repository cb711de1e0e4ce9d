"""How long rows are kept: what is older than the settings allow is deleted.

Age alone counts, whatever became of a row. The secret of an unsubscribe link goes with the last
row that names its address, unless it was used.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from edge_api.domain.actor import SERVICE, Actor, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.mail.suppression import fold_recipient
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.schema.table import Row, Table
from edge_api.schema.tables import AUDIT_LOG, EMAIL_SEND_LOG, EMAIL_UNSUBSCRIBE_TOKENS, LEADS
from edge_api.settings import Settings
from edge_api.store.plan import AffectedBy, Condition, Delete, Order, Plan, Read, Store, Where

AGE: Final[Mapping[Table, str]] = MappingProxyType(
    {LEADS: "created_at", EMAIL_SEND_LOG: "created_at", AUDIT_LOG: "at"}
)
"""The tables of which rows are deleted by their age, and the column that tells it."""
NAMED_IN: Final[Mapping[Table, str]] = MappingProxyType(
    {
        EMAIL_SEND_LOG: "recipient_email",
        LEADS: "email",
        EMAIL_OUTBOX: "recipient_email",
    }
)
"""The tables whose rows keep the token of an address, and the column that names it.

What waits comes last: it is written with a lead or after it, and is mailed with the token.
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
        self._days: Mapping[Table, int] = {
            LEADS: settings.retain_leads_days,
            EMAIL_SEND_LOG: settings.retain_mail_log_days,
            AUDIT_LOG: settings.retain_audit_days,
        }

    @property
    def is_limited(self) -> bool:
        """Tell whether anything is deleted by its age."""
        return any(self._days.values())

    async def apply(self, actor: Actor = SERVICE) -> Mapping[Table, int]:
        """Delete what is too old; return how many rows of each table. Raises Problem.

        Tokens are named where any went. The log of the store is emptied where nobody reads from
        it at this moment.
        """
        deleted = {table: await self._delete(table, actor) for table in AGE if self._days[table]}
        if forgotten := await self._forget_tokens(actor):
            deleted[EMAIL_UNSUBSCRIBE_TOKENS] = forgotten
        if any(deleted.values()):
            await self._store.scrub()
        return deleted

    async def _delete(self, table: Table, actor: Actor) -> int:
        before = spell_instant(self._clock() - timedelta(days=self._days[table]))
        old, oldest = (Condition(AGE[table], "lt", before),), (Order(AGE[table]),)
        number = 0
        while True:
            (outcome,) = await self._store.run(Read(table, ("id",), old, oldest, ROWS_AT_ONCE))
            ids = tuple(row["id"] for row in outcome.rows)
            if not ids:
                return number
            await self._store.run(*self._plans(table, ids, actor))
            number += len(ids)

    def _plans(self, table: Table, ids: tuple[str, ...], actor: Actor) -> Sequence[Plan]:
        plans: list[Plan] = [Delete(table, (Condition("id", "in", ids),))]
        change = Change("forget", table, AffectedBy(0), (AGE[table],))
        plans.append(audit_entry(actor, change, self._clock()))
        if table is LEADS:  # nobody is told any more of what is gone
            of_them = (Condition("subject_id", "in", ids),)
            plans += (Delete(waiting, of_them) for waiting in (EMAIL_OUTBOX, WEBHOOK_DELIVERIES))
        return plans

    async def _forget_tokens(self, actor: Actor) -> int:
        """Delete unused tokens that are as old as anything that is kept, and named nowhere."""
        days = max(self._days[LEADS], self._days[EMAIL_SEND_LOG])
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
            for table, column in NAMED_IN.items()
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
