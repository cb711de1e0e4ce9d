"""The outbox of mail: its entries, their claims and their log.

An entry, or a log row that says why there is none, is written in the transaction of its lead or
request, so that no message is lost, and none is sent about a row that was rolled back. The log has
one row for each transition of an entry; the entry's id is its `message_id` there. Nothing is sent
here, and the DNS is not asked.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from edge_api.auth.actor import Clock, new_id
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.mail_addresses import normalize_address, parse_mailbox
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    InsertFromRead,
    Order,
    Query,
    Read,
    Store,
    Update,
    read_all,
)
from edge_api.db.stats_tables import PAGE_VIEWS
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_SEND_STATE
from edge_api.db.types import format_instant
from edge_api.mail.messages import (
    ACCESS_DECISION,
    ACKNOWLEDGEMENT,
    HIDDEN_LEADS,
    LETTER_TYPES,
    MESSAGE_TYPES,
    NOTIFICATION,
    OWNER_SUMMARY,
    QUEUES,
    REQUEST_NOTICE,
    WEEKLY_STATS,
    MessageType,
    Queue,
)
from edge_api.outbox import (
    UNCLAIMED,
    Leases,
    run_unless_conflict,
    where_due,
)
from edge_api.settings import Settings
from edge_api.stats.reading import local_time

NEWSLETTER_MINUTES: Final = 72 * 60
"""The time for which a letter is tried: a relay may be away for a day, or over a weekend."""
READ_STATE = Read(EMAIL_SEND_STATE)


def dispatcher_state(rows: list[Row], now: datetime) -> Row:
    """Return the row that `READ_STATE` has found, or the default one."""
    return rows[0] if rows else _default_state(now)


def paused_until(state: Row, now: datetime) -> str | None:
    """Return the end of a pause; `None` where mail is not paused."""
    until: str | None = state["retry_after_until"]
    return until if until and until > format_instant(now) else None


def time_to_live(state: Row, queue: Queue) -> timedelta:
    """Return the time for which entries of a queue are tried, from when they were queued."""
    return timedelta(minutes=state.get(f"{queue}_email_ttl_minutes", NEWSLETTER_MINUTES))


async def pause(store: Store, until: datetime, now: datetime) -> Update:
    """Return the query that pauses every dispatcher; make its row if missing. Raises Problem."""
    await run_unless_conflict(store, Insert(EMAIL_SEND_STATE, [_default_state(now)]))
    values = EMAIL_SEND_STATE.new_values(
        {"retry_after_until": format_instant(until)}, format_instant(now)
    )
    return Update(EMAIL_SEND_STATE, values, (Filter("id", "eq", 1),))


def _default_state(now: datetime) -> Row:
    return EMAIL_SEND_STATE.new_row({}, format_instant(now), str)


MAX_REASON_LENGTH: Final = 1000  # characters of a reason that the log stores


def new_entry(message_type: MessageType, recipient: str, subject_id: str, now: datetime) -> Row:
    """Return an entry that is due now; `subject_id` is the row that it is about."""
    given = {
        "queue": message_type.queue,
        "template_name": message_type.template,
        "recipient_email": recipient,
        "subject_id": subject_id,
    }
    return EMAIL_OUTBOX.trusted_row(given, format_instant(now), partial(new_id, now))


def message_type_of(entry: Row) -> MessageType | None:
    """Return the message type of an entry; `None` for one of another version of the service."""
    name = entry["template_name"]
    return MESSAGE_TYPES.get(name) or LETTER_TYPES.get(name)


def retry_for(entry: Row) -> timedelta | None:
    """Return the time for which an entry is retried each hour; `None` unless it must arrive."""
    message_type = message_type_of(entry)
    return message_type.retry_for if message_type else None


def must_reach_owner(entry: Row) -> bool:
    """Return whether an entry stays until it is discarded by hand."""
    message_type = message_type_of(entry)
    return message_type is not None and message_type.must_reach_owner


def log_insert(
    entry: Row,
    status: str,
    at: datetime,
    reason: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Insert:
    """Return the query that logs the status of an entry, and the reason."""
    given = {
        "message_id": entry["id"],
        "template_name": entry["template_name"],
        "recipient_email": entry["recipient_email"],
        "status": status,
        "error_message": reason[:MAX_REASON_LENGTH] if reason else None,
        "metadata": metadata,
    }
    row = EMAIL_SEND_LOG.trusted_row(given, format_instant(at), partial(new_id, at))
    return Insert(EMAIL_SEND_LOG, [row])


LEASE: Final = timedelta(seconds=120)


class MailLeases(Leases):
    """The leases of one dispatcher of mail."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock, EMAIL_OUTBOX, LEASE)

    async def claim_due(self, limit: int) -> tuple[list[Row], bool]:
        """Claim up to `limit` entries; return them, and whether no other is due. Raises Problem."""
        now = self._clock()
        wheres = ((*where_due(now), Filter("queue", "eq", queue)) for queue in QUEUES)
        reads = (Read(EMAIL_OUTBOX, (), where, (Order("due_at"),), limit) for where in wheres)
        results = await self._store.run(*reads)
        found = [row for result in results for row in result.rows]
        # One that was claimed three times without an outcome is claimed alone: it may be the one
        # that crashes the process, rather than those that were claimed with it.
        safe = [row for row in found if row["claims"] < 3]  # noqa: PLR2004
        chosen = safe[:limit] or found[:1]
        is_complete = len(found) < limit and len(chosen) == len(found)
        return await self.claim(chosen, now), is_complete

    async def is_other_mail_due(self) -> bool:
        """Return whether mail is due that goes before letters of the newsletter. Raises Problem."""
        others = Filter("queue", "in", tuple(each for each in QUEUES if each != "newsletter"))
        due = (*where_due(self._clock()), Filter("lease", "is", None), others)
        return bool(await read_all(self._store, Read(EMAIL_OUTBOX, ("id",), due, limit=1)))


