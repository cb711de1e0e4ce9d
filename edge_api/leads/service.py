"""Leads: enquiries that people and programs send; stored once, with their spam score and search.

A request with an Idempotency-Key is run once, however often it is sent
(draft-ietf-httpapi-idempotency-key-header). Its answer is stored in the transaction of the work. Of
simultaneous requests one runs: within a process by a lock, and between processes by the unique key
of the stored answer.
"""

import asyncio
import hmac
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain, islice
from typing import Final, Literal, Protocol
from weakref import WeakValueDictionary

import orjson

from edge_api.auth.actor import Actor, Clock, audited, new_id
from edge_api.auth.rate_limits import Limiter, Quota
from edge_api.db.caches import SingleFlightCache
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Delete,
    Filter,
    Insert,
    Order,
    Query,
    Read,
    Store,
    Update,
    ValueIfExists,
    Where,
    find_row,
    fold_accents,
    read_all,
)
from edge_api.db.table import Row
from edge_api.db.tables import IDEMPOTENCY_KEYS, LEADS
from edge_api.db.types import format_instant
from edge_api.db.visitor_columns import SentLead
from edge_api.leads.input import (
    HIDDEN_FROM,
    REPEAT_WEIGHT,
    LeadInput,
    dedupe_digest,
    score_spam,
    split_message,
)
from edge_api.outbox import run_unless_conflict

_KEY: Final = re.compile(r"[!-~]{1,255}")  # visible ASCII characters


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key: the digest of the key with its owner, and that of the request."""

    id: str
    request_digest: str


StoreResponse = Callable[[str], tuple[Query, ...]]
"""Returns the queries that store an answer."""
Work = Callable[[StoreResponse], Awaitable[str]]
"""Runs the request together with the queries that store its answer, and returns the answer."""


def identify_request(secret: bytes, owner: str, key: str, request: bytes) -> IdempotentRequest:
    """Return the identity of a request; `owner` is the sender of the key. Raises Problem `invalid`.

    Its id is a keyed hash, so that the store does not reveal the sender (RFC 2104).
    """
    if _KEY.fullmatch(key) is None:
        raise Problem("invalid", "Idempotency-Key: must have 1 to 255 visible ASCII characters")
    request_id = hmac.digest(secret, f"{owner}\n{key}".encode(), "sha256").hex()
    return IdempotentRequest(request_id, sha256(request).hexdigest())


class Idempotency:
    """Runs each request once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        timeout: float = 5.0,
        retention: timedelta = timedelta(hours=24),
        status: int = 201,
    ) -> None:
        """`status` is that of the stored answers (RFC 9110, section 15.3.2).

        A repeated request waits for the first one for `timeout` seconds.
        """
        self._store = store
        self._clock = clock
        self._timeout = timeout
        self._retention = retention
        self._status = status
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run_once(self, identity: IdempotentRequest, work: Work) -> tuple[str, bool]:
        """Return the answer, and whether it is a stored one.

        Raises Problem `idempotency_mismatch` for a key of another request, `in_progress` when the
        first one takes too long, and whatever `work` raises.
        """
        lock = self._locks.setdefault(identity.id, asyncio.Lock())
        try:
            async with asyncio.timeout(self._timeout):
                await lock.acquire()
        except TimeoutError:
            raise Problem("in_progress", headers={"Retry-After": "1"}) from None
        try:  # if the first one fails, the next runs
            return await self._answer(identity, work)
        finally:
            lock.release()

    async def _answer(self, identity: IdempotentRequest, work: Work) -> tuple[str, bool]:
        stored = await self._find(identity)
        if stored is not None:
            return stored, True
        try:
            return await work(partial(self._store_queries, identity)), False
        except Problem as problem:
            stored = await self._find(identity) if problem.code == "conflict" else None
            if stored is None:
                raise
            return stored, True

    async def _find(self, identity: IdempotentRequest) -> str | None:
        """Return the stored answer. Raises Problem `idempotency_mismatch` for another request's."""
        valid = Filter("expires_at", "gt", format_instant(self._clock()))
        row = await find_row(self._store, IDEMPOTENCY_KEYS, identity.id, valid)
        if row and row["request_digest"] != identity.request_digest:
            raise Problem("idempotency_mismatch")
        return row["response"] if row else None

    def _store_queries(self, identity: IdempotentRequest, response: str) -> tuple[Query, ...]:
        now = self._clock()
        row = {
            "id": identity.id,
            "request_digest": identity.request_digest,
            "status": self._status,
            "response": response,
            "created_at": format_instant(now),
            "expires_at": format_instant(now + self._retention),
        }
        expired = (Filter("expires_at", "lte", format_instant(now)),)
        return Delete(IDEMPOTENCY_KEYS, expired), Insert(IDEMPOTENCY_KEYS, [row])


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
