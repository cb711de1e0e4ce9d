"""Leads: enquiries that people and programs send, checked, judged, stored durably and found."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from types import MappingProxyType
from typing import Annotated, Final, Literal, Protocol

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from edge_api.auth.actor import Actor, Clock, new_id
from edge_api.auth.rate_limits import Limiter, Quota
from edge_api.db.email_address import normalize_address
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Order, Query, Read, Store, ValueIfExists, Where, fold
from edge_api.db.table import Row
from edge_api.db.tables import LEADS, MAX_EMAIL_LENGTH
from edge_api.db.types import format_instant
from edge_api.db.versioned_cache import SingleFlightCache
from edge_api.leads.idempotency import Idempotency, StoreResponse, identify_request
from edge_api.operation.input import HONEYPOT, TextRule, check_email, check_form, normalize_newlines

_NAME = TextRule(100)
_BUDGET_TIER = TextRule(50)
_MESSAGE = TextRule(2000, multiline=True)


class LeadInput(BaseModel, strict=True, frozen=True):
    """An enquiry, as somebody sends it."""

    name: Annotated[
        str,
        AfterValidator(_NAME.clean),
        WithJsonSchema(_NAME.json_schema("Who asks.")),
        Field(examples=["Ann Lee"]),
    ]
    email: Annotated[
        str,
        AfterValidator(check_email),
        WithJsonSchema(
            {
                "type": "string",
                "format": "email",
                "minLength": 3,
                "maxLength": MAX_EMAIL_LENGTH,
                "description": "Where an answer reaches them. White space around it is taken off.",
            }
        ),
        Field(examples=["ann.lee@example.org"]),
    ]
    budget_tier: Annotated[
        str,
        AfterValidator(_BUDGET_TIER.clean),
        WithJsonSchema(_BUDGET_TIER.json_schema("What they may spend, in any words.")),
        Field(examples=["5k-10k"]),
    ]
    message: Annotated[
        str,
        AfterValidator(_MESSAGE.clean),
        WithJsonSchema(_MESSAGE.json_schema("What they want; tabs and line feeds stay.")),
        Field(examples=["We would like to move our blog to a static site."]),
    ]
    consent: bool = Field(
        default=False, description="Whether they agreed to `consent_text`; the time is kept."
    )
    consent_text: (
        Annotated[
            str,
            AfterValidator(_MESSAGE.clean),
            WithJsonSchema(_MESSAGE.json_schema("")),
        ]
        | None
    ) = Field(default=None, description="What they agreed to, in the words they saw.")
    filled_honeypot: SkipJsonSchema[Annotated[bool, BeforeValidator(bool)]] = Field(
        default=False, alias=HONEYPOT
    )

    def canonical(self) -> bytes:
        """Return the canonical JSON, equal for equal inputs."""
        return orjson.dumps(self.model_dump(), option=orjson.OPT_SORT_KEYS)


_CHECKED: Final = MappingProxyType({"on": True, "true": True, "1": True})
"""The values of a ticked box from browsers and people; anything else is not ticked."""


def read_form(fields: Mapping[str, str]) -> LeadInput:
    """Return the input of a posted form. Raises FormErrors."""
    given = normalize_newlines(fields)
    if _STARTED.fullmatch(given.get("message", "").strip()):
        given["message"] = ""  # nothing but what `start_message` wrote
    given["consent"] = _CHECKED.get(fields.get("consent", ""), False)
    if not fields.get("consent_text", ""):
        given["consent_text"] = None
    return check_form(LeadInput, given)


_LINK: Final = re.compile(r"(?:https?://|\bwww\.)\S", re.IGNORECASE)
_MANY_LINKS: Final = 3
_MARKUP: Final = re.compile(
    r"</?(?:a|b|img|iframe|script|div|font)(?:\s+[\w-]+=[^<>]{0,200})?\s*/?>|\[/?url\b|\[link=",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK")
"""Scripts whose letters look alike, so that words are forged by mixing them."""
_MIN_LETTERS: Final = 20  # letters that a text needs before its capitals mean something


_STARTED: Final = re.compile(r"About (?:\u201c.*\u201d \(/\S*\)|/\S*):")
_MAX_TITLE: Final = 200  # characters, so that most of a message is left to its sender
_REPEAT_WEIGHT: Final = 3  # the weight of a repetition within a short time
SPAM_THRESHOLD: Final = 3
"""The score from which a lead is not acknowledged: one strong sign, or several weak ones."""


def score_spam(lead: LeadInput) -> tuple[int, list[str]]:
    """Return the score of the lead by itself, from 0 on, and the name of each sign of spam."""
    found = [(name, weight) for name, weight, is_seen in _SPAM_RULES if is_seen(lead)]
    return sum(weight for _, weight in found), [name for name, _ in found]


def start_message(title: str, path: str) -> str:
    """Return the first line of a message about a page; a title that looks like spam is left out."""
    start = f"About \u201c{title[:_MAX_TITLE]}\u201d ({path}):\n\n"
    lead = LeadInput.model_construct(name="", budget_tier="", message=start)
    return f"About {path}:\n\n" if score_spam(lead)[0] else start


def dedupe_digest(lead: LeadInput) -> str:
    """Return a digest of sender and message, without case, white space and compatibility forms."""
    message = " ".join(unicodedata.normalize("NFKC", lead.message).casefold().split())
    return sha256(f"{normalize_address(lead.email)}\n{message}".encode()).hexdigest()


def _mixes_scripts(lead: LeadInput) -> bool:
    text = f"{lead.name} {lead.message}"
    return not text.isascii() and any(len(_scripts(word[0])) > 1 for word in _WORD.finditer(text))


def _scripts(word: str) -> set[str]:
    starts = (unicodedata.name(letter, "").partition(" ")[0] for letter in word)
    return {script for script in starts if script in _SCRIPTS}


def _shouts(lead: LeadInput) -> bool:
    text = lead.message
    return text.isupper() and sum(map(str.isalpha, text)) >= _MIN_LETTERS


_SPAM_RULES: Final[tuple[tuple[str, int, Callable[[LeadInput], bool]], ...]] = (
    ("honeypot", 10, lambda lead: lead.filled_honeypot),
    ("link", 1, lambda lead: bool(_LINK.search(lead.message))),
    ("many_links", 3, lambda lead: len(_LINK.findall(lead.message)) >= _MANY_LINKS),
    ("link_in_name", 5, lambda lead: bool(_LINK.search(f"{lead.name} {lead.budget_tier}"))),
    ("markup", 3, lambda lead: bool(_MARKUP.search(f"{lead.name}\n{lead.message}"))),
    ("mixed_scripts", 4, _mixes_scripts),
    ("shouting", 1, _shouts),
)


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
        score, reasons = (0, []) if sender.actor else score_spam(lead)
        given = {
            "name": lead.name,
            "email": lead.email,
            "budget_tier": lead.budget_tier,
            "message": lead.message,
            "source": sender.source,
            "status": "spam" if lead.filled_honeypot and not sender.actor else "new",
            "spam_score": score,
            "spam_reasons": reasons or None,
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
    scored = {
        "spam_score": ValueIfExists(score + _REPEAT_WEIGHT, score),
        "spam_reasons": ValueIfExists([*(reasons or ()), "repeated"], reasons),
    }
    return Insert(LEADS, [{**row, **scored}], condition=same)


def _scope(lead: LeadInput, sender: Sender) -> str:
    """Return the owner of an Idempotency-Key: two people behind one address may use the same."""
    if sender.actor is not None:
        return sender.actor.label
    return f"address:{sender.address} {normalize_address(lead.email)}"


FIRST_SEARCHED: Final = 250
"""Rows that a search reads without the index, which is slow for words that many leads have."""
MAX_SEARCHED: Final = 2000  # rows that a search reads at the most, in the order asked for
MIN_INDEXED: Final = 3  # characters of the shortest word that the index of trigrams finds


@dataclass(frozen=True, slots=True)
class LeadQuery:
    """Which leads to find."""

    search: str = ""
    """Words, each of which stands in name, address or message, whatever the case."""
    statuses: tuple[str, ...] = ()
    """Any of these; none: all."""
    oldest_first: bool = False
    limit: int = 50
    offset: int = 0
    beyond: Where = ()
    """More filters, as for the leads after one of them."""


async def find_leads(store: Store, query: LeadQuery) -> tuple[list[Row], bool]:
    """Return leads by the time at which they came, and whether more follow.

    Of a search only the first `MAX_SEARCHED` are found; words under `MIN_INDEXED` characters are
    sought among as many leads alone. Raises Problem `unavailable`.
    """
    by_status = (Filter("status", "in", query.statuses),) if query.statuses else ()
    where: Where = (*query.beyond, *by_status)
    words = fold(query.search).split()
    start, end = query.offset, query.offset + query.limit
    if not words:
        rows = await _read(store, query, where, query.limit + 1, start)
        return rows[: query.limit], len(rows) > query.limit
    indexed = tuple(word for word in words if len(word) >= MIN_INDEXED)
    by_index = (*where, Filter("id", "search", indexed))
    first, rest = FIRST_SEARCHED, MAX_SEARCHED - FIRST_SEARCHED
    steps = [(where, 0, first), (where, first, 3 * first if indexed else rest)]
    if indexed:
        steps += [(by_index, 0, first), (by_index, first, rest)]
    found: list[Row] = []
    for part, offset, count in steps:
        rows = await _read(store, query, part, count, offset)
        found = [*(found if offset else ()), *(row for row in rows if _has_all(row, words))]
        if len(found) > end or len(rows) < count:
            break
    return found[start:end], len(found) > end


async def _read(
    store: Store, query: LeadQuery, where: Where, limit: int, offset: int = 0
) -> list[Row]:
    way = not query.oldest_first
    order = (Order("created_at", descending=way), Order("id", descending=way))
    read = Read(LEADS, where=where, order=order, limit=limit, offset=offset)
    (result,) = await store.run(read)
    return result.rows


def _has_all(row: Row, words: list[str]) -> bool:
    text = fold("\n".join(row[name] for name in LEADS.searched))
    return all(word in text for word in words)
