"""Subscribers of the newsletter: they ask, confirm by mail (double opt-in), leave and come back."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from secrets import token_hex
from typing import Final

from edge_api.auth.actor import Actor, Clock, audited, new_id
from edge_api.auth.erasure import address_key, erased_key
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    Update,
    count_rows,
    read_all,
    read_first,
    require_row,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import IDEMPOTENCY_KEYS, SUPPRESSED_EMAILS
from edge_api.db.types import format_instant
from edge_api.mail.messages import CONFIRMATION
from edge_api.mail.queue import Outbox, log_insert, new_entry, undeliverable_reason
from edge_api.mail.suppressions import (
    IS_OPEN,
    normalize_recipient,
    read_suppression,
    suppress,
    suppression,
    where_address,
)
from edge_api.outbox import WAITING

NEWSLETTER_OFF: Final = "The newsletter is off here; NEWSLETTER=on switches it on"
MAX_CONFIRMATIONS_PER_HOUR: Final = 60  # of all addresses; more wait, since strangers cause them
MAX_UNANSWERED: Final = 3  # confirmations for one address
RESERVED_FOR: Final = timedelta(days=90)
"""The time for which an address that answers no confirmation gets no other."""
PENDING_FOR: Final = timedelta(days=7)
STATUSES: Final = ("active", "pending", "ended", "bounced")
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class Subscribers:
    """The subscribers in one store; `secret` keys the digests of their addresses."""

    def __init__(self, store: Store, clock: Clock, secret: bytes, outbox: Outbox) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._outbox = outbox

    async def ask(self, wish: Row) -> None:
        """Mail a confirmation to the address of a wish, unless it must not have one.

        `wish` has `email`, `language`, `source` and `consent`. The caller learns nothing about the
        address: each outcome is one transaction that writes. Raises Problem `unavailable`.
        """
        await self._store.run(Procedure(partial(self._ask, wish, self._clock())))
        self._outbox.wake()

    def _ask(self, wish: Row, now: datetime, results: list[QueryResult]) -> Iterator[Query]:
        email, hour_ago = normalize_recipient(wish["email"]), format_instant(now - _HOUR)
        key = address_key(self._secret, email)
        valid = Filter("expires_at", "gt", format_instant(now))
        yield Read(SUBSCRIBERS, where=(Filter("email", "eq", email),))
        yield read_suppression(email)
        yield Read(IDEMPOTENCY_KEYS, where=(*where_id(key), valid))
        newest = (Order("asked_at", descending=True),)
        recent, last = (Filter("asked_at", "gt", hour_ago),), MAX_CONFIRMATIONS_PER_HOUR - 1
        yield Read(SUBSCRIBERS, ("asked_at",), recent, newest, limit=1, offset=last)
        row, suppressed, earlier, full = (next(iter(each.rows), None) for each in results)
        if suppressed:
            reason: str | None = "the address is suppressed"
        elif row and row["status"] == "active":
            reason = "the address is subscribed already"
        elif earlier and earlier["created_at"] > format_instant(now - _DAY):
            reason = "the address had a confirmation within 24 hours"
        elif earlier and earlier["status"] >= MAX_UNANSWERED:
            reason = f"{MAX_UNANSWERED} confirmations had no answer in {RESERVED_FOR.days} days"
        else:
            reason = undeliverable_reason(email, is_demo=self._outbox.is_demo)
        if reason is not None:
            entry = {"id": new_id(now), "template_name": CONFIRMATION.template}
            yield log_insert({**entry, "recipient_email": email}, "suppressed", now, reason)
            return
        due = max(now, datetime.fromisoformat(full["asked_at"]) + _HOUR) if full else now
        due_at = format_instant(due)
        values = {name: wish[name] for name in ("language", "source", "consent")}
        values["asked_at"] = due_at
        if row:
            yield Update(SUBSCRIBERS, values, where_id(row["id"]))
        else:
            given = {**values, "email": email, "token": token_hex(32)}
            row = SUBSCRIBERS.new_row(given, format_instant(now), partial(new_id, now))
            yield Insert(SUBSCRIBERS, [row])
        digest: Row = {
            "id": key,
            "request_digest": key,
            "status": earlier["status"] + 1 if earlier else 1,  # confirmations without an answer
            "response": erased_key(key),  # by which an erasure finds it
            "created_at": due_at,
            "expires_at": format_instant(due + RESERVED_FOR),
        }
        yield Delete(IDEMPOTENCY_KEYS, where_id(key))
        yield Insert(IDEMPOTENCY_KEYS, [digest])
        entry = new_entry(CONFIRMATION, email, row["id"], now)
        entry |= {"due_at": due_at, "queued_at": due_at}
        yield Insert(EMAIL_OUTBOX, [entry])
        yield log_insert(entry, "pending", now)

    async def find(self, token: str) -> Row | None:
        """Return the subscriber whose links have this token. Raises Problem `unavailable`."""
        if re.fullmatch("[0-9a-f]{64}", token) is None:
            return None
        return await read_first(
            self._store, Read(SUBSCRIBERS, where=(Filter("token", "eq", token),))
        )

    async def confirm(self, subscriber: Row) -> None:
        """Make a subscriber active who pressed the button of a confirmation. Raises Problem."""
        now = format_instant(self._clock())
        values = {"status": "active", "confirmed_at": now, "ended_at": None, "ended_by": None}
        is_new = Filter("status", "eq", "active", negated=True)
        key = address_key(self._secret, subscriber["email"])
        await self._store.run(
            Update(SUBSCRIBERS, values, (*where_id(subscriber["id"]), is_new)),
            Update(IDEMPOTENCY_KEYS, {"status": 0}, where_id(key)),  # it was answered
        )

    async def leave(self, subscriber: Row) -> None:
        """End a subscription, and nothing else. Raises Problem `unavailable`."""
        await self._store.run(self._end(subscriber))

    async def resume(self, subscriber: Row) -> None:
        """Take back the end of a subscription that was confirmed once. Raises Problem."""
        values = {"status": "active", "ended_at": None, "ended_by": None}
        was_active = Filter("confirmed_at", "is", None, negated=True)
        where = *where_id(subscriber["id"]), Filter("status", "eq", "ended"), was_active
        await self._store.run(Update(SUBSCRIBERS, values, where))

    async def refuse_mail(self, subscriber: Row) -> None:
        """End a subscription, and suppress its address for all mail. Raises Problem."""
        email = subscriber["email"]
        insert = suppression(email, "unsubscribe", self._clock())
        await suppress(self._store, email, insert, self._end(subscriber))

    async def allow_mail(self, subscriber: Row) -> None:
        """Take back the wish for no mail at all; other suppressions stay. Raises Problem."""
        wish = Filter("reason", "eq", "unsubscribe")
        where = where_address(subscriber["email"]), wish
        await self._store.run(Delete(SUPPRESSED_EMAILS, where))

    async def end(self, subscriber_id: str, actor: Actor) -> None:
        """End a subscription in the owner's name, which can be undone. Raises Problem."""
        missing = "This subscription has ended, or is gone"
        row = await require_row(self._store, SUBSCRIBERS, subscriber_id, missing, IS_OPEN)
        await self._store.run(*audited(actor, "end", self._end(row, "owner"), self._clock(), ()))

    async def count(self) -> Mapping[str, int]:
        """Return the number of subscribers by their status. Raises Problem `unavailable`."""
        return {
            each: await count_rows(self._store, SUBSCRIBERS, Filter("status", "eq", each))
            for each in STATUSES
        }

    async def count_delayed(self) -> int:
        """Return how many confirmations wait for their turn within an hour. Raises Problem."""
        later = Filter("due_at", "gt", format_instant(self._clock())), Filter("attempts", "eq", 0)
        ours = Filter("template_name", "eq", CONFIRMATION.template), WAITING
        return await count_rows(self._store, EMAIL_OUTBOX, *ours, *later)

    def _end(self, subscriber: Row, by: str = "link") -> Update:
        values = {"status": "ended", "ended_at": format_instant(self._clock()), "ended_by": by}
        # Whoever leaves whom the owner had ended keeps the owner from taking that back.
        is_endable = Filter("id", "any", (IS_OPEN, Filter("ended_by", "eq", "owner")))
        return Update(SUBSCRIBERS, values, (*where_id(subscriber["id"]), is_endable))

    async def forget_pending(self) -> None:
        """Delete those who did not confirm within `PENDING_FOR`. Raises Problem."""
        before = format_instant(self._clock() - PENDING_FOR)
        old = Filter("status", "eq", "pending"), Filter("asked_at", "lt", before)
        if await read_all(self._store, Read(SUBSCRIBERS, ("id",), old, limit=1)):
            await self._store.run(Delete(SUBSCRIBERS, old))
