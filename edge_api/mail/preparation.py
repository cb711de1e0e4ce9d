"""Preparation: compose the message of an outbox entry when it is sent, and sample messages.

It reads the store at that moment: nothing erased is sent, and nothing to suppressed addresses.
Samples are for `mail preview`, and to check an operator's templates.
"""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.message import EmailMessage
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from edge_api.auth.actor import Clock
from edge_api.auth.desk_links import DeskLinks
from edge_api.auth.keys import undo_until
from edge_api.db.internal_tables import ACCESS_REQUESTS, DESK_LINKS, EMAIL_OUTBOX
from edge_api.db.mail_addresses import parse_mailbox
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.query import (
    NEWEST,
    Delete,
    Filter,
    Insert,
    Query,
    Read,
    Store,
    Update,
    count_rows,
    find_row,
    read_all,
    read_first,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS, EMAIL_SEND_LOG, IDEMPOTENCY_KEYS, LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildRefusal, read_head
from edge_api.leads.input import HIDDEN_FROM, SUSPECT_FROM
from edge_api.mail.clean_text import one_line, safe_display_name
from edge_api.mail.messages import (
    ACKNOWLEDGEMENT,
    ANSWER,
    CONFIRMATION,
    HIDDEN_LEADS,
    KEY_NOTICE,
    LETTER_TYPES,
    MAILING_NOTICE,
    NOTIFICATION,
    OWNER_SUMMARY,
    REQUEST_NOTICE,
    SIGN_IN_LINK,
    WEEKLY_STATS,
    Envelope,
    MailTemplates,
    compose,
    is_message_id,
)
from edge_api.mail.queue import message_type_of, must_reach_owner
from edge_api.mail.suppressions import UnsubscribeLinks, is_suppressed, normalize_recipient
from edge_api.outbox import run_unless_conflict, where_leased
from edge_api.schema.index import CURRENT_LINK, INDEX_FILE
from edge_api.schema.paths import CLAIM_CREDENTIAL, CONFIRM_SUBSCRIPTION, DESK, UNSUBSCRIBE
from edge_api.schema.sentences import Language
from edge_api.schema.template_language import read_language
from edge_api.settings import Settings
from edge_api.stats.reading import KINDS, describe, last_days, local_time, read_stats

PLACEHOLDER_SENDER: Final = "nobody@localhost"  # never leaves this machine
_NOUNS: Final = {
    LEADS: "lead",
    ACCESS_REQUESTS: "request",
    DESK_LINKS: "link",
    CREDENTIALS: "key",
    SUBSCRIBERS: "subscription",
    MAILINGS: "mailing",
}


@dataclass(frozen=True, slots=True)
class NotSent:
    """A message that is not sent, with the reason for the log."""

    reason: str
    is_permanent: bool = True  # whether a retry would not help


@dataclass(frozen=True, slots=True)
class Later:
    """A message that is sent at another time; putting it off fails if a condition does."""

    due_at: str
    conditions: tuple[Query, ...] = ()


LetterComposer = Callable[[Row], Awaitable[EmailMessage | NotSent | Later]]
"""Returns the message of a letter's entry. Raises Problem, and what composing raises."""


@dataclass(frozen=True, slots=True)
class MessageComposer:
    """Prepares the messages of one installation."""

    settings: Settings
    store: Store
    clock: Clock
    secret: bytes  # the key of hashes of addresses
    links: UnsubscribeLinks
    desk_links: DeskLinks
    templates: MailTemplates
    letters: LetterComposer | None = None

    async def prepare(self, entry: Row) -> EmailMessage | NotSent | Later:
        """Return the message of an entry. Raises Problem, and what `compose` raises."""
        if await is_suppressed(self.store, entry["recipient_email"]):
            return NotSent("the address is suppressed", is_permanent=not must_reach_owner(entry))
        if self.letters and entry["template_name"] in LETTER_TYPES:
            return await self.letters(entry)
        message_type = message_type_of(entry)
        about_no_row = {
            OWNER_SUMMARY: self._summarize,
            HIDDEN_LEADS: self._list_hidden,
            WEEKLY_STATS: self._report_week,
        }
        if message_type in about_no_row:
            return await about_no_row[message_type](entry)
        table = (message_type and message_type.about) or LEADS
        subject = await find_row(self.store, table, entry["subject_id"])
        if subject is None:
            return NotSent(f"the {_NOUNS[table]} is gone")
        reason: str | None = None
        if message_type == ACKNOWLEDGEMENT:
            reason = await self._acknowledgement_problem(entry, subject)
        elif message_type == SIGN_IN_LINK and not self.desk_links.is_row_usable(subject):
            reason = "the link was used, or has expired"
        elif message_type == MAILING_NOTICE and (
            subject["ended_at"] or (subject["due_at"] and not subject["held_at"])
        ):
            reason = "the mailing no longer waits"
        if reason is not None:
            return NotSent(reason)
        if message_type in (ANSWER, CONFIRMATION):
            return await (self._answer if message_type == ANSWER else self._ask)(entry, subject)
        return await self._compose(entry, self._values(entry, subject))

    async def _acknowledgement_problem(self, entry: Row, lead: Row) -> str | None:
        """Return why not to acknowledge a lead, or reserve the acknowledgement. Raises Problem."""
        if lead["status"] == "spam" or lead["spam_score"] >= SUSPECT_FROM:
            return "the lead looks like spam"
        where = (
            Filter("template_name", "eq", "lead_acknowledgement"),
            Filter("status", "eq", "sent"),
            Filter("created_at", "gt", format_instant(self.clock() - timedelta(hours=1))),
        )
        most = self.settings.acknowledgements_per_hour
        if await count_rows(self.store, EMAIL_SEND_LOG, *where) >= most:
            return f"{most} acknowledgements were sent within an hour"
        if not await self._reserve(entry):
            return "this address had an acknowledgement within 24 hours"
        return None

    async def _reserve(self, entry: Row) -> bool:
        """Reserve an address's one acknowledgement of the day; return whether this entry has it."""
        now = self.clock()
        purpose = f"acknowledgement\n{normalize_recipient(entry['recipient_email'])}"
        row: Row = {
            "id": hmac.digest(self.secret, purpose.encode(), "sha256").hex(),
            "request_digest": sha256(entry["id"].encode()).hexdigest(),
            "status": 250,  # a relay's "OK" (RFC 5321, section 4.2.3)
            "response": entry["subject_id"],  # the lead's id, so that it is erased with the lead
            "created_at": format_instant(now),
            "expires_at": format_instant(now + timedelta(hours=24)),
        }
        expired = (*where_id(row["id"]), Filter("expires_at", "lte", format_instant(now)))
        queries = Delete(IDEMPOTENCY_KEYS, expired), Insert(IDEMPOTENCY_KEYS, [row])
        if await run_unless_conflict(self.store, _require_entry(entry), *queries):
            return True
        stored = await find_row(self.store, IDEMPOTENCY_KEYS, row["id"])
        return stored is not None and stored["request_digest"] == row["request_digest"]

    async def _summarize(self, entry: Row) -> EmailMessage | NotSent:
        """Return one message for all owner notices that were held since the last such message."""
        ours = Filter("template_name", "eq", OWNER_SUMMARY.template)
        sent = (ours, Filter("status", "eq", "sent"))
        last = await read_first(self.store, Read(EMAIL_SEND_LOG, (), sent, NEWEST, 1))
        since = last["created_at"] if last else ""
        if since >= entry["created_at"]:
            return NotSent("the owner was notified in one message with others")
        held = ours, Filter("status", "eq", "pending"), Filter("created_at", "gt", since)
        number = await count_rows(self.store, EMAIL_SEND_LOG, *held) or 1
        return await self._compose(entry, {"number": number, "desk_url": self._desk_url("leads/")})

    async def _list_hidden(self, entry: Row) -> EmailMessage | NotSent:
        """Return one message for all leads that were hidden since its entry was queued."""
        # A lead that came a moment before the entry may have been stored after it.
        since = datetime.fromisoformat(entry["created_at"]) - timedelta(minutes=1)
        where = (
            Filter("status", "eq", "spam"),
            Filter("spam_score", "gte", HIDDEN_FROM),
            Filter("created_at", "gte", format_instant(since)),
        )
        (found,) = await self.store.run(Read(LEADS, (), where, NEWEST, 100, with_total=True))
        if not found.rows:
            return NotSent("none of the hidden leads is left")
        desk_url = self._desk_url("leads/?status=spam")
        values = {"number": found.total, "leads": found.rows, "desk_url": desk_url}
        return await self._compose(entry, values)

    async def _report_week(self, entry: Row) -> EmailMessage:
        """Return the message about the week before the Monday on which its entry was queued."""
        queued = datetime.fromisoformat(entry["created_at"])
        monday = local_time(self.settings, queued).date()
        stats = await read_stats(self.store, monday, last_days(monday), limit=5)
        values = {"sentence": describe(stats), "stats": stats, "kinds": KINDS}
        return await self._compose(entry, {**values, "desk_url": self._desk_url("stats/")})

    async def _ask(self, entry: Row, subscriber: Row) -> EmailMessage | NotSent:
        """Return the message that asks whether an address wants the newsletter."""
        if self.settings.newsletter == "off":
            return NotSent("the newsletter is off")
        if subscriber["status"] == "active":
            return NotSent("the subscription is confirmed already")
        secret = urlencode({"token": subscriber["token"]})
        values = {
            "confirm_url": f"{self.settings.site_url}{CONFIRM_SUBSCRIPTION}?{secret}",
            "leave_url": f"{self.settings.site_url}{UNSUBSCRIBE}?{secret}",
        }
        sender = self.settings.newsletter_from or self.settings.mail_from or PLACEHOLDER_SENDER
        return await self._compose(entry, values, sender=sender)

    async def _answer(self, entry: Row, lead: Row) -> EmailMessage | NotSent:
        """Return an answer that quotes the message it replies to, the same at each attempt."""
        answer = await find_row(
            self.store, LEAD_MESSAGES, entry["id"], Filter("kind", "eq", "sent")
        )
        if answer is None:
            return NotSent("the answer was taken back")
        where = (
            Filter("lead_id", "eq", lead["id"]),
            Filter("kind", "neq", "draft"),
            Filter("created_at", "lt", answer["created_at"]),
        )
        # Only three Message-IDs, which fit into a line's 998 octets (RFC 5322, 2.1.1).
        thread = await read_all(self.store, Read(LEAD_MESSAGES, (), where, NEWEST, limit=3))
        last = next((row for row in thread if row["kind"] == "received"), None)
        thread = thread[thread.index(last) :] if last else thread
        host = self.settings.site_host
        ids = [
            f"<{row['id']}@{host}>" if row["kind"] == "sent" else row["message_id"] or ""
            for row in reversed(thread)
        ]
        values = {
            "answer": answer,
            "quoted": {
                "name": one_line(lead["name"]),
                "at": (last or lead)["created_at"],
                "text": (last["body"] if last else lead["message"])[:10_000],
            },
        }
        return await self._compose(
            entry,
            values,
            sender=self._answer_sender(),
            reply_to=self.settings.owner_email,
            references=tuple(filter(is_message_id, ids)),
        )

    def _answer_sender(self) -> str:
        """Return the owner's name and address; the address of MAIL_FROM if their domains differ."""
        sender = parse_mailbox(self.settings.mail_from or PLACEHOLDER_SENDER)
        owner = parse_mailbox(self.settings.owner_email) if self.settings.owner_email else sender
        is_same = owner.domain.lower() == sender.domain.lower()
        name = safe_display_name(owner.name or sender.name or site_title(self.settings))
        return f"{name} <{(owner if is_same else sender).address}>"

    async def _compose(self, entry: Row, values: Row, **changes: Any) -> EmailMessage:
        """Return the message of an entry with the given values and those of the site.

        `changes` replace parts of the usual envelope. Raises like `prepare`.
        """
        usual = Envelope(
            message_id=entry["id"],
            sender=self.settings.mail_from or PLACEHOLDER_SENDER,
            recipient=entry["recipient_email"],
            date=datetime.fromisoformat(entry["created_at"]),
            host=self.settings.site_host,
            unsubscribe_url=await self.links.link(entry["recipient_email"], _require_entry(entry))
            if message_type_of(entry) == ACKNOWLEDGEMENT
            else None,
        )
        site = {"site_title": site_title(self.settings), "site_url": self.settings.site_url}
        return compose(
            entry["template_name"],
            replace(usual, **changes),
            {**site, **values},
            self.templates,
            site_language(self.settings),
        )

    def _values(self, entry: Row, subject: Row) -> dict[str, Any]:
        """Return the values of a message about one row, without those of the site."""
        match entry["template_name"]:
            case ACKNOWLEDGEMENT.template:
                return {}
            case NOTIFICATION.template:
                return {"lead": subject, "desk_url": self._desk_url(f"leads/{subject['id']}/")}
            case REQUEST_NOTICE.template:
                return {"request": subject, "desk_url": self._desk_url("access/")}
            case MAILING_NOTICE.template:
                return {"mailing": subject, "desk_url": self._desk_url("newsletter/")}
            case SIGN_IN_LINK.template:
                return {
                    "link_url": self.desk_links.address(subject["id"]),
                    "expires_at": subject["expires_at"],
                }
            case KEY_NOTICE.template:
                return {
                    "key": subject,
                    "undo_until": undo_until(subject, self.clock()),
                    "desk_url": self._desk_url("access/"),
                }
        return {
            "approved": subject["status"] != "denied",
            "claim_uri": f"{self.settings.site_url}{CLAIM_CREDENTIAL}",
            "expires_at": subject["expires_at"],
        }

    def _desk_url(self, path: str) -> str:
        """Return the address of a screen of the desk; `""` if the desk is off."""
        return f"{self.settings.site_url}{DESK}{path}" if self.settings.desk == "on" else ""


def _require_entry(entry: Row) -> Update:
    """Return a query that fails if the entry was erased, or is leased by another dispatcher."""
    return Update(EMAIL_OUTBOX, {"lease": entry["lease"]}, where_leased(entry), at_least=1)


def site_title(settings: Settings) -> str:
    """Return the title of the site from its current build; without one, its host."""
    try:
        return read_head(settings.build_dir / CURRENT_LINK / INDEX_FILE).site_title
    except BuildRefusal:
        return urlsplit(settings.site_url).hostname or settings.site_url


def site_language(settings: Settings) -> Language:
    """Return the language of the current build; without one, English."""
    return read_language((settings.build_dir / CURRENT_LINK).resolve())
