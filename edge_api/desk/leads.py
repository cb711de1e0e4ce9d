"""The desk's inbox: people, with the messages that they sent."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from edge_api.auth.erasure import fold_address
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, read_all
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant, parse_timestamp
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.desk.today import read_people
from edge_api.leads.service import LeadQuery, Leads, all_leads
from edge_api.leads.threads import (
    MAX_COUNTED_LEADS,
    PAGE_SIZE,
    address_filter,
    box_conditions,
    complete_threads,
    count_people,
    first_words,
    leads_of,
    list_threads,
    name_of,
)
from edge_api.operation.input import FormErrors
from edge_api.operation.model import OperationResult
from edge_api.operation.sheets import CSV_TYPE, stream_csv

STATUSES: Final = LEADS.columns["status"].choices
BOXES: Final = {
    "new": "New",
    "waiting": "Waiting",
    "contacted": "Answered",
    "all": "All",
    "qualified": "Qualified",
    "won": "Won",
    "lost": "Lost",
    "spam": "Spam",
}
"""The labels of the boxes of the inbox; a box has the messages of one status, or more."""
SETTLED: Final = ("qualified", "won", "lost")
"""Statuses of leads that are finished; their boxes appear only where a lead has them."""
UNDELIVERED: Final = ("bounced", "complained", "dlq")
"""Statuses of mail that was not delivered."""


def read_box(visit: Visit) -> str:
    """Return the box that the address names; without one New, or All for a search.

    Raises Problem `invalid`.
    """
    box = visit.query.get("status") or ("all" if visit.query.get("q", "").strip() else "new")
    if box not in BOXES:
        raise Problem("invalid", f"There is no status {box}: use {', '.join(BOXES)}")
    return box


def read_query(visit: Visit) -> LeadQuery:
    """Return the search and the order that the address asks for."""
    search, is_oldest = visit.query.get("q", "").strip(), visit.query.get("order") == "oldest"
    return LeadQuery(search=search, oldest_first=is_oldest)


async def show_inbox(visit: Visit) -> Values:
    """Return a page of a box: a row for each person."""
    store, now, box = visit.service.store, visit.service.clock(), read_box(visit)
    found, is_cut = await list_threads(store, now, read_query(visit), box)
    typed, last = visit.query.get("page", ""), max(1, -(-len(found) // PAGE_SIZE))
    page = min(max(1, int(typed[:6])), last) if typed.isascii() and typed.isdecimal() else 1
    threads = await complete_threads(store, found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE])
    counts = dict(zip(BOXES, await count_people(store, now, *BOXES), strict=True))
    to = address_filter("recipient_email", [each.lead for each in threads])
    back = to, Filter("status", "in", UNDELIVERED)
    mail = Read(EMAIL_SEND_LOG, ("recipient_email",), back, limit=1000)
    failed = await read_all(store, mail) if visit.actor.may_use(EMAIL_SEND_LOG.name) else ()
    return {
        "threads": threads,
        "boxes": [
            (name, label, format_count(counts[name]))
            for name, label in BOXES.items()
            if name not in SETTLED or counts[name] or name == box
        ],
        "box": box,
        "found": f"{len(found)}{'+' if is_cut else ''}",  # the number of people
        "q": visit.query.get("q", "").strip(),
        "order": visit.query.get("order", ""),
        "before": page - 1,
        "after": page + 1 if page < last else None,
        "is_cut": is_cut,
        "failed": {fold_address(row["recipient_email"]) for row in failed},
        "name_of": name_of,
        "first_words": first_words,
        "seen": format_instant(now),
        **({} if threads else await read_people(store, visit.now)),
        "picking": not {"select", "pick"}.isdisjoint(visit.query) or visit.chosen("id"),
        "picked": [each.lead["id"] for each in threads if "pick" in visit.query]
        or visit.chosen("id"),
    }


def format_count(number: int) -> str:
    """Format a number of people as the boxes show it."""
    return f"{number:,}{'+' if number >= MAX_COUNTED_LEADS else ''}"


async def export_csv(visit: Visit) -> OperationResult:
    """Return all leads that the inbox's filters find, as CSV."""
    where = box_conditions(read_box(visit), visit.service.clock())
    leads = all_leads(visit.service.store, replace(read_query(visit), where=where))
    return OperationResult(
        stream_csv(LEADS.readable, leads),
        headers={"Content-Disposition": 'attachment; filename="leads.csv"'},
        media_type=CSV_TYPE,
    )


async def mark(visit: Visit) -> str:
    """Set the status of the ticked threads, or of the one whose own button was pressed."""
    ids, status = visit.chosen("id"), visit.typed.get("status", "")
    if one := visit.typed.get("one"):
        lead_id, _, status = one.partition(" ")
        ids = (lead_id,)
    if not ids:
        raise FormErrors({"form": "Tick at least one message, then press the button again."})
    if status not in STATUSES:
        raise FormErrors({"form": "Choose the status that the messages are to have."})
    await mark_threads(visit, ids, status)
    return visit.here


async def mark_threads(
    visit: Visit, ids: Sequence[str], status: str, remind_at: str | None = None
) -> None:
    """Set status and reminder of leads, and of all new leads of the same people.

    If spam becomes new again, so does all spam of these people. Raises Problem as
    `find_seen_leads`.
    """
    former = "spam" if status == "new" and not remind_at else "new"
    read = await find_seen_leads(visit, ids, status, former)
    await visit.service[Leads].mark(read, status, visit.actor, remind_at)


async def find_seen_leads(
    visit: Visit, ids: Sequence[str], status: str, former: str = "new"
) -> Sequence[str]:
    """Return the given leads, and those of the same people with the status `former`.

    A lead is omitted if it came, or its sender replied, after the page was shown. Raises Problem
    `conflict` if none is left.
    """
    store, seen = visit.service.store, read_seen(visit)
    is_later = Filter("kind", "eq", "received"), Filter("created_at", "gt", seen)
    leads, replies = await store.run(
        Read(LEADS, (), (Filter("id", "in", tuple(ids)),)),
        Read(LEAD_MESSAGES, ("lead_id",), is_later, limit=MAX_COUNTED_LEADS),
    )
    people = {fold_address(row["email"]) for row in leads.rows}
    same = [row for each in people for row in await leads_of(store, each, MAX_COUNTED_LEADS)]
    settled = SETTLED if status == "contacted" else ()  # an answer reopens no finished lead
    found = {row["id"] for row in leads.rows if row["status"] not in settled}
    found |= {row["id"] for row in same if row["status"] == former and row["created_at"] <= seen}
    unread = {row["lead_id"] for row in replies.rows}
    if found and found <= unread:
        raise Problem("conflict", "The person wrote again meanwhile: read that first")
    return tuple(found - unread)


def read_seen(visit: Visit) -> str:
    """Return the instant at which the page of the form was shown; now, if the form has none."""
    with suppress(ValueError):
        return parse_timestamp(visit.typed.get("seen", ""))
    return format_instant(visit.service.clock())


INBOX: Final = Screen("/desk/leads/", "Inbox", "inbox", show_inbox, LEADS.name, nav="Inbox")
SCREENS: Final = (INBOX, Screen("/desk/leads.csv", "", "", export_csv, LEADS.name))
ACTIONS: Final = (Action("/desk/leads/mark/", INBOX, mark),)
