"""Suppressions: addresses that must not be mailed, and the three ways in which they are added.

A person follows an unsubscribe link, which needs no other proof; a mail provider or the mailbox
reports a bounce or a complaint, which takes effect once, however often it is sent; or a person with
access suppresses an address by hand.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from secrets import token_hex
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import quote

import orjson
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from edge_api.auth.actor import Actor, Clock, audited, new_id
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    Query,
    Read,
    Store,
    Update,
    read_all,
    read_first,
)
from edge_api.db.table import Row
from edge_api.db.tables import (
    EMAIL_SEND_LOG,
    EMAIL_UNSUBSCRIBE_TOKENS,
    SUPPRESSED_EMAILS,
)
from edge_api.db.types import MAX_EMAIL_LENGTH, format_instant
from edge_api.leads.service import Idempotency, StoreResponse, identify_request
from edge_api.outbox import run_unless_conflict
from edge_api.schema.paths import UNSUBSCRIBE

Reason = Literal["unsubscribe", "bounce", "complaint"]


def normalize_recipient(address: str) -> str:
    """Return the canonical form of an address; unlike for leads, also of `owner@localhost`."""
    try:
        return normalize_address(address)
    except ValueError:
        return address.lower()


def where_address(address: str) -> Filter:
    """Return the filter of rows with an address, stored with a Unicode or `xn--` domain."""
    return Filter("email", "in", tuple({normalize_recipient(address), address.lower()}))


def read_suppression(address: str) -> Read:
    """Return the query for an address's suppression."""
    return Read(SUPPRESSED_EMAILS, (), (where_address(address),), limit=1)


async def is_suppressed(store: Store, address: str) -> bool:
    """Return whether an address must not be mailed. Raises Problem."""
    return bool(await read_all(store, read_suppression(address)))


def suppression(
    address: str, reason: str, now: datetime, metadata: dict[str, Any] | None = None
) -> Insert:
    """Return the query that suppresses an address.

    Raises Problem `invalid` for an invalid address, and for an unknown reason.
    """
    given = {"email": normalize_recipient(address), "reason": reason, "metadata": metadata}
    row = SUPPRESSED_EMAILS.new_row(given, format_instant(now), partial(new_id, now))
    return Insert(SUPPRESSED_EMAILS, [row])


async def suppress(store: Store, address: str, insert: Insert, *others: Query) -> bool:
    """Run a suppression and other queries; the others alone if the address is suppressed already.

    Returns whether the suppression is new. Raises Problem, also those of the other queries.
    """
    is_new = not await is_suppressed(store, address)
    if is_new and await run_unless_conflict(store, *others, insert):
        return True
    # A conflict means that the address was just suppressed, or that one of the other queries
    # conflicts, which raises it again here.
    await store.run(*others)
    return False


IS_OPEN: Final = Filter("status", "in", ("pending", "active"))
"""The filter of subscriptions that have not ended."""
BAD_ADDRESS: Final = ("5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10")
"""The codes of an address that is wrong itself (RFC 3463, section 3.2): they end subscriptions."""


def end_subscription(address: str, reason: Reason, now: datetime) -> Update:
    """Return the query that ends the subscription of an address, if it has one."""
    values = {
        "status": "bounced" if reason == "bounce" else "ended",
        "ended_at": format_instant(now),
        "ended_by": "link" if reason == "unsubscribe" else reason,
    }
    return Update(SUBSCRIBERS, values, (where_address(address), IS_OPEN))


def mask(address: str) -> str:
    """Return an address in a form that its owner recognizes and others cannot complete."""
    local, _, domain = address.rpartition("@")
    first = local[:1] if len(local) > 2 else ""  # noqa: PLR2004  a short one is soon guessed
    return f"{first}\u2026@{domain}"