NO_RELAY: Final = "mail is not configured: SMTP_URL is not set"
WEEKLY_HOUR: Final = 7
"""The hour of Monday, in the journal's time zone, from which the stats are mailed."""
BURST: Final = 20
"""Notices to the owner within `BURST_WINDOW`, after which further ones are held and become one."""
BURST_WINDOW: Final = timedelta(minutes=10)
MAX_ADDRESS_LENGTH: Final = 254
"""Octets of an address (RFC 5321, section 4.5.3.1.3: a path of 256, with its brackets)."""
MAX_LOCAL_PART_LENGTH: Final = 64  # octets (RFC 5321, section 4.5.3.1.1)

_RESERVED_DOMAINS: Final = frozenset(
    {
        "test",  # RFC 6761
        "invalid",
        "example",
        "localhost",
        "example.com",  # RFC 2606, section 3
        "example.net",
        "example.org",
        "local",  # RFC 6762
        "onion",  # RFC 7686
        "alt",  # RFC 9476
        "home.arpa",  # RFC 8375
        "internal",  # ICANN
    }
)
"""Domains that never receive mail, with their subdomains."""


class Outbox:
    """Adds mail about leads and access decisions to their transactions."""

    def __init__(
        self, settings: Settings, clock: Clock, wake: Callable[[], None] = lambda: None
    ) -> None:
        self.is_configured = settings.smtp_url is not None
        owner = settings.owner_email
        self.owner = parse_mailbox(owner).address if owner else None
        self.is_demo = settings.demo == "on"
        self._acknowledges = settings.acknowledge_leads
        self._settings = settings
        self._clock = clock
        self._wake = wake

    def outbox_entries(self, lead: Row) -> tuple[Query, ...]:
        """Return the entries that notify the owner of a lead, and thank its sender if wanted."""
        if lead["status"] == "spam":
            return self._queue_hidden_list()
        queries: tuple[Query, ...] = self._notify_owner(NOTIFICATION, lead)
        if self._acknowledges:
            refusal = undeliverable_reason(lead["email"], is_demo=self.is_demo)
            queries += self._queue(ACKNOWLEDGEMENT, lead["email"], lead, refusal)
        return queries

    def wake(self) -> None:
        """Send queued mail at once; without a relay it was only logged."""
        if self.is_configured:
            self._wake()

    def decision_entries(self, request: Row) -> tuple[Query, ...]:
        """Return the entry that notifies somebody of the decision on their request for access."""
        email = request["email"]
        if not self.is_configured or email is None:
            return ()
        reason = undeliverable_reason(email, is_demo=self.is_demo)
        return self._queue(ACCESS_DECISION, email, request, reason)

    def request_entries(self, request: Row) -> tuple[Query, ...]:
        """Return the entry that notifies the owner of a request for access that waits."""
        is_mailed = self.is_configured and request["status"] == "pending"
        return self._notify_owner(REQUEST_NOTICE, request) if is_mailed else ()

    def owner_entries(self, message_type: MessageType, subject: Row) -> tuple[Insert, ...]:
        """Return the entry that mails the owner at once, if there is one to be mailed."""
        to = self.owner
        return self._queue(message_type, to, subject, None) if to and self.is_configured else ()

    async def queue_week(self, store: Store) -> None:
        """Queue the stats of the week before, once and on a Monday. Raises Problem."""
        settings, now = self._settings, self._clock()
        local, is_on = local_time(settings, now), settings.stats == settings.stats_mail == "on"
        is_mailed = is_on and self.owner and self.is_configured
        if not is_mailed or local.weekday() or local.hour < WEEKLY_HOUR:
            return
        # The same id at each edge, and after the site has moved, so that it is there once.
        name = f"{WEEKLY_STATS.template} {local.date()}"
        entry = new_entry(WEEKLY_STATS, self.owner or "", new_id(now), now)
        entry["id"] = str(uuid5(NAMESPACE_URL, name))
        read = Read(EMAIL_SEND_LOG, ("id",), (Filter("message_id", "eq", entry["id"]),), limit=1)
        # One day of the week at least was counted whole.
        old = (Filter("day", "lt", str(local.date() - timedelta(days=1))),)
        counted, known = await store.run(Read(PAGE_VIEWS, ("id",), old, limit=1), read)
        if counted.rows and not known.rows:
            log = log_insert(entry, "pending", now)
            await store.run(  # the log last: what is stored there would be found by the read
                InsertFromRead(read, lambda rows: Insert(EMAIL_OUTBOX, () if rows else [entry])),
                InsertFromRead(read, lambda rows: Insert(log.table, () if rows else log.rows)),
            )
            self.wake()

    def _notify_owner(self, message_type: MessageType, subject: Row) -> tuple[Query, ...]:
        """Return a notice for the owner; after `BURST` within `BURST_WINDOW`, one that is held.

        Those that were held become one message when the first of them is due.
        """
        owner = self.owner
        if not owner or not self.is_configured:
            return self._queue(message_type, owner or "owner", subject, "OWNER_EMAIL is not set")
        now = self._clock()
        single = new_entry(message_type, owner, subject["id"], now)
        summary = {"template_name": OWNER_SUMMARY.template, "queue": OWNER_SUMMARY.queue}
        held = {**single, **summary, "due_at": format_instant(now + BURST_WINDOW)}
        notices = tuple(each.template for each in (NOTIFICATION, REQUEST_NOTICE, OWNER_SUMMARY))
        where = (
            Filter("template_name", "in", notices),
            Filter("status", "eq", "pending"),
            Filter("created_at", "gt", format_instant(now - BURST_WINDOW)),
        )
        read = Read(EMAIL_SEND_LOG, ("id",), where, NEWEST, BURST)

        def choose(rows: list[Row]) -> Row:
            return held if len(rows) >= BURST else single

        return (
            InsertFromRead(read, lambda rows: Insert(EMAIL_OUTBOX, [choose(rows)])),
            InsertFromRead(read, lambda rows: log_insert(choose(rows), "pending", now)),
        )

    def _queue_hidden_list(self) -> tuple[Query, ...]:
        """Return the queries that queue a list of hidden leads, unless one waits already."""
        if not self.owner or not self.is_configured:
            return ()
        now = self._clock()
        # Due a day after the first hidden lead. No lead is its subject: erasing that lead would
        # erase the entry too.
        due = dict.fromkeys(("due_at", "queued_at"), format_instant(now + timedelta(days=1)))
        entry = {**new_entry(HIDDEN_LEADS, self.owner, new_id(now), now), **due}
        # One that is claimed may have read its leads already.
        waiting = Filter("template_name", "eq", HIDDEN_LEADS.template), *UNCLAIMED
        read, log = Read(EMAIL_OUTBOX, ("id",), waiting, limit=1), log_insert(entry, "pending", now)
        return (  # the outbox last: what is stored there would be found by the read
            InsertFromRead(read, lambda rows: Insert(log.table, () if rows else log.rows)),
            InsertFromRead(read, lambda rows: Insert(EMAIL_OUTBOX, () if rows else [entry])),
        )

    def _queue(
        self,
        message_type: MessageType,
        recipient: str,
        subject: Row,
        suppression_reason: str | None,
    ) -> tuple[Insert, ...]:
        now = self._clock()
        reason = suppression_reason if self.is_configured else NO_RELAY
        if reason is not None:
            entry = {"template_name": message_type.template, "recipient_email": recipient}
            return (log_insert({"id": new_id(now), **entry}, "suppressed", now, reason),)
        entry = new_entry(message_type, recipient, subject["id"], now)
        return Insert(EMAIL_OUTBOX, [entry]), log_insert(entry, "pending", now)


def undeliverable_reason(address: str, *, is_demo: bool = False) -> str | None:
    """Return why an address is never mailed, or `None`; a demonstration mails those in example."""
    try:
        normalize_address(address)
        mailbox = parse_mailbox(address)
    except ValueError:
        return "The address cannot be written on an envelope"
    if len(mailbox.address.encode()) > MAX_ADDRESS_LENGTH:
        return f"The address is longer than {MAX_ADDRESS_LENGTH} octets"
    if len(mailbox.local_part.encode()) > MAX_LOCAL_PART_LENGTH:
        return f"The address has more than {MAX_LOCAL_PART_LENGTH} octets before the @"
    labels = mailbox.domain.lower().split(".")
    reserved = _RESERVED_DOMAINS - {"example"} if is_demo else _RESERVED_DOMAINS
    if any(".".join(labels[start:]) in reserved for start in range(len(labels))):
        return "The address is in a domain that is reserved and receives no mail"
    return None
