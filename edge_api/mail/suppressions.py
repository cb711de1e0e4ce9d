"""Whether an address may be mailed at all: suppressions, and the two ways in which they come.

One is the link with which somebody unsubscribes. Whoever has it may use it; there is nothing else
to prove. What its page says is not known here. The other are the reports of a mail service: what
came of messages later on. Each takes effect once, however often it is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from secrets import token_hex
from types import MappingProxyType
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

import orjson

from edge_api.auth.actor import Clock, new_id
from edge_api.db.email_address import fold_address
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Order, Query, Read, Store, Update
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_UNSUBSCRIBE_TOKENS, SUPPRESSED_EMAILS
from edge_api.db.types import spell_instant
from edge_api.leads.idempotency import Idempotency, Remember, make_claim
from edge_api.outbox import run_unless_conflict
from edge_api.schema.paths import UNSUBSCRIBE

Reason = Literal["unsubscribe", "bounce", "complaint"]


def fold_recipient(address: str) -> str:
    """Return the one spelling of an address; also of `owner@localhost`, which leads cannot have."""
    try:
        return fold_address(address)
    except ValueError:
        return address.lower()


def read_suppression(address: str) -> Read:
    """Return the plan that finds the suppression of an address, in either of its spellings.

    Administrators may have written a domain as `xn--`, where the service writes Unicode.
    """
    spellings = tuple({fold_recipient(address), address.lower()})
    return Read(SUPPRESSED_EMAILS, ("id",), (Filter("email", "in", spellings),), limit=1)


async def is_suppressed(store: Store, address: str) -> bool:
    """Tell whether an address must not be mailed. Raises Problem where that cannot be read."""
    (outcome,) = await store.run(read_suppression(address))
    return bool(outcome.rows)


@dataclass(frozen=True, slots=True)
class Suppression:
    """An address that is not to be mailed any more, and why."""

    address: str
    reason: Reason
    metadata: dict[str, Any] | None = None

    def insert(self, now: datetime) -> Insert:
        """Return the plan that writes it down."""
        given = {
            "email": fold_recipient(self.address),
            "reason": self.reason,
            "metadata": self.metadata,
        }
        row = SUPPRESSED_EMAILS.new_row(given, spell_instant(now), partial(new_id, now))
        return Insert(SUPPRESSED_EMAILS, [row])


async def suppress(store: Store, suppression: Suppression, now: datetime, *others: Query) -> bool:
    """Carry out the other plans together with a suppression, unless the address has one.

    Returns whether it is new. Raises Problem, those of the other plans among them.
    """
    is_new = not await is_suppressed(store, suppression.address)
    if is_new and await run_unless_conflict(store, *others, suppression.insert(now)):
        return True
    # After a conflict somebody else was first; if it was with another plan, that meets it again.
    await store.run(*others)
    return False


_TOKEN_BYTES: Final = 32
_SHOWN_FROM: Final = 3
"""Characters of a local part from which on its first one is shown."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Whom a link belongs to."""

    address: str
    is_suppressed: bool
    """Whether nothing is mailed there anyway."""

    @property
    def masked(self) -> str:
        """Return the address so that its owner knows it and others do not learn it."""
        local, _, domain = self.address.rpartition("@")
        first = local[:1] if len(local) >= _SHOWN_FROM else ""
        return f"{first}\u2026@{domain}"


class UnsubscribeLinks:
    """The links of one installation."""

    def __init__(self, store: Store, clock: Clock, site_url: str) -> None:
        self._store = store
        self._clock = clock
        self._site_url = site_url

    async def link(self, address: str) -> str:
        """Return the link of an address, the same each time. Raises Problem `unavailable`."""
        folded = fold_recipient(address)
        row = await self._find("email", folded) or await self._make(folded)
        return f"{self._site_url}{UNSUBSCRIBE}?token={quote(row['token'])}"

    async def look(self, token: str) -> Subscriber:
        """Return whom a token belongs to; nothing is changed. Raises Problem `not_found`."""
        row = await self._find("token", token)
        if row is None:
            raise Problem("not_found", "There is no such link")
        return Subscriber(row["email"], await is_suppressed(self._store, row["email"]))

    async def unsubscribe(self, token: str) -> bool:
        """Mail nothing more to whom a token belongs; return whether anything would have been.

        That the token was used and that the address is suppressed is one transaction. Where an
        administrator has deleted the suppression, the token works again. Raises Problem
        `not_found`.
        """
        subscriber, now = await self.look(token), self._clock()
        unused = (Filter("token", "eq", token), Filter("used_at", "is", None))
        use = Update(EMAIL_UNSUBSCRIBE_TOKENS, {"used_at": spell_instant(now)}, unused)
        suppression = Suppression(subscriber.address, "unsubscribe")
        return await suppress(self._store, suppression, now, use)

    async def _find(self, column: Literal["email", "token"], value: str) -> Row | None:
        where = (Filter(column, "eq", value),)
        (outcome,) = await self._store.run(Read(EMAIL_UNSUBSCRIBE_TOKENS, where=where))
        return outcome.rows[0] if outcome.rows else None

    async def _make(self, address: str) -> Row:
        now = self._clock()
        given = {"email": address, "token": token_hex(_TOKEN_BYTES)}
        row = EMAIL_UNSUBSCRIBE_TOKENS.new_row(given, spell_instant(now), partial(new_id, now))
        try:
            await self._store.run(Insert(EMAIL_UNSUBSCRIBE_TOKENS, [row]))
        except Problem as problem:
            made = await self._find("email", address) if problem.code == "conflict" else None
            if made is None:
                raise
            return made  # another was first
        return row