class UnsubscribeLinks:
    """The unsubscribe links of one installation."""

    def __init__(self, store: Store, clock: Clock, site_url: str) -> None:
        self._store = store
        self._clock = clock
        self._site_url = site_url

    async def link(self, address: str, *conditions: Query) -> str:
        """Return the link of an address, the same each time.

        A new link is stored in one transaction with `conditions`. Raises Problem `unavailable`, and
        `conflict` if one of the conditions raises it.
        """
        folded = normalize_recipient(address)
        row = await self._find("email", folded) or await self._make(folded, conditions)
        return f"{self._site_url}{UNSUBSCRIBE}?token={quote(row['token'])}"

    async def subscriber(self, token: str) -> str | None:
        """Return the address of a token, if there is one. Raises Problem `unavailable`."""
        row = await self._find("token", token)
        return str(row["email"]) if row else None

    async def unsubscribe(self, token: str, address: str) -> bool:
        """Suppress the address of a token; return whether it was not suppressed before.

        One transaction stores the use of the token and the suppression. If an administrator deletes
        the suppression, the token works again. Raises Problem `unavailable`.
        """
        now = self._clock()
        unused = (Filter("token", "eq", token), Filter("used_at", "is", None))
        use = Update(EMAIL_UNSUBSCRIBE_TOKENS, {"used_at": format_instant(now)}, unused)
        insert = suppression(address, "unsubscribe", now)
        return await suppress(self._store, address, insert, use)

    async def _find(self, column: Literal["email", "token"], value: str) -> Row | None:
        where = (Filter(column, "eq", value),)
        return await read_first(self._store, Read(EMAIL_UNSUBSCRIBE_TOKENS, where=where))

    async def _make(self, address: str, conditions: Sequence[Query]) -> Row:
        now = self._clock()
        given = {"email": address, "token": token_hex(32)}
        row = EMAIL_UNSUBSCRIBE_TOKENS.new_row(given, format_instant(now), partial(new_id, now))
        insert = Insert(EMAIL_UNSUBSCRIBE_TOKENS, [row])
        if await run_unless_conflict(self._store, *conditions, insert):
            return row
        if other := await self._find("email", address):  # another request stored it first
            return other
        raise Problem("conflict", "The mail is gone, and with it the wish for a link")


ReportType = Literal["email.bounced", "email.complained", "email.unsubscribed"]
REPORT_TYPES: Final[tuple[ReportType, ...]] = get_args(ReportType)
Status = Literal["bounced", "soft_bounced", "complained", "suppressed"]


def _check_address(text: str) -> str:
    address = text.strip()
    normalize_address(address)
    return address


class EmailEventData(BaseModel, strict=True, frozen=True):
    """What came of one message."""

    email: Annotated[
        str,
        AfterValidator(_check_address),
        WithJsonSchema({"type": "string", "format": "email", "maxLength": MAX_EMAIL_LENGTH}),
        Field(description="Whom it was sent to."),
    ]
    message_id: Annotated[
        str | None,
        Field(max_length=998, description="As `Message-ID` has it, or without its domain."),
    ] = None
    bounce_type: Annotated[
        Literal["permanent", "transient"] | None,
        Field(description="Of a bounce; left out, it is permanent."),
    ] = None


class EmailEvent(BaseModel, strict=True, frozen=True):
    """An event that has an effect."""

    type: ReportType
    data: EmailEventData


REPORT_RETENTION: Final = timedelta(days=7)  # longer than any provider repeats a report


