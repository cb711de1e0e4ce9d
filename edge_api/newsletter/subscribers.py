"""Subscribers of the newsletter: they ask, confirm by mail (double opt-in), leave and come back.

An import takes CSV of other services, and what `newsletter export` writes.
"""

import contextlib
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from io import StringIO
from itertools import zip_longest
from secrets import token_hex
from typing import Final

from edge_api.auth.actor import Actor, Clock, audit_entry, audited, new_id
from edge_api.auth.erasure import address_key, erased_key
from edge_api.db.internal_tables import EMAIL_OUTBOX, ERASED_ROWS
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    Update,
    count_rows,
    read_all,
    read_first,
    require_row,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import IDEMPOTENCY_KEYS, SUPPRESSED_EMAILS
from edge_api.db.types import format_instant, parse_timestamp
from edge_api.mail.messages import CONFIRMATION
from edge_api.mail.queue import Outbox, log_insert, new_entry, undeliverable_reason
from edge_api.mail.suppressions import (
    IS_OPEN,
    normalize_recipient,
    read_suppression,
    suppress,
    suppression,
    where_address,
)
from edge_api.outbox import WAITING

NEWSLETTER_OFF: Final = "The newsletter is off here; NEWSLETTER=on switches it on"
MAX_CONFIRMATIONS_PER_HOUR: Final = 60  # of all addresses; more wait, since strangers cause them
MAX_UNANSWERED: Final = 3  # confirmations for one address
RESERVED_FOR: Final = timedelta(days=90)
"""The time for which an address that answers no confirmation gets no other."""
PENDING_FOR: Final = timedelta(days=7)
STATUSES: Final = ("active", "pending", "ended", "bounced")
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class Subscribers:
    """The subscribers in one store; `secret` keys the digests of their addresses."""

    def __init__(self, store: Store, clock: Clock, secret: bytes, outbox: Outbox) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._outbox = outbox

    async def ask(self, wish: Row) -> None:
        """Mail a confirmation to the address of a wish, unless it must not have one.

        `wish` has `email`, `language`, `source` and `consent`. The caller learns nothing about the
        address: each outcome is one transaction that writes. Raises Problem `unavailable`.
        """
        await self._store.run(Procedure(partial(self._ask, wish, self._clock())))
        self._outbox.wake()

    def _ask(self, wish: Row, now: datetime, results: list[QueryResult]) -> Iterator[Query]:
        email, hour_ago = normalize_recipient(wish["email"]), format_instant(now - _HOUR)
        key = address_key(self._secret, email)
        valid = Filter("expires_at", "gt", format_instant(now))
        yield Read(SUBSCRIBERS, where=(Filter("email", "eq", email),))
        yield read_suppression(email)
        yield Read(IDEMPOTENCY_KEYS, where=(*where_id(key), valid))
        newest = (Order("asked_at", descending=True),)
        recent, last = (Filter("asked_at", "gt", hour_ago),), MAX_CONFIRMATIONS_PER_HOUR - 1
        yield Read(SUBSCRIBERS, ("asked_at",), recent, newest, limit=1, offset=last)
        row, suppressed, earlier, full = (next(iter(each.rows), None) for each in results)
        if suppressed:
            reason: str | None = "the address is suppressed"
        elif row and row["status"] == "active":
            reason = "the address is subscribed already"
        elif earlier and earlier["created_at"] > format_instant(now - _DAY):
            reason = "the address had a confirmation within 24 hours"
        elif earlier and earlier["status"] >= MAX_UNANSWERED:
            reason = f"{MAX_UNANSWERED} confirmations had no answer in {RESERVED_FOR.days} days"
        else:
            reason = undeliverable_reason(email, is_demo=self._outbox.is_demo)
        if reason is not None:
            entry = {"id": new_id(now), "template_name": CONFIRMATION.template}
            yield log_insert({**entry, "recipient_email": email}, "suppressed", now, reason)
            return
        due = max(now, datetime.fromisoformat(full["asked_at"]) + _HOUR) if full else now
        due_at = format_instant(due)
        values = {name: wish[name] for name in ("language", "source", "consent")}
        values["asked_at"] = due_at
        if row:
            yield Update(SUBSCRIBERS, values, where_id(row["id"]))
        else:
            given = {**values, "email": email, "token": token_hex(32)}
            row = SUBSCRIBERS.new_row(given, format_instant(now), partial(new_id, now))
            yield Insert(SUBSCRIBERS, [row])
        digest: Row = {
            "id": key,
            "request_digest": key,
            "status": earlier["status"] + 1 if earlier else 1,  # confirmations without an answer
            "response": erased_key(key),  # by which an erasure finds it
            "created_at": due_at,
            "expires_at": format_instant(due + RESERVED_FOR),
        }
        yield Delete(IDEMPOTENCY_KEYS, where_id(key))
        yield Insert(IDEMPOTENCY_KEYS, [digest])
        entry = new_entry(CONFIRMATION, email, row["id"], now)
        entry |= {"due_at": due_at, "queued_at": due_at}
        yield Insert(EMAIL_OUTBOX, [entry])
        yield log_insert(entry, "pending", now)

    async def find(self, token: str) -> Row | None:
        """Return the subscriber whose links have this token. Raises Problem `unavailable`."""
        if re.fullmatch("[0-9a-f]{64}", token) is None:
            return None
        return await read_first(
            self._store, Read(SUBSCRIBERS, where=(Filter("token", "eq", token),))
        )

    async def confirm(self, subscriber: Row) -> None:
        """Make a subscriber active who pressed the button of a confirmation. Raises Problem."""
        now = format_instant(self._clock())
        values = {"status": "active", "confirmed_at": now, "ended_at": None, "ended_by": None}
        is_new = Filter("status", "eq", "active", negated=True)
        key = address_key(self._secret, subscriber["email"])
        await self._store.run(
            Update(SUBSCRIBERS, values, (*where_id(subscriber["id"]), is_new)),
            Update(IDEMPOTENCY_KEYS, {"status": 0}, where_id(key)),  # it was answered
        )

    async def leave(self, subscriber: Row) -> None:
        """End a subscription, and nothing else. Raises Problem `unavailable`."""
        await self._store.run(self._end(subscriber))

    async def resume(self, subscriber: Row) -> None:
        """Take back the end of a subscription that was confirmed once. Raises Problem."""
        values = {"status": "active", "ended_at": None, "ended_by": None}
        was_active = Filter("confirmed_at", "is", None, negated=True)
        where = *where_id(subscriber["id"]), Filter("status", "eq", "ended"), was_active
        await self._store.run(Update(SUBSCRIBERS, values, where))

    async def refuse_mail(self, subscriber: Row) -> None:
        """End a subscription, and suppress its address for all mail. Raises Problem."""
        email = subscriber["email"]
        insert = suppression(email, "unsubscribe", self._clock())
        await suppress(self._store, email, insert, self._end(subscriber))

    async def allow_mail(self, subscriber: Row) -> None:
        """Take back the wish for no mail at all; other suppressions stay. Raises Problem."""
        wish = Filter("reason", "eq", "unsubscribe")
        where = where_address(subscriber["email"]), wish
        await self._store.run(Delete(SUPPRESSED_EMAILS, where))

    async def end(self, subscriber_id: str, actor: Actor) -> None:
        """End a subscription in the owner's name, which can be undone. Raises Problem."""
        missing = "This subscription has ended, or is gone"
        row = await require_row(self._store, SUBSCRIBERS, subscriber_id, missing, IS_OPEN)
        await self._store.run(*audited(actor, "end", self._end(row, "owner"), self._clock(), ()))

    async def count(self) -> Mapping[str, int]:
        """Return the number of subscribers by their status. Raises Problem `unavailable`."""
        return {
            each: await count_rows(self._store, SUBSCRIBERS, Filter("status", "eq", each))
            for each in STATUSES
        }

    async def count_delayed(self) -> int:
        """Return how many confirmations wait for their turn within an hour. Raises Problem."""
        later = Filter("due_at", "gt", format_instant(self._clock())), Filter("attempts", "eq", 0)
        ours = Filter("template_name", "eq", CONFIRMATION.template), WAITING
        return await count_rows(self._store, EMAIL_OUTBOX, *ours, *later)

    def _end(self, subscriber: Row, by: str = "link") -> Update:
        values = {"status": "ended", "ended_at": format_instant(self._clock()), "ended_by": by}
        # Whoever leaves whom the owner had ended keeps the owner from taking that back.
        is_endable = Filter("id", "any", (IS_OPEN, Filter("ended_by", "eq", "owner")))
        return Update(SUBSCRIBERS, values, (*where_id(subscriber["id"]), is_endable))

    async def forget_pending(self) -> None:
        """Delete those who did not confirm within `PENDING_FOR`. Raises Problem."""
        before = format_instant(self._clock() - PENDING_FOR)
        old = Filter("status", "eq", "pending"), Filter("asked_at", "lt", before)
        if await read_all(self._store, Read(SUBSCRIBERS, ("id",), old, limit=1)):
            await self._store.run(Delete(SUBSCRIBERS, old))


