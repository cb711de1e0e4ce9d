"""Who sends which entry: a claim by lease, so that several dispatchers share one outbox.

A lease is a secret in the row and an instant until which nobody else takes it. Whoever dies with
one loses it by the passing of time.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.mail.compose import QUEUES
from edge_api.domain.mail.entry import Entry, read_entry
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.store.plan import Condition, Order, Read, Store, Update, Where

LEASE: Final = timedelta(seconds=120)
RENEWAL_SECONDS: Final = 30.0
LEASE_LEAST: Final = timedelta(seconds=90)
"""What has to be left of a lease when a message is begun."""
SUSPECT: Final = 3
"""Claims that came to nothing after which an entry is claimed alone: it may be what ends the
process, and those that were claimed with it are innocent."""
_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Batch:
    """What was claimed together."""

    entries: list[Entry]
    """In the order in which they should go."""
    is_all: bool
    """Whether nothing else was due when they were claimed."""


class Claims:
    """The claims of one dispatcher."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def take(self, most: int) -> Batch:
        """Claim up to so many entries that are due. Raises Problem."""
        now = self._clock()
        reads = (
            Read(EMAIL_OUTBOX, where=_due(queue, now), order=_ORDER, limit=most) for queue in QUEUES
        )
        outcomes = await self._store.run(*reads)
        due = [row for outcome in outcomes for row in outcome.rows]
        chosen = _choose(due, most)
        is_all = len(due) < most and len(chosen) == len(due)
        return Batch(await self._lease(chosen, now), is_all)

    async def hold(self, entry: Entry) -> Entry | None:
        """Return the entry with a lease that lasts for a message; `None` if it is another's now.

        Raises Problem.
        """
        now = self._clock()
        if entry.due_at - now > LEASE_LEAST:
            return entry
        renewed = replace(entry, due_at=now + LEASE)
        try:
            await self._store.run(change_held(entry, {"due_at": spell_instant(renewed.due_at)}))
        except Problem as problem:
            if problem.code != "conflict":
                raise
            return None
        return renewed

    @asynccontextmanager
    async def keep(self, entry: Entry) -> AsyncIterator[None]:
        """Renew a lease again and again while a message is under way: a relay may take minutes."""
        renewal = asyncio.create_task(self._renew(entry))
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.wait({renewal})

    async def _renew(self, entry: Entry) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            with suppress(Problem):  # if it is another's by now, what is sent is sent
                until = spell_instant(self._clock() + LEASE)
                await self._store.run(change_held(entry, {"due_at": until}))

    async def give_back(self, entries: Sequence[Entry]) -> None:
        """Let others have the entries at once. Raises Problem."""
        if not entries:
            return
        where = (
            Condition("id", "in", tuple(entry.id for entry in entries)),
            Condition("lease", "in", tuple({entry.lease or "" for entry in entries})),
        )
        values = {"lease": None, "claims": 0, "due_at": spell_instant(self._clock())}
        await self._store.run(Update(EMAIL_OUTBOX, values, where))

    async def _lease(self, rows: Sequence[Row], now: datetime) -> list[Entry]:
        """Claim rows that were due a moment ago; return those that nobody else had by then."""
        lease = token_hex(_BYTES)
        updates = [
            _claim(rows, count, lease, now) for count in sorted({row["claims"] for row in rows})
        ]
        outcomes = await self._store.run(*updates)
        ours = {row["id"]: read_entry(row) for outcome in outcomes for row in outcome.rows}
        return [ours[row["id"]] for row in rows if row["id"] in ours]


def held(entry: Entry) -> Where:
    """Return the conditions under which an entry is still ours."""
    return Condition("id", "eq", entry.id), Condition("lease", "eq", entry.lease or "")


def change_held(entry: Entry, values: Row) -> Update:
    """Return the plan that changes an entry, or nothing of its transaction if it is not ours."""
    return Update(EMAIL_OUTBOX, values, held(entry), at_least=1)


def _choose(due: Sequence[Row], most: int) -> Sequence[Row]:
    """Return the rows to claim together."""
    calm = [row for row in due if row["claims"] < SUSPECT]
    return calm[:most] or due[:1]


def _claim(rows: Sequence[Row], count: int, lease: str, now: datetime) -> Update:
    """Return the plan that claims those of the rows that were claimed so often before."""
    ids = tuple(row["id"] for row in rows if row["claims"] == count)
    where = (
        Condition("id", "in", ids),
        Condition("claims", "eq", count),
        Condition("due_at", "lte", spell_instant(now)),
        Condition("dead_at", "is", None),
    )
    values = {"lease": lease, "claims": count + 1, "due_at": spell_instant(now + LEASE)}
    return Update(EMAIL_OUTBOX, values, where)


def _due(queue: str, now: datetime) -> Where:
    return (
        Condition("dead_at", "is", None),
        Condition("due_at", "lte", spell_instant(now)),
        Condition("queue", "eq", queue),
    )


_ORDER: Final = (Order("due_at"),)