class Feedback:
    """Records the reports of mail providers; `secret` keys the hash of their ids."""

    def __init__(self, store: Store, clock: Clock, secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._idempotency = Idempotency(store, clock, retention=REPORT_RETENTION, status=200)

    async def record(self, event: EmailEvent, delivery_id: str) -> tuple[bytes, bool]:
        """Log an event, and suppress its address if that is due, in one transaction.

        Returns the answer in JSON, and whether it is a repetition of `delivery_id`. Raises Problem.
        """
        claim = identify_request(self._secret, "email hook", delivery_id, b"")
        record = partial(self._record, event, delivery_id)
        answer, replayed = await self._idempotency.run_once(claim, record)
        return answer.encode(), replayed

    async def record_bounce(
        self, message_ids: tuple[str, ...], code: str, *, is_gone: bool
    ) -> bool:
        """Record that one of these messages bounced; return whether we sent one of them.

        The address is taken from our log, and suppressed if it `is_gone`. Messages to the owner are
        left out: a person who gets a reply to a notice knows its id, and could have the owner's
        address suppressed. Raises Problem.
        """
        from edge_api.mail.messages import LETTER_TYPES, MESSAGE_TYPES  # noqa: PLC0415  Jinja

        types = {**MESSAGE_TYPES, **LETTER_TYPES}
        to_visitors = tuple(name for name, each in types.items() if each.to_visitor)
        where = (
            Filter("message_id", "in", message_ids),
            Filter("status", "eq", "sent"),
            Filter("template_name", "in", to_visitors),
        )
        sent = await read_first(self._store, Read(EMAIL_SEND_LOG, where=where))
        if sent is None:
            return False
        data = EmailEventData.model_construct(
            email=sent["recipient_email"],
            message_id=sent["message_id"],
            bounce_type="permanent" if is_gone else "transient",
        )
        event = EmailEvent.model_construct(type="email.bounced", data=data)
        await self.record(event, f"report-{code}-{sent['message_id']}")
        return True

    async def _record(
        self, event: EmailEvent, delivery_id: str, store_response: StoreResponse
    ) -> str:
        effects: Mapping[str, tuple[Status, Reason | None]] = {
            "email.bounced": ("bounced", "bounce"),
            "email.complained": ("complained", "complaint"),
            "email.unsubscribed": ("suppressed", "unsubscribe"),
        }
        status, reason = effects[event.type]
        if event.type == "email.bounced" and event.data.bounce_type == "transient":
            status, reason = "soft_bounced", None
        answer = orjson.dumps({"status": status, "suppressed": reason is not None}).decode()
        queries = (*store_response(answer), await self._log_query(event, status, delivery_id))
        if reason is None:
            await self._store.run(*queries)
        else:
            metadata, now = {"webhook_id": delivery_id}, self._clock()
            address = event.data.email
            insert = suppression(address, reason, now, metadata)
            end = end_subscription(address, reason, now)
            await suppress(self._store, address, insert, *queries, end)
        return answer

    async def _log_query(self, event: EmailEvent, status: Status, delivery_id: str) -> Insert:
        message_id, template = event.data.message_id, "system"  # unless the log has the message
        if message_id is not None:
            bare = message_id.strip().removeprefix("<").removesuffix(">")
            where = (Filter("message_id", "in", (message_id, bare, bare.partition("@")[0])),)
            columns = ("message_id", "template_name")
            for row in await read_all(
                self._store, Read(EMAIL_SEND_LOG, columns, where, NEWEST, limit=1)
            ):
                message_id, template = row["message_id"], row["template_name"]
        given = {
            "message_id": message_id,
            "template_name": template,
            "recipient_email": event.data.email,
            "status": status,
            "metadata": {"webhook_id": delivery_id, "event": event.type},
        }
        now = self._clock()
        row = EMAIL_SEND_LOG.new_row(given, format_instant(now), partial(new_id, now))
        return Insert(EMAIL_SEND_LOG, [row])


async def suppress_by_hand(
    store: Store, address: str, reason: str, actor: Actor, now: datetime
) -> None:
    """Suppress an address on behalf of a person; this can be undone.

    Raises Problem `conflict` if it is suppressed already, and `invalid` if it is no address.
    """
    try:
        insert = suppression(_check_address(address), reason, now)
    except ValueError:
        raise Problem("invalid", "email: is not an e-mail address") from None
    change = audited(actor, "insert", insert, now)
    if await is_suppressed(store, address) or not await run_unless_conflict(store, *change):
        raise Problem("conflict", "email: gets no mail already")
