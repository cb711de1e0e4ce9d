"""Leads: enquiries that people and programs send; their storage, spam score and search."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import chain, islice
from typing import Final, Literal, Protocol

import orjson

from edge_api.auth.actor import Actor, Clock, audited, new_id
from edge_api.auth.rate_limits import Limiter, Quota
from edge_api.db.caches import SingleFlightCache
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    Order,
    Query,
    Read,
    Store,
    Update,
    ValueIfExists,
    Where,
    fold_accents,
    read_all,
)
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.db.visitor_columns import SentLead
from edge_api.leads.idempotency import Idempotency, StoreResponse, identify_request
from edge_api.leads.input import (
    HIDDEN_FROM,
    REPEAT_WEIGHT,
    LeadInput,
    dedupe_digest,
    score_spam,
    split_message,
)
from edge_api.outbox import run_unless_conflict

PUBLIC_MEMBERS: Final = ("id", "name", "email", "budget_tier", "message", "created_at")

_RATE_LIMIT: Final = "leads"


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a lead, and the interface that was used."""

    actor: Actor | None
    """The holder of the credential; `None` if none was sent."""
    address: str
    """The client's address, as rate limits count it."""
    source: Literal["api", "form", "mcp"] = "api"
    origin: Mapping[str, str | None] = field(default_factory=dict)
    """The columns that say where a sender came to the contact page from, if that is known."""


@dataclass(frozen=True)
class CreatedLead:
    """A lead that was accepted."""

    replayed: bool
    """Whether an earlier request with the same key had created it."""
    body: bytes
    """The JSON of the answer, the same for each repetition."""
    quota: Quota | None
    """The sender's remaining quota; `None` where leads are not counted."""

    @cached_property
    def row(self) -> Row:
        """The published members of the lead."""
        return orjson.loads(self.body)["lead"]  # type: ignore[no-any-return]


class LeadListener(Protocol):
    """Notifies others of new leads reliably, by entries that are stored with the lead."""

    def outbox_entries(self, lead: Row) -> tuple[Query, ...]:
        """Return the queries for the transaction that stores the lead."""

    def wake(self) -> None:
        """Start sending, since entries are durable. This must be cheap and never raise."""


class Leads:
    """The leads in one store; `secret` keys the hashes of idempotency keys."""

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
    ) -> CreatedLead:
        """Store a lead, or repeat the answer to the same key. Raises as `Idempotency.run_once`."""
        quota: Quota | None = None

        async def save(store_response: StoreResponse) -> str:
            nonlocal quota
            if sender.actor is None:
                quota = await self._limiter.hit(_RATE_LIMIT, sender.address)
            return await self._save(lead, sender, store_response)

        if idempotency_key is None:
            answer, replayed = await save(lambda _answer: ()), False
        else:
            # Two people behind one address may use the same key.
            scope = (
                sender.actor.label
                if sender.actor
                else f"address:{sender.address} {normalize_address(lead.email)}"
            )
            answer, replayed = await self._idempotency.run_once(
                identify_request(self._secret, scope, idempotency_key, lead.canonical()), save
            )
        if replayed and sender.actor is None:
            quota = await self._limiter.peek(_RATE_LIMIT, sender.address)
        return CreatedLead(replayed, answer.encode(), quota)

    async def recent(self, limit: int) -> bytes:
        """Return the list of the newest leads that are not spam, newest first, in JSON."""
        return await self._lists.get(
            (self._store.version(), limit), partial(self._read_recent, limit)
        )

    async def _read_recent(self, limit: int) -> bytes:
        where = (Filter("status", "neq", "spam"),)
        rows = await read_all(self._store, Read(LEADS, PUBLIC_MEMBERS, where, NEWEST, limit))
        return orjson.dumps({"leads": rows, "count": len(rows)})

    async def _save(self, lead: LeadInput, sender: Sender, store_response: StoreResponse) -> str:
        """Store a lead and return the answer; if it is not stored, give back the sender's quota."""
        try:
            rows = self._rows(lead, sender)
            published = {name: rows[0][name] for name in PUBLIC_MEMBERS}
            brief = {name: value for name, value in published.items() if name != "message"}
            answer = orjson.dumps({"lead": published, **brief}).decode()
            first = *store_response(answer), *(_insert_query(row, sender) for row in rows)
            entries = [
                [query for row in rows for query in listener.outbox_entries(row)]
                for listener in self._listeners
            ]
            results = await self._store.run(*first, *chain.from_iterable(entries))
        except Problem:
            if sender.actor is None:
                await self._limiter.refund(_RATE_LIMIT, sender.address)
            raise
        written = iter(results[len(first) :])
        for listener, queries in zip(self._listeners, entries, strict=True):
            if [entry for result in islice(written, len(queries)) for entry in result.rows]:
                listener.wake()
        return answer

    async def mark(
        self, ids: Sequence[str], status: str, actor: Actor, remind_at: str | None = None
    ) -> None:
        """Set the status and the reminder of leads in one transaction.

        Listeners are notified of leads that were hidden as spam; if any lead was spam, the score of
        all is reset. Raises Problem `conflict` if a lead has changed at this moment.
        """
        is_given = Filter("remind_at", "is" if remind_at is None else "eq", remind_at)
        none = () if remind_at is None else (Filter("remind_at", "is", None),)
        differs = Filter("status", "neq", status), replace(is_given, negated=True), *none
        where = (Filter("id", "in", tuple(ids)), Filter("id", "any", differs))
        (found,) = await self._store.run(Read(LEADS, where=where))
        if not found.rows:  # a second press changes nothing
            return
        now, is_free = self._clock(), status != "spam"
        freed = [row for row in found.rows if is_free and row["status"] == "spam"]
        given = {"status": status, **({"spam_score": 0} if freed else {})}
        values = {**LEADS.new_values(given, format_instant(now)), "remind_at": remind_at}
        hidden = [{**row, **values} for row in freed if row["spam_score"] >= HIDDEN_FROM]
        change = Update(LEADS, values, where, at_least=len(found.rows))
        reports = (each.outbox_entries(row) for row in hidden for each in self._listeners)
        queries = *audited(actor, "update", change, now), *chain.from_iterable(reports)
        if not await run_unless_conflict(self._store, *queries):
            raise Problem("conflict", "A lead has changed this moment: look, and try again")
        for listener in self._listeners:
            listener.wake()

    def _rows(self, lead: LeadInput, sender: Sender) -> list[Row]:
        """Return the row of a lead, or the two of a long one, which refer to each other."""
        now = self._clock()
        now_text = format_instant(now)
        score, reasons = (0, []) if sender.actor else score_spam(lead)
        given = {
            **{name: getattr(lead, name) for name in SentLead.model_fields},
            "source": sender.source,
            **sender.origin,
            "status": "spam" if score >= HIDDEN_FROM else "new",
            "spam_score": score,
            "spam_reasons": reasons or None,
            "consent_at": now_text if lead.consent else None,
            "consent_text": lead.consent_text if lead.consent else None,
        }
        rows = []
        for number, text in enumerate(split_message(lead.message)):
            at = now + timedelta(microseconds=number)
            own = {"message": text, "dedupe_hash": dedupe_digest(lead.email, text)}
            rows.append(
                LEADS.trusted_row({**given, **own}, format_instant(at), partial(new_id, at))
            )
        if len(rows) > 1:
            rows[0]["other_part"], rows[1]["other_part"] = rows[1]["id"], rows[0]["id"]
        return rows