ReportType = Literal["email.bounced", "email.complained", "email.unsubscribed"]
REPORT_TYPES: Final[tuple[ReportType, ...]] = get_args(ReportType)
Status = Literal["bounced", "soft_bounced", "complained", "suppressed"]

REMEMBERED_FOR: Final = timedelta(days=7)
"""Longer than any sender repeats a report that it takes for lost."""
_TAKEN: Final = 200
_UNKNOWN_TEMPLATE: Final = "system"
"""Stands for the template of a message that the log does not know."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one message."""

    type: ReportType
    email: str
    message_id: str | None = None
    """As the log knows it, or as the `Message-ID` header has it."""
    is_transient: bool = False
    """Whether a later message may well arrive."""

    @property
    def effect(self) -> tuple[Status, Reason | None]:
        """Return what the log says of it, and why nothing more is mailed there, if so."""
        if self.is_transient:
            return "soft_bounced", None
        return _EFFECTS[self.type]


_EFFECTS: Mapping[ReportType, tuple[Status, Reason]] = MappingProxyType(
    {
        "email.bounced": ("bounced", "bounce"),
        "email.complained": ("complained", "complaint"),
        "email.unsubscribed": ("suppressed", "unsubscribe"),
    }
)


class Feedback:
    """Takes the reports of a mail service; `secret` is the key of what is only kept as a hash."""

    def __init__(self, store: Store, clock: Clock, secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._once = Idempotency(store, clock, kept_for=REMEMBERED_FOR, status=_TAKEN)

    async def take(self, report: Report, delivery_id: str) -> tuple[bytes, bool]:
        """Log a report, and suppress its address where that is due, in one transaction.

        Returns the answer in JSON, and whether it was given before: `delivery_id` is that of
        every repetition. Raises Problem.
        """
        claim = make_claim(self._secret, "email hook", delivery_id, b"")
        answer, replayed = await self._once.once(claim, partial(self._take, report, delivery_id))
        return answer.encode(), replayed

    async def _take(self, report: Report, delivery_id: str, remember: Remember) -> str:
        status, reason = report.effect
        answer = orjson.dumps({"status": status, "suppressed": reason is not None}).decode()
        outbox_entries = (*remember(answer), await self._logged(report, status, delivery_id))
        if reason is None:
            await self._store.run(*outbox_entries)
        else:
            suppression = Suppression(report.email, reason, {"webhook_id": delivery_id})
            await suppress(self._store, suppression, self._clock(), *outbox_entries)
        return answer

    async def _logged(self, report: Report, status: Status, delivery_id: str) -> Insert:
        """Return the plan of the row that says so in the log."""
        message_id, template = await self._message(report.message_id)
        given = {
            "message_id": message_id,
            "template_name": template,
            "recipient_email": report.email,
            "status": status,
            "metadata": {"webhook_id": delivery_id, "event": report.type},
        }
        now = self._clock()
        row = EMAIL_SEND_LOG.new_row(given, spell_instant(now), partial(new_id, now))
        return Insert(EMAIL_SEND_LOG, [row])

    async def _message(self, given: str | None) -> tuple[str | None, str]:
        """Return how the log knows a message, and by which template it was made."""
        if given is None:
            return None, _UNKNOWN_TEMPLATE
        bare = given.strip().removeprefix("<").removesuffix(">")
        names = tuple({given, bare, bare.partition("@")[0]})
        where = (Filter("message_id", "in", names),)
        newest = (Order("created_at", descending=True),)
        columns = ("message_id", "template_name")
        (found,) = await self._store.run(Read(EMAIL_SEND_LOG, columns, where, newest, limit=1))
        if not found.rows:
            return given, _UNKNOWN_TEMPLATE
        return found.rows[0]["message_id"], found.rows[0]["template_name"]
