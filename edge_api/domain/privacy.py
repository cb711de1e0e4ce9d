"""What the store keeps of one person: found by their e-mail address, shown, or erased.

For the rights of access and to erasure (GDPR, Articles 15 and 17). How rows are shown is not known
here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from edge_api.domain.actor import Actor, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.data_subject import DataSubject
from edge_api.domain.selection import spell_value
from edge_api.schema.oauth_tables import ACCESS_REQUESTS
from edge_api.schema.outbox_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row, Table
from edge_api.schema.tables import (
    EMAIL_SEND_LOG,
    EMAIL_UNSUBSCRIBE_TOKENS,
    IDEMPOTENCY_KEYS,
    LEADS,
    SUPPRESSED_EMAILS,
)
from edge_api.store.plan import AffectedBy, Condition, Delete, Order, Plan, Read, Store, Update

Found = Mapping[Table, Sequence[Row]]
"""The whole rows that are about a person; tables without any are there, with none."""

NAMED_BY: Final[Mapping[Table, tuple[str, ...]]] = MappingProxyType(
    {
        LEADS: ("email",),
        EMAIL_SEND_LOG: ("recipient_email", "message_id", "error_message", "metadata"),
        EMAIL_OUTBOX: ("recipient_email", "subject_id"),
        WEBHOOK_DELIVERIES: ("subject_id", "body"),
        EMAIL_UNSUBSCRIBE_TOKENS: ("email",),
        SUPPRESSED_EMAILS: ("email",),
        ACCESS_REQUESTS: ("email",),
        IDEMPOTENCY_KEYS: ("response",),
    }
)
"""Where rows about a person are, and which columns name their address, or a lead of theirs.

Leads come first: the others are also known by the ids of those.
"""
ROWS_AT_ONCE: Final = 2000
"""Rows that are looked at together."""


class Privacy:
    """What one store keeps of people."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, address: str) -> Found:
        """Return all that is kept of whoever has the address, however it is spelt.

        Every row of these tables is looked at: spellings differ. Raises Problem, `invalid` for
        what is no address and was stored nowhere: a slip of the pen must not pass for nothing.
        """
        subject = DataSubject(address)
        found: dict[Table, Sequence[Row]] = {}
        for table in NAMED_BY:
            leads = frozenset(row["id"] for row in found.get(LEADS, ()))
            found[table] = await self._find_in(table, subject, leads)
        if not subject.is_valid and not any(found.values()):
            raise Problem("invalid", "EMAIL: not a valid e-mail address")
        return found

    async def erase(self, address: str, actor: Actor) -> Found:
        """Delete all that is kept of whoever has the address, in one transaction; return it.

        Only a suppression stays, without what was noted beside it: the wish not to be mailed has
        to be honoured. The audit log gets numbers, and no address. Raises Problem.
        """
        found = await self.find(address)
        plans: list[Plan] = []
        for table, rows in found.items():
            ids = tuple(
                row["id"] for row in rows if table is not SUPPRESSED_EMAILS or row["metadata"]
            )
            if ids:
                change = Change("erase", table, AffectedBy(len(plans)))
                plans += [_erase(table, ids), audit_entry(actor, change, self._clock())]
        await self._store.run(*plans)
        return found

    async def _find_in(
        self, table: Table, subject: DataSubject, leads: Collection[str]
    ) -> Sequence[Row]:
        found: list[Row] = []
        last = ""
        while True:
            where = (Condition("id", "gt", last),)
            plan = Read(table, where=where, order=(Order("id"),), limit=ROWS_AT_ONCE)
            (outcome,) = await self._store.run(plan)
            found += (row for row in outcome.rows if _is_about(row, table, subject, leads))
            if len(outcome.rows) < ROWS_AT_ONCE:
                return found
            last = outcome.rows[-1]["id"]


def _is_about(row: Row, table: Table, subject: DataSubject, leads: Collection[str]) -> bool:
    return any(
        subject.is_in(text) or any(lead in text for lead in leads)
        for text in _texts(row[name] for name in NAMED_BY[table])
    )


def _texts(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        if value is not None:
            yield spell_value(value)


def _erase(table: Table, ids: tuple[str, ...]) -> Plan:
    where = (Condition("id", "in", ids),)
    if table is SUPPRESSED_EMAILS:
        return Update(table, {"metadata": None}, where)
    return Delete(table, where)
