"""When whoever sent a lead is thanked for it, and when not.

Anybody can have us write to anybody by giving their address, so this is kept rare: once in a day
for an address, so many in an hour for all, and never where the lead looks like spam.
"""

import hmac
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.mail.entry import Entry
from edge_api.domain.mail.suppression import fold_recipient
from edge_api.domain.spam import HELD_FROM
from edge_api.schema.kinds import spell_instant
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.schema.tables import EMAIL_SEND_LOG, IDEMPOTENCY_KEYS
from edge_api.store.plan import Condition, Delete, Insert, Read, Store

ONCE_IN: Final = timedelta(hours=24)
_HOUR: Final = timedelta(hours=1)
_SENT: Final = 250
"""The relay's answer that the row stands for (RFC 5321, section 4.2.3)."""


class Acknowledgements:
    """The rules; `secret` is the key of the hash that stands for an address."""

    def __init__(self, store: Store, clock: Clock, secret: bytes, per_hour: int) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._per_hour = per_hour

    async def hindrance(self, entry: Entry, lead: Row) -> str | None:
        """Return why a lead is not acknowledged; `None` where it may be, which is then its turn.

        Raises Problem.
        """
        if lead["status"] == "spam" or lead["spam_score"] >= HELD_FROM:
            return "the lead looks like spam"
        if await self._count_sent() >= self._per_hour:
            return f"{self._per_hour} acknowledgements were sent within an hour"
        if not await self._reserve(entry):
            return "this address had an acknowledgement within 24 hours"
        return None

    async def _count_sent(self) -> int:
        where = (
            Condition("template_name", "eq", "lead_acknowledgement"),
            Condition("status", "eq", "sent"),
            Condition("created_at", "gt", spell_instant(self._clock() - _HOUR)),
        )
        (outcome,) = await self._store.run(
            Read(EMAIL_SEND_LOG, ("id",), where, limit=1, counted=True)
        )
        return outcome.total or 0

    async def _reserve(self, entry: Entry) -> bool:
        """Take the address's one acknowledgement of the day; the same entry may come again.

        The unique key of the row decides between dispatchers.
        """
        now = self._clock()
        row = self._reservation(entry, now)
        mine = Condition("id", "eq", row["id"])
        over = (mine, Condition("expires_at", "lte", spell_instant(now)))
        try:
            await self._store.run(Delete(IDEMPOTENCY_KEYS, over), Insert(IDEMPOTENCY_KEYS, [row]))
        except Problem as problem:
            if problem.code != "conflict":
                raise
            (outcome,) = await self._store.run(Read(IDEMPOTENCY_KEYS, where=(mine,)))
            return any(kept["request_digest"] == row["request_digest"] for kept in outcome.rows)
        return True

    def _reservation(self, entry: Entry, now: datetime) -> Row:
        """Return a row that does not tell whose address it is about."""
        about = f"acknowledgement\n{fold_recipient(entry.recipient)}"
        return {
            "id": hmac.digest(self._secret, about.encode(), "sha256").hex(),
            "request_digest": sha256(entry.id.encode()).hexdigest(),
            "status": _SENT,
            "response": "",
            "created_at": spell_instant(now),
            "expires_at": spell_instant(now + ONCE_IN),
        }