COLUMNS: Final = ("email", "status", "language", "source", "consent", "confirmed_at", "ended_at")
"""The columns of an export, which an import takes."""
BATCH: Final = 500  # lines in one transaction, so that others can write in between
_MAILED: Final[Mapping[str, str]] = {
    "status": "active|enabled|subscribed|confirmed|",  # this program, listmonk
    "subscribed_to_emails": "true|1|yes",  # Ghost
    "deleted_at": "",  # Ghost
    "email_disabled": "false|0|no|",  # Substack
    "confirm_time": ".+",  # Mailchimp
    "unsub_time": "",  # Mailchimp
    "clean_time": "",  # Mailchimp
    # Buttondown; a column of this name in other lists tells who pays.
    "type": (
        "(?!(?:un(?:activated|deliverable|paid|subscribed)|blocked|complained|malicious|removed|"
        "spammy|upcoming)$).*"
    ),
    "unsubscription_date": "",  # Buttondown
    "undeliverability_date": "",  # Buttondown
}
"""By column, the values of who gets mail in the service that wrote the list."""
_UNCONFIRMED: Final = ("confirm_time", "pending", "unconfirmed", "unactivated")
"""A column, and values, that say in there that a confirmation is missing."""
_ADDRESS: Final = ("email", "email_address", "e_mail", "e_mail_address")
"""Names of the column of addresses."""
_OPEN: Final = (
    f"has a quote that is not closed, or more than {csv.field_size_limit()} characters in a field"
)
_SHORT: Final = "has fewer columns than the first line, and comes after a stray quote"


