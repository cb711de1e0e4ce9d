"""The desk's inbox, and the page of one lead."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from edge_api.admin.filters import CSV_TYPE, stream_csv
from edge_api.admin.privacy import export_person
from edge_api.auth.erasure import Privacy
from edge_api.backup.copies import list_copies
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Read,
    find_row,
    fold_accents,
    read_all,
)
from edge_api.db.sent import SentLead
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.screens import Action, Screen, Values, Visit, render, safe_target
from edge_api.desk.tables import fields, read_row, save_row
from edge_api.leads.service import MIN_INDEXED, LeadQuery, Leads, all_leads, find_leads
from edge_api.mail.suppressions import normalize_recipient
from edge_api.operation.input import FormErrors
from edge_api.operation.service import JSON, OperationResult

STATUSES: Final = LEADS.columns["status"].choices
PAGE_SIZE: Final = 50
LAST_PAGE: Final = {False: 100, True: 10}  # without, with a search: deeper ones take a second
INBOX_PATH: Final = "/desk/leads/"


def read_query(visit: Visit, limit: int) -> LeadQuery:
    """Return the inbox's query of the address. Raises Problem `invalid`."""
    chosen = tuple(text for name, text in visit.pairs if name == "status")
    if unknown := [each for each in chosen if each not in STATUSES]:
        raise Problem("invalid", f"There is no status {unknown[0]}: use {', '.join(STATUSES)}")
    page, search = visit.query.get("page", "1"), visit.query.get("q", "").strip()
    number = int(page[:6]) if page.isascii() and page.isdecimal() else 1
    return LeadQuery(
        search=search,
        statuses=chosen or tuple(each for each in STATUSES if each != "spam"),
        oldest_first=visit.query.get("order") == "oldest",
        limit=limit,
        offset=(min(max(1, number), LAST_PAGE[bool(search)]) - 1) * PAGE_SIZE,
    )


async def inbox(visit: Visit) -> Values:
    """Return a page of leads."""
    query = read_query(visit, PAGE_SIZE)
    found, has_more = await find_leads(visit.service.store, query)
    page = query.offset // PAGE_SIZE + 1
    back = (
        _spelled("recipient_email", found),
        Filter("status", "in", ("bounced", "complained", "dlq")),
    )
    failed, same = await visit.service.store.run(
        Read(EMAIL_SEND_LOG, ("id", "recipient_email"), back, limit=1000),
        Read(LEADS, ("id", "email"), (_spelled("email", found),), limit=1000),
    )
    may_see = visit.may_use(EMAIL_SEND_LOG.name)
    return {
        "leads": found,
        "normalize": normalize_recipient,
        "failed": {normalize_recipient(row["recipient_email"]) for row in failed.rows if may_see},
        "times": Counter(normalize_recipient(row["email"]) for row in same.rows),
        "statuses": STATUSES,
        "chosen": [text for name, text in visit.pairs if name == "status"],
        "q": query.search,
        "order": visit.query.get("order", "newest"),
        "page": page,
        "before": page - 1 if page > 1 else None,
        "after": page + 1 if has_more and page < LAST_PAGE[bool(query.search)] else None,
        "has_more": has_more,
        "picked": [row["id"] for row in found if "pick" in visit.query] or visit.chosen("id"),
    }


async def export_csv(visit: Visit) -> OperationResult:
    """Return all leads that the inbox's filters find, as CSV."""
    headers = {"Content-Disposition": 'attachment; filename="leads.csv"'}
    leads = all_leads(visit.service.store, read_query(visit, PAGE_SIZE))
    rows = stream_csv(LEADS.readable, leads)
    return OperationResult(rows, headers=headers, media_type=CSV_TYPE)


async def mark(visit: Visit) -> str:
    """Give leads another status: those that are ticked, or the one of the pressed button."""
    ids, status = visit.chosen("id"), visit.typed.get("status", "")
    if one := visit.typed.get("one"):
        lead_id, _, status = one.partition(" ")
        ids = (lead_id,)
    if not ids:
        raise FormErrors({"form": "Tick at least one lead, then press the button again."})
    if status not in STATUSES:
        raise FormErrors({"form": "Choose the status that the leads are to have."})
    await visit.service[Leads].mark(ids, status, visit.actor)
    return safe_target(visit.typed.get("back") or INBOX_PATH)


