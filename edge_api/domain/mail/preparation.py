"""From an entry to the message, at the moment at which it goes, thanks for a lead among them.

So nothing is sent of what was erased, nor to whom has asked for no more mail. A store that cannot
be read ends it: nothing is sent unseen.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from edge_api.domain.actor import Clock
from edge_api.domain.lead_input import HELD_FROM
from edge_api.domain.mail.compose import ACKNOWLEDGEMENT, DECISION, LETTERS, Envelope, compose
from edge_api.domain.mail.entry import Entry
from edge_api.domain.mail.unsubscribe import UnsubscribeLinks, fold_recipient, is_suppressed
from edge_api.schema.kinds import spell_instant
from edge_api.schema.oauth_tables import ACCESS_REQUESTS
from edge_api.schema.paths import CLAIM_CREDENTIAL
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.schema.tables import EMAIL_SEND_LOG, IDEMPOTENCY_KEYS, LEADS
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


@dataclass(frozen=True, slots=True)
class Withheld:
    """There is no message: why, in a sentence for the log."""

    reason: str
    is_lasting: bool = True
    """Whether nobody can mend it."""


@dataclass(frozen=True, slots=True)
class Letterhead:
    """What is the same on every letter."""

    sender: str
    """A mailbox."""
    site_url: str
    site_title: Callable[[], str]
    """As the build that is served now has it."""


class Preparation:
    """Prepares the messages of one installation."""

    def __init__(
        self,
        store: Store,
        head: Letterhead,
        acknowledgements: Acknowledgements,
        links: UnsubscribeLinks,
    ) -> None:
        self._store = store
        self._head = head
        self._acknowledgements = acknowledgements
        self._links = links

    async def prepare(self, entry: Entry) -> EmailMessage | Withheld:
        """Return the message that an entry stands for.

        Raises Problem, and what composing raises.
        """
        if await is_suppressed(self._store, entry.recipient):
            return Withheld("the address is suppressed", is_lasting=not entry.persists)
        subject = await self._read_subject(entry)
        if subject is None:
            return Withheld(f"the {'request' if entry.letter == DECISION else 'lead'} is gone")
        if entry.letter == ACKNOWLEDGEMENT:
            reason = await self._acknowledgements.hindrance(entry, subject)
            if reason is not None:
                return Withheld(reason)
        template = LETTERS[entry.template].template
        return compose(template, await self._envelope(entry), self._values(entry, subject))

    async def _read_subject(self, entry: Entry) -> Row | None:
        table = ACCESS_REQUESTS if entry.letter == DECISION else LEADS
        where = (Condition("id", "eq", entry.subject_id),)
        (outcome,) = await self._store.run(Read(table, where=where))
        return outcome.rows[0] if outcome.rows else None

    async def _envelope(self, entry: Entry) -> Envelope:
        unasked = entry.letter == ACKNOWLEDGEMENT
        return Envelope(
            message_id=entry.id,
            sender=self._head.sender,
            recipient=entry.recipient,
            date=entry.created_at,
            host=urlsplit(self._head.site_url).hostname or "localhost",
            unsubscribe_url=await self._links.link(entry.recipient) if unasked else None,
        )

    def _values(self, entry: Entry, subject: Row) -> dict[str, Any]:
        site = {"site_title": self._head.site_title(), "site_url": self._head.site_url}
        if entry.letter == ACKNOWLEDGEMENT:
            return site
        if entry.letter == DECISION:
            return {**site, **self._decision(subject)}
        return {**site, "lead": subject}

    def _decision(self, request: Row) -> dict[str, Any]:
        return {
            "approved": request["status"] != "denied",
            "claim_uri": f"{self._head.site_url}{CLAIM_CREDENTIAL}",
            "expires_at": request["expires_at"],
        }
