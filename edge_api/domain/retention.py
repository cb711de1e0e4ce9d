"""How long rows are kept: what is older than the settings allow is deleted.

Age alone counts, whatever became of a row.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from edge_api.domain.actor import SERVICE, Actor, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.schema.table import Table
from edge_api.schema.tables import AUDIT_LOG, EMAIL_SEND_LOG, LEADS
from edge_api.settings import Settings
from edge_api.store.plan import AffectedBy, Condition, Delete, Order, Plan, Read, Store

AGE: Final[Mapping[Table, str]] = MappingProxyType(
    {LEADS: "created_at", EMAIL_SEND_LOG: "created_at", AUDIT_LOG: "at"}
)
"""The tables of which rows are deleted by their age, and the column that tells it."""
ROWS_AT_ONCE: Final = 500
"""Rows that are deleted in one transaction: others write in between."""


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

        The log of the store is emptied where nobody reads from it at this moment.
        """
        deleted = {table: await self._delete(table, actor) for table in AGE if self._days[table]}
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
