"""Import of subscribers from CSV: that of other services, and what `newsletter export` writes."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import zip_longest
from secrets import token_hex
from typing import Final

from edge_api.auth.actor import Actor, Clock, audit_entry, new_id
from edge_api.auth.erasure import address_key, erased_key
from edge_api.db.internal_tables import ERASED_ROWS
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Filter, Insert, Procedure, Query, QueryResult, Read, Store, Update
from edge_api.db.table import Row
from edge_api.db.tables import SUPPRESSED_EMAILS
from edge_api.db.types import format_instant, parse_timestamp
from edge_api.mail.queue import undeliverable_reason

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
        with suppress(csv.Error):
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
    with suppress(ValueError):
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
