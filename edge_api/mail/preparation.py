"""Preparation: from an entry to its message, when it is sent; acknowledgements among them.

So nothing erased is sent, and nothing to suppressed addresses. If the store cannot be read, nothing
is sent.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from edge_api.auth.actor import Clock
from edge_api.auth.desk_links import DeskLinks
from edge_api.db.internal_tables import ACCESS_REQUESTS, DESK_LINKS
from edge_api.db.query import Delete, Filter, Insert, Order, Read, Store
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, IDEMPOTENCY_KEYS, LEADS
from edge_api.db.types import format_instant
from edge_api.leads.input import SPAM_THRESHOLD
from edge_api.mail.messages import (
    ACKNOWLEDGEMENT,
    DEFAULT_TEMPLATES,
    LINK,
    NOTIFICATION,
    REQUEST,
    SUMMARY,
    Envelope,
    MailTemplates,
    compose,
)
from edge_api.mail.queue import message_type_of, retry_for
from edge_api.mail.suppressions import UnsubscribeLinks, is_suppressed, normalize_recipient
from edge_api.outbox import run_unless_conflict, where_id
from edge_api.schema.paths import CLAIM_CREDENTIAL, DESK

ACKNOWLEDGEMENT_INTERVAL: Final = timedelta(hours=24)
_HOUR: Final = timedelta(hours=1)
_NOUNS: Final = {LEADS: "lead", ACCESS_REQUESTS: "request", DESK_LINKS: "link"}
_SENT: Final = 250  # the relay's answer (RFC 5321, section 4.2.3)


class Acknowledgements:
    """The rules of acknowledgements; `secret` keys the hash of an address."""

    def __init__(self, store: Store, clock: Clock, secret: bytes, per_hour: int) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._per_hour = per_hour

    async def suppression_reason(self, entry: Row, lead: Row) -> str | None:
        """Return the reason not to acknowledge a lead; `None` reserves its turn. Raises Problem."""
        if lead["status"] == "spam" or lead["spam_score"] >= SPAM_THRESHOLD:
            return "the lead looks like spam"
        where = (
            Filter("template_name", "eq", "lead_acknowledgement"),
            Filter("status", "eq", "sent"),
            Filter("created_at", "gt", format_instant(self._clock() - _HOUR)),
        )
        count = Read(EMAIL_SEND_LOG, ("id",), where, limit=1, with_total=True)
        (result,) = await self._store.run(count)
        if (result.total or 0) >= self._per_hour:
            return f"{self._per_hour} acknowledgements were sent within an hour"
        if not await self._reserve(entry):
            return "this address had an acknowledgement within 24 hours"
        return None

    async def _reserve(self, entry: Row) -> bool:
        """Store, by a unique key, the address's one acknowledgement of the day."""
        now = self._clock()
        about = f"acknowledgement\n{normalize_recipient(entry['recipient_email'])}"
        row: Row = {
            "id": hmac.digest(self._secret, about.encode(), "sha256").hex(),
            "request_digest": sha256(entry["id"].encode()).hexdigest(),
            "status": _SENT,
            "response": "",
            "created_at": format_instant(now),
            "expires_at": format_instant(now + ACKNOWLEDGEMENT_INTERVAL),
        }
        where_ours = Filter("id", "eq", row["id"])
        expired = (where_ours, Filter("expires_at", "lte", format_instant(now)))
        queries = Delete(IDEMPOTENCY_KEYS, expired), Insert(IDEMPOTENCY_KEYS, [row])
        if await run_unless_conflict(self._store, *queries):
            return True
        (result,) = await self._store.run(Read(IDEMPOTENCY_KEYS, where=(where_ours,)))
        return any(stored["request_digest"] == row["request_digest"] for stored in result.rows)


@dataclass(frozen=True, slots=True)
class NotSent:
    """A message that is not sent, with the reason for the log."""

    reason: str
    is_permanent: bool = True  # whether nobody can fix it