def _insert_query(row: Row, sender: Sender) -> Insert:
    """Return the query that stores a new lead.

    The statement itself checks whether the lead repeats one of the last 24 hours, so that one of
    two equal leads at the same time is marked as a repetition.
    """
    if sender.actor is not None:
        return Insert(LEADS, [row])
    since = format_instant(datetime.fromisoformat(row["created_at"]) - timedelta(hours=24))
    same = Filter("dedupe_hash", "eq", row["dedupe_hash"]), Filter("created_at", "gte", since)
    score, reasons = row["spam_score"], row["spam_reasons"]
    scored = {
        "spam_score": ValueIfExists(score + REPEAT_WEIGHT, score),
        "spam_reasons": ValueIfExists([*(reasons or ()), "repeated"], reasons),
    }
    return Insert(LEADS, [{**row, **scored}], condition=same)


FIRST_SEARCHED: Final = 250
"""Rows that a search first reads without the index, which is slow for frequent words."""
MAX_SEARCHED: Final = 2000  # the most rows that a search reads, in the requested order
PAGE_SIZE: Final = 500  # the rows that `all_leads` holds in memory at a time
MIN_INDEXED_LENGTH: Final = 3  # characters of a word that the index of trigrams finds


@dataclass(frozen=True, slots=True)
class LeadQuery:
    """A search for leads."""

    search: str = ""
    """Words that must all occur in name, address or message, whatever their case and accents."""
    where: Where = ()
    oldest_first: bool = False
    limit: int = 50


async def find_leads(store: Store, query: LeadQuery) -> list[Row]:
    """Return the leads that a query finds, ordered by their time.

    A search finds the first `MAX_SEARCHED` leads at most; if no word has `MIN_INDEXED_LENGTH`
    characters, it also reads no more than `MAX_SEARCHED` leads. Raises Problem `unavailable`.
    """
    where, words = query.where, fold_accents(query.search).split()
    if not words:
        return await _read(store, query, where, query.limit)
    indexed = tuple(word for word in words if len(word) >= MIN_INDEXED_LENGTH)
    by_index, newest = (
        (*where, Filter("id", name, indexed)) for name in ("search", "search_newest")
    )
    first, rest = FIRST_SEARCHED, MAX_SEARCHED - FIRST_SEARCHED
    steps = [(where, 0, first), (where, first, 2 * first if indexed else rest)]
    if indexed and not query.oldest_first:
        steps.append((newest, 0, 2 * first))
    if indexed:
        steps += [(by_index, 0, first), (by_index, first, rest)]
    found: list[Row] = []
    for part, offset, count in steps:
        rows = await _read(store, query, part, count, offset)
        matching = [row for row in rows if _has_all_words(row, words)]
        found = found + matching if offset else matching
        if len(found) >= query.limit or (len(rows) < count and part is not newest):
            break
    return found[: query.limit]


async def all_leads(store: Store, query: LeadQuery) -> AsyncGenerator[Sequence[Row], None]:
    """Yield all leads that a query finds in pages, without its limit and those of `find_leads`.

    Others can read and write between pages; a lead is as it was when its page was read. Raises
    Problem.
    """
    words, op = fold_accents(query.search).split(), "gt" if query.oldest_first else "lt"
    where = query.where
    while rows := await _read(store, query, where, PAGE_SIZE):
        yield [row for row in rows if _has_all_words(row, words)]
        at, key = rows[-1]["created_at"], rows[-1]["id"]
        beyond = (Filter("created_at", op, at), Filter("id", op, key))
        where = (*query.where, Filter("created_at", f"{op}e", at), Filter("id", "any", beyond))


async def _read(
    store: Store, query: LeadQuery, where: Where, limit: int, offset: int = 0
) -> list[Row]:
    order = (Order("created_at", descending=not query.oldest_first),)
    return await read_all(store, Read(LEADS, (), where, order, limit, offset))


def _has_all_words(row: Row, words: list[str]) -> bool:
    text = fold_accents("\n".join(row[name] for name in LEADS.searched))
    return all(word in text for word in words)
