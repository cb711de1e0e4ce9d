"""Leads: enquiries that people and programs send, stored durably, judged and listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from typing import Final, Literal, Protocol

import orjson

from edge_api.auth.actor import Actor, Clock, new_id
from edge_api.auth.rate_limits import Limiter, Quota
from edge_api.db.email_address import normalize_address
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Order, Query, Read, Store, ValueIfExists
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.db.versioned_cache import SingleFlightCache
from edge_api.leads.idempotency import Idempotency, StoreResponse, identify_request
from edge_api.leads.input import LeadInput, SpamScore, dedupe_digest, score_spam

PUBLIC_MEMBERS: Final = ("id", "name", "email", "budget_tier", "message", "created_at")
REPEAT_WINDOW: Final = timedelta(hours=24)
"""The time within which the same message from the same address is a repeat."""

_LIMIT: Final = "leads"


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a lead, and the interface that was used."""

    actor: Actor | None
    """`None`: somebody without a credential."""
    address: str
    """As rate limits count it."""
    source: Literal["api", "form", "mcp"] = "api"


@dataclass(frozen=True, slots=True)
class Created:
    """A lead that was accepted."""

    row: Row
    """Its published members."""
    replayed: bool
    """Whether it had been accepted before, under the same key."""
    body: bytes
    """The answer in JSON, the same for each repetition."""
    quota: Quota | None
    """The sender's remaining quota; `None` where leads are not counted."""


class LeadListener(Protocol):
    """Reports a new lead to others, later and reliably, by entries in the store."""

    def outbox_entries(self, lead: Row) -> tuple[Query, ...]:
        """Return the queries for the transaction that stores the lead."""

    def wake(self) -> None:
        """Note that such rows are durable; cheap, and never raises."""


class Leads:
    """The leads in one store; `secret` is the key of what is only kept as a hash."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limiter: Limiter,
        secret: bytes,
        listeners: Sequence[LeadListener] = (),
    ) -> None:
        self._store = store
        self._clock = clock
        self._limiter = limiter
        self._secret = secret
        self._listeners = listeners
        self._idempotency = Idempotency(store, clock)
        self._lists = SingleFlightCache[bytes](len)

    async def create(
        self, lead: LeadInput, sender: Sender, idempotency_key: str | None = None
    ) -> Created:
        """Store a lead, or answer as before under its key. Raises as `Idempotency.once`."""
        work = partial(self._save, lead, sender)
        if idempotency_key is None:
            answer, replayed = await work(lambda _answer: ()), False
        else:
            scope, request = _scope(lead, sender), lead.canonical()
            claim = identify_request(self._secret, scope, idempotency_key, request)
            answer, replayed = await self._idempotency.once(claim, work)
        quota = None if sender.actor else await self._limiter.peek(_LIMIT, sender.address)
        return Created(orjson.loads(answer)["lead"], replayed, answer.encode(), quota)

    async def recent(self, limit: int) -> bytes:
        """Return the list of the newest leads that are not spam, newest first, in JSON."""
        key = self._store.version(), limit
        return await self._lists.get(key, partial(self._read_recent, limit))

    async def _read_recent(self, limit: int) -> bytes:
        query = Read(
            LEADS,
            columns=PUBLIC_MEMBERS,
            where=(Filter("status", "neq", "spam"),),
            order=(Order("created_at", descending=True), Order("id", descending=True)),
            limit=limit,
        )
        (result,) = await self._store.run(query)
        return orjson.dumps({"leads": result.rows, "count": len(result.rows)})

    async def _save(self, lead: LeadInput, sender: Sender, store_response: StoreResponse) -> str:
        if sender.actor is None:
            await self._limiter.hit(_LIMIT, sender.address)
        try:
            row = self._row(lead, sender)
            published = {name: row[name] for name in PUBLIC_MEMBERS}
            brief = {name: value for name, value in published.items() if name != "message"}
            answer = orjson.dumps({"lead": published, **brief}).decode()
            first = *store_response(answer), _insert_query(row, sender)
            entries = [listener.outbox_entries(row) for listener in self._listeners]
            results = await self._store.run(*first, *chain.from_iterable(entries))
        except Problem:
            if sender.actor is None:
                await self._limiter.refund(_LIMIT, sender.address)
            raise
        written = iter(results[len(first) :])
        for listener, queries in zip(self._listeners, entries, strict=True):
            if [entry for result in islice(written, len(queries)) for entry in result.rows]:
                listener.wake()
        return answer

    def _row(self, lead: LeadInput, sender: Sender) -> Row:
        now = self._clock()
        now_text = format_instant(now)
        spam = SpamScore() if sender.actor else score_spam(lead)
        given = {
            "name": lead.name,
            "email": lead.email,
            "budget_tier": lead.budget_tier,
            "message": lead.message,
            "source": sender.source,
            "status": "spam" if lead.filled_honeypot and not sender.actor else "new",
            "spam_score": spam.score,
            "spam_reasons": list(spam.reasons) or None,
            "consent_at": now_text if lead.consent else None,
            "consent_text": lead.consent_text if lead.consent else None,
            "dedupe_hash": dedupe_digest(lead),
        }
        return LEADS.trusted_row(given, now_text, partial(new_id, now))


def _insert_query(row: Row, sender: Sender) -> Insert:
    """Return the query that stores a new lead.

    Whether it repeats another is seen in the statement that stores it, so that of two at once one
    is the repeat.
    """
    if sender.actor is not None:
        return Insert(LEADS, [row])
    since = format_instant(datetime.fromisoformat(row["created_at"]) - REPEAT_WINDOW)
    same = Filter("dedupe_hash", "eq", row["dedupe_hash"]), Filter("created_at", "gte", since)
    score, reasons = row["spam_score"], row["spam_reasons"]
    repeat = SpamScore(score, tuple(reasons or ())).repeated
    scored = {
        "spam_score": ValueIfExists(repeat.score, score),
        "spam_reasons": ValueIfExists(list(repeat.reasons), reasons),
    }
    return Insert(LEADS, [{**row, **scored}], condition=same)


def _scope(lead: LeadInput, sender: Sender) -> str:
    """Return the owner of an Idempotency-Key: two people behind one address may use the same."""
    if sender.actor is not None:
        return sender.actor.label
    return f"address:{sender.address} {normalize_address(lead.email)}"
