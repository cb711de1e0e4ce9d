"""What of a store has to stand after an older state of it was restored.

A key that was revoked since stays revoked, who wants no mail gets none, and what was told is not
told again, nor anything to an address that was removed. Everything else is as it was then. It
knows both stores as plans, and no files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edge_api.domain.actor import OPERATOR, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.paging import any_of, missing, pages
from edge_api.schema.oauth_tables import (
    ACCESS_REQUESTS,
    AUTHORIZATION_CODES,
    OAUTH_CLIENTS,
    OAUTH_GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
)
from edge_api.schema.outbox_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row, Table
from edge_api.schema.tables import (
    CREDENTIALS,
    EMAIL_SEND_LOG,
    EMAIL_UNSUBSCRIBE_TOKENS,
    LEADS,
    SUPPRESSED_EMAILS,
)
from edge_api.store.plan import Condition, Delete, Insert, Read, Store, Update


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends once and for all in the rows of a table."""

    table: Table
    columns: tuple[str, ...]
    """What says so, and is carried over."""
    over: Condition
    """Holds of the rows for which it has ended."""
    open: Callable[[Row], Condition]
    """Takes a row that has ended, and returns what holds of it as long as it has not."""


def _marked(table: Table, when: str, *others: str) -> Ending:
    """Return the ending whose instant stands in a column."""
    is_open = Condition(when, "is", None)
    is_over = Condition(when, "is", None, negated=True)
    return Ending(table, (when, *others), is_over, lambda _: is_open)


ENDINGS: Final = (
    _marked(CREDENTIALS, "revoked_at"),
    _marked(CREDENTIALS, "rotated_at", "expires_at"),
    _marked(OAUTH_CLIENTS, "revoked_at"),
    Ending(
        OAUTH_CLIENTS,
        ("secret_digest", "secret_last_four"),
        Condition("secret_digest", "is", None, negated=True),
        lambda row: Condition("secret_digest", "neq", row["secret_digest"]),
    ),
    _marked(OAUTH_GRANTS, "revoked_at"),
    _marked(AUTHORIZATION_CODES, "used_at"),
    _marked(REFRESH_TOKENS, "used_at"),
    Ending(
        ACCESS_REQUESTS,
        ("status", "decided_at"),
        Condition("status", "eq", "denied"),
        lambda _: Condition("status", "in", ("pending", "approved")),
    ),
    _marked(EMAIL_UNSUBSCRIBE_TOKENS, "used_at"),
    _marked(WEBHOOK_ENDPOINTS, "disabled_at", "disabled_for"),
)
REMEMBERED: Final = (
    SUPPRESSED_EMAILS,
    EMAIL_UNSUBSCRIBE_TOKENS,
    EMAIL_SEND_LOG,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
)
"""The tables whose rows say what must not happen, or what has happened outside."""
WAITING: Final = (EMAIL_OUTBOX, WEBHOOK_DELIVERIES)
"""The tables whose rows go when they have been told."""


@dataclass(frozen=True, slots=True)
class Restoration:
    """What the former state had to say to the restored one, in numbers of rows."""

    ended: int
    """Keys, secrets, grants, tokens and others that had been revoked, replaced or used since."""
    remembered: int
    """Suppressions, links to unsubscribe and lines of the mail log that were new since."""
    told: int
    """Mails and events that waited then, and had been told or given up since."""
    leads_lost: int
    """Leads that came since, and are only in the former state."""
    leads_back: int
    """Leads that had been deleted since, and are there again."""


async def carry_over(former: Store, restored: Store, clock: Clock) -> Restoration:
    """Bring into the restored state what must not be undone, and compare the two.

    It can be repeated. Raises Problem.
    """
    bearer = _Bearer(former, restored, clock)
    return Restoration(
        ended=sum([await bearer.end(ending) for ending in ENDINGS])
        + await bearer.forget(WEBHOOK_ENDPOINTS),
        remembered=sum([await bearer.remember(table) for table in REMEMBERED]),
        told=sum([await bearer.forget(table) for table in WAITING]),
        leads_lost=await _count_missing(former, restored, LEADS),
        leads_back=await _count_missing(restored, former, LEADS),
    )


class _Bearer:
    """Carries rows from the former state to the restored one."""

    def __init__(self, former: Store, restored: Store, clock: Clock) -> None:
        self._former = former
        self._restored = restored
        self._clock = clock

    async def end(self, ending: Ending) -> int:
        """End what had ended, as it had."""
        number = 0
        async for rows in pages(self._former, Read(ending.table, where=(ending.over,))):
            plans = [
                Update(
                    ending.table,
                    {column: row[column] for column in ending.columns},
                    (_same(ending.table, row), ending.open(row)),
                )
                for row in rows
            ]
            number += sum(len(outcome.rows) for outcome in await self._restored.run(*plans))
        return await self._note(ending.table, number, *ending.columns)

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


def _same(table: Table, row: Row) -> Condition:
    return Condition(table.key, "eq", row[table.key])