@dataclass(frozen=True, slots=True)
class MessageComposer:
    """Prepares the messages of one installation."""

    store: Store
    sender: str  # a mailbox
    site_url: str
    site_title: Callable[[], str]  # of the current build
    has_desk: bool
    acknowledgements: Acknowledgements
    links: UnsubscribeLinks
    desk_links: DeskLinks
    templates: MailTemplates = DEFAULT_TEMPLATES

    async def prepare(self, entry: Row) -> EmailMessage | NotSent:
        """Return the message of an entry. Raises Problem, and what `compose` raises."""
        if await is_suppressed(self.store, entry["recipient_email"]):
            return NotSent("the address is suppressed", is_permanent=not retry_for(entry))
        message_type = message_type_of(entry)
        if message_type == SUMMARY:
            return await self._summarize(entry)
        table = (message_type and message_type.about) or LEADS
        (result,) = await self.store.run(Read(table, where=where_id(entry["subject_id"])))
        if not result.rows:
            return NotSent(f"the {_NOUNS[table]} is gone")
        subject = result.rows[0]
        if message_type == ACKNOWLEDGEMENT and (
            reason := await self.acknowledgements.suppression_reason(entry, subject)
        ):
            return NotSent(reason)
        if message_type == LINK and not self.desk_links.can_use(subject):
            return NotSent("the link was used, or has expired")
        values = self._values(entry, subject)
        envelope = await self._envelope(entry)
        return compose(entry["template_name"], envelope, values, self.templates)

    async def _summarize(self, entry: Row) -> EmailMessage | NotSent:
        """Return one message for all owner notices that were held since the last such message."""
        ours = Filter("template_name", "eq", SUMMARY.template)
        order = (Order("created_at", descending=True),)
        sent = (ours, Filter("status", "eq", "sent"))
        (last,) = await self.store.run(Read(EMAIL_SEND_LOG, ("created_at",), sent, order, 1))
        since = last.rows[0]["created_at"] if last.rows else ""
        if since >= entry["created_at"]:
            return NotSent("the owner was notified in one message with others")
        held = ours, Filter("status", "eq", "pending"), Filter("created_at", "gt", since)
        count = Read(EMAIL_SEND_LOG, ("id",), held, limit=1, with_total=True)
        (found,) = await self.store.run(count)
        values = {**self._site(), "number": found.total or 1, "desk_url": self._desk("leads/")}
        return compose(SUMMARY.template, await self._envelope(entry), values, self.templates)

    async def _envelope(self, entry: Row) -> Envelope:
        is_reply = message_type_of(entry) == ACKNOWLEDGEMENT
        return Envelope(
            message_id=entry["id"],
            sender=self.sender,
            recipient=entry["recipient_email"],
            date=datetime.fromisoformat(entry["created_at"]),
            host=urlsplit(self.site_url).hostname or "localhost",
            unsubscribe_url=await self.links.link(entry["recipient_email"]) if is_reply else None,
        )

    def _values(self, entry: Row, subject: Row) -> dict[str, Any]:
        site = self._site()
        match entry["template_name"]:
            case ACKNOWLEDGEMENT.template:
                return site
            case NOTIFICATION.template:
                return {**site, "lead": subject, "desk_url": self._desk(f"leads/{subject['id']}/")}
            case REQUEST.template:
                return {**site, "request": subject, "desk_url": self._desk("access/")}
            case LINK.template:
                return {**site, "link_url": self.desk_links.address(subject["id"])}
        return {
            **site,
            "approved": subject["status"] != "denied",
            "claim_uri": f"{self.site_url}{CLAIM_CREDENTIAL}",
            "expires_at": subject["expires_at"],
        }

    def _site(self) -> dict[str, Any]:
        return {"site_title": self.site_title(), "site_url": self.site_url}

    def _desk(self, path: str) -> str:
        """Return the address of a screen; empty where there is no desk."""
        return f"{self.site_url}{DESK}{path}" if self.has_desk else ""