@dataclass(slots=True)
class Line:
    """A line of a list."""

    number: int
    email: str
    """In its canonical form, if it is an address."""
    values: Mapping[str, str]
    reason: str = ""
    """Why it was not taken; empty: it was."""


async def import_subscribers(
    store: Store, clock: Clock, secret: bytes, actor: Actor, text: str
) -> list[Line]:
    """Store the subscribers of a list, and return its lines.

    It revives nobody who ended, is suppressed or was erased here. Raises ValueError for what is no
    such list, before anything is stored, and Problem.
    """
    lines = _read_lines(text)
    good = [line for line in lines if not line.reason]
    for start in range(0, len(good), BATCH):
        batch = good[start : start + BATCH]
        await store.run(Procedure(partial(_store, batch, clock, secret, actor)))
    return lines


def _read_lines(text: str) -> list[Line]:
    """Return the lines after the header, with the reasons that need no store."""
    # Spreadsheets of some countries name the delimiter in a line before the header.
    text = re.sub(r"\Asep=.(?=[\r\n])", "", text.replace("\0", "\ufffd"))
    header = text.lstrip("\r\n").partition("\n")[0]
    lines = [*StringIO(text, newline="")]
    records = _read_records(lines, max(",;\t", key=header.count))
    columns = next(records, (0, [], ""))[1]
    names = [re.sub("[ -]", "_", name.strip().lower()) for name in columns]
    if not set(_ADDRESS).intersection(names):
        found = ", ".join(columns)[:200] or "nothing"
        raise ValueError(
            f"The first line has no column Email, E-Mail or Email Address, but: {found}. Save it "
            "as CSV in UTF-8, with the names of its columns in the first line"
        )
    seen: dict[str, int] = {}
    return [
        _read_line(
            number,
            # A column that a line lacks is empty, so that it cannot say that mail is wanted.
            dict(zip_longest(names, map(str.strip, cells[: len(names)]), fillvalue="")),
            seen,
            fault,
        )
        for number, cells, fault in records
    ]