async def show_lead(visit: Visit) -> Values:
    """Return a lead with the mail to its address and its other leads."""
    row = await read_row(visit, LEADS, visit.path["key"])
    same = await _leads_of(visit, row["email"])
    to = (_spelled("recipient_email", [row, *same]),)
    store = visit.service.store
    log = await read_all(store, Read(EMAIL_SEND_LOG, (), to, NEWEST, 20))
    lines = row["message"][:1500].splitlines()
    return {
        "title": row["name"],
        "lead": row,
        "next_id": await _find_next(visit, row),
        "part": await find_row(store, LEADS, row["other_part"]),
        "mail": log if visit.may_use(EMAIL_SEND_LOG.name) else None,
        "others": [each for each in same if each["id"] != row["id"]][:20],
        "statuses": STATUSES,
        "sent": [*SentLead.model_fields],
        "fields": {column.name: text for column, text in fields(LEADS, row)},
        # Quoted as RFC 3676, section 4.5, says.
        "reply": "\r\n".join(["", "", f"{row['name']} wrote:", *(f"> {line}" for line in lines)]),
        "is_whole": visit.may_use(""),
    }


async def _leads_of(visit: Visit, email: str) -> Sequence[Row]:
    """Return the newest leads of an address, whatever the case of its letters."""
    by_index = Filter("id", "search", (fold_accents(email),))
    same = by_index if len(email) >= MIN_INDEXED else Filter("email", "eq", email)
    read, address = Read(LEADS, (), (same,), NEWEST, 100), normalize_recipient(email)
    found = await read_all(visit.service.store, read)
    return [row for row in found if normalize_recipient(row["email"]) == address]


def _spelled(column: str, leads: Iterable[Row]) -> Filter:
    """Return the filter of a column for the addresses of leads, as typed or normalized."""
    typed = {row["email"] for row in leads}
    return Filter(column, "in", (*typed, *map(str.lower, typed), *map(normalize_recipient, typed)))


async def _find_next(visit: Visit, row: Row) -> str | None:
    """Return the key of the lead that comes next in the inbox as the address filters it."""
    query = read_query(visit, 1)
    way, at = "gt" if query.oldest_first else "lt", row["created_at"]
    at_once = (Filter("created_at", "eq", at), Filter("id", way, row["id"]))
    for beyond in (at_once, (Filter("created_at", way, at),)):
        query = replace(query, beyond=beyond, offset=0)
        if found := (await find_leads(visit.service.store, query))[0]:
            return str(found[0]["id"])
    return None


async def save_lead(visit: Visit) -> str:
    """Save status and notes; the button of a status saves the typed notes too."""
    if one := visit.typed.get("one"):
        visit = replace(visit, form={**visit.form, "status": one})
    was, status = visit.typed.get("was.status"), visit.typed.get("status", "")
    row = await read_row(visit, LEADS, visit.path["key"])
    is_freed = row["status"] == was == "spam" and status in {*STATUSES} - {"spam"}
    if is_freed:  # the status comes last, so that undoing the last change hides it again
        visit = replace(visit, form={**visit.form, "status": "spam"})
    await save_row(visit, LEADS, visit.path["key"])
    if is_freed:
        await visit.service[Leads].mark((visit.path["key"],), status, visit.actor)
    return safe_target(visit.typed.get("back") or f"{INBOX_PATH}{visit.path['key']}/")


async def export(visit: Visit) -> OperationResult:
    """Return all that is kept of the person who sent a lead, as JSON."""
    row = await read_row(visit, LEADS, visit.path["key"])
    service = visit.service
    found = await Privacy(service.store, service.clock).find(row["email"])
    headers = {"Content-Disposition": 'attachment; filename="person.json"'}
    body = export_person(row["email"], found, format_instant(service.clock()))
    return OperationResult(body, headers=headers, media_type=JSON)


async def erase(visit: Visit) -> OperationResult:
    """Erase all that is kept of the person who sent a lead; return what is left elsewhere."""
    row = await read_row(visit, LEADS, visit.path["key"])
    if visit.typed.get("sure") != "yes":
        raise FormErrors({"sure": "Tick this first: erasing cannot be undone."})
    service = visit.service
    found = await Privacy(service.store, service.clock).erase(row["email"], visit.actor)
    await service.store.scrub()
    copies = await list_copies(service.store, service.settings, service.clock())
    return await render(service, "erased", "Erased", found=found, copies=copies, back=INBOX_PATH)


INBOX: Final = Screen(INBOX_PATH, "Inbox", "inbox", inbox, LEADS.name, nav="Inbox")
LEAD: Final = Screen("/desk/leads/{key}/", "A lead", "lead", show_lead, LEADS.name)
SCREENS: Final = (
    INBOX,
    LEAD,
    Screen("/desk/leads.csv", "", "", export_csv, LEADS.name),
    Screen("/desk/leads/{key}/person.json", "", "", export, needs_fresh_sign_in=True),
)
ACTIONS: Final = (
    Action("/desk/leads/mark/", INBOX, mark),
    Action(LEAD.path, LEAD, save_lead),
    Action(
        "/desk/leads/{key}/erase/",
        replace(LEAD, table=""),  # a person is in many tables: only for who reaches all
        erase,
        needs_fresh_sign_in=True,
    ),
)