def _read_records(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield the number of the first line of each record, its cells, and its fault.

    A quote that is not closed takes in the lines after it, so what follows a record with such a
    fault begins in its second line. What follows may be text of a cell, which has fewer columns.
    """
    start, width, is_torn = 0, 0, False
    while start < len(lines):
        is_closed = is_sound = False
        with contextlib.suppress(csv.Error):
            reader = csv.reader(
                map(lines.__getitem__, range(start, len(lines))), delimiter=delimiter
            )
            cells = next(reader)
            taken = lines[start : start + reader.line_num]
            # Another quote may have closed it, so no other line of a list may be within.
            column = next((number for number, cell in enumerate(cells) if "@" in cell), 0)
            others = [line.split(delimiter) for line in taken[1:]]
            is_closed = len(taken) == 1
            # This raises for a quote too many, after which more lines may be text of the cell.
            list(csv.reader(taken, delimiter=delimiter, strict=True))
            is_closed = is_sound = is_closed or not any(
                column < width <= len(each)
                and re.fullmatch(r'\s*"?[^\s"@]+@[^\s"@]+"?\s*', each[column])
                for each in others
            )
        if not is_closed:
            taken = lines[start : start + 1]
            cells = taken[0][:200].split(delimiter)
        width, is_torn = width or len(cells), is_torn or not is_sound
        if any(cells):
            is_short = is_torn and len(cells) < width
            yield start + 1, cells, _SHORT * is_short if is_closed else _OPEN
        start += len(taken)


def _read_line(number: int, values: Mapping[str, str], seen: dict[str, int], fault: str) -> Line:
    typed = next(filter(None, map(values.get, _ADDRESS)), "")
    # An export puts an apostrophe before what a spreadsheet would take for a formula.
    typed = re.sub("^'(?=[=+@-])", "", typed)
    if fault:
        return Line(number, typed, values, fault)
    try:
        if "\ufffd" in typed:
            raise ValueError("not UTF-8: save the list as UTF-8")  # noqa: TRY301  as for another fault
        line = Line(number, normalize_address(typed), values)
        if reason := undeliverable_reason(typed):
            raise ValueError(reason)  # noqa: TRY301
    except ValueError as error:
        # One kind of error begins with "not", the other with "The address".
        return Line(number, typed, values, f"is {error}".removeprefix("is The address "))
    first = seen.setdefault(line.email, number)
    if first != number:
        line.reason = f"is the same as line {first}"
    for name, mailed in _MAILED.items():
        value = values.get(name)
        if value is not None and re.fullmatch(mailed, value, re.IGNORECASE) is None:
            is_open = name in _UNCONFIRMED or value.lower() in _UNCONFIRMED
            ended = "is not confirmed in the list" if is_open else "gets no mail by the list"
            line.reason = f"{ended}: {name} is {value or 'empty'}"
    return line


def _store(
    batch: Sequence[Line],
    clock: Clock,
    secret: bytes,
    actor: Actor,
    results: list[QueryResult],
) -> Iterator[Query]:
    """Yield the queries that store a batch, and note why lines are not taken."""
    emails = tuple(line.email for line in batch)
    marks = {line.email: erased_key(address_key(secret, line.email)) for line in batch}
    yield Read(SUBSCRIBERS, ("id", "email", "status"), (Filter("email", "in", emails),))
    yield Read(SUPPRESSED_EMAILS, ("id", "email"), (Filter("email", "in", emails),))
    yield Read(ERASED_ROWS, ("id",), (Filter("id", "in", tuple(marks.values())),))
    known, suppressed, erased = (
        {row[name]: row for row in result.rows}
        for name, result in zip(("email", "email", "id"), results, strict=True)
    )
    now, rows = clock(), []
    for line in batch:
        here = known[line.email]["status"] if line.email in known else ""
        reasons = {
            "is suppressed here: it wants no mail, or takes none": line.email in suppressed,
            "is subscribed already": here == "active",
            "is unsubscribed here": here == "ended",
            "bounced here": here == "bounced",
            "was erased here": marks[line.email] in erased and not here,
        }
        line.reason = next((text for text, is_so in reasons.items() if is_so), "")
        if not line.reason:
            rows.append(_make_row(line, format_instant(now)))
    pending = tuple(row["email"] for row in rows if row["email"] in known)
    confirmed = {"status": "active", "confirmed_at": format_instant(now)}
    yield Update(SUBSCRIBERS, confirmed, (Filter("email", "in", pending),))
    fresh = [
        SUBSCRIBERS.new_row(row, format_instant(now), partial(new_id, now))
        for row in rows
        if row["email"] not in known
    ]
    yield Insert(SUBSCRIBERS, fresh)
    yield audit_entry(actor, "import", SUBSCRIBERS, len(rows), now)


def _make_row(line: Line, confirmed_at: str) -> Row:
    names = ("confirmed_at", "confirm_time", "created_at", "creation_date", "start_date")
    dates = filter(None, map(line.values.get, names))
    with contextlib.suppress(ValueError):
        confirmed_at = min(confirmed_at, parse_timestamp(next(dates, confirmed_at)))
    return {
        "email": line.email,
        "status": "active",
        "token": token_hex(32),
        "language": line.values.get("language", "")[:35],
        "source": line.values.get("source", "")[:200] or "import",
        "consent": line.values.get("consent", "")[:1000],
        "confirmed_at": confirmed_at,
    }
