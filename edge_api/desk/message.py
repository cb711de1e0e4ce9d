"""The page of one message: its thread, the answer, and what is known of the person."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from operator import itemgetter
from typing import Any, Final

from markupsafe import Markup

from edge_api.admin.privacy import export_person
from edge_api.auth.erasure import Privacy, fold_address
from edge_api.backup.copies import list_unerased_copies
from edge_api.db.internal_tables import FORMER_ROWS
from edge_api.db.query import NEWEST, Filter, Read, read_all, read_first, where_id
from edge_api.db.table import Row
from edge_api.db.tables import AUDIT_LOG, EMAIL_SEND_LOG, LEADS, SUPPRESSED_EMAILS
from edge_api.db.types import format_instant
from edge_api.db.visitor_columns import SentLead
from edge_api.desk.audit_sentences import describe
from edge_api.desk.leads import (
    BOXES,
    INBOX,
    STATUSES,
    UNDELIVERED,
    find_seen_leads,
    format_count,
    mark_threads,
    read_box,
    read_query,
    read_seen,
)
from edge_api.desk.rendering import with_parameters
from edge_api.desk.screens import Action, Screen, Values, Visit, render
from edge_api.desk.settings import list_replies
from edge_api.desk.tables import form_fields, read_row, save_row
from edge_api.leads.service import Leads
from edge_api.leads.threads import (
    address_filter,
    first_words,
    leads_of,
    list_threads,
    name_of,
    text_key,
)
from edge_api.mail.answers import Answers
from edge_api.mail.suppressions import read_suppression
from edge_api.operation.input import FormErrors
from edge_api.operation.model import JSON, OperationResult

MOST_OPEN: Final = 5  # messages of a thread that are not folded away
BUTTON_STATUSES: Final = ("contacted", "spam", "new")
"""Statuses that a button of their own sets; it then leads to the next message."""


async def show_message(visit: Visit) -> Values:
    """Return a message with its thread, its place in the box, and the mail to its address."""
    row, service = await read_row(visit, LEADS, visit.path["key"]), visit.service
    store, answers = service.store, service[Answers]
    leads = await leads_of(store, row["email"])
    leads += [] if row["id"] in {each["id"] for each in leads} else [row]
    messages = await answers.list_messages([each["id"] for each in leads])
    drafts = [each for each in messages if each["kind"] == "draft" and each["lead_id"] == row["id"]]
    may_see = visit.actor.may_use(EMAIL_SEND_LOG.name)
    read = Read(EMAIL_SEND_LOG, (), (address_filter("recipient_email", leads),), NEWEST, 20)
    log = await read_all(store, read) if may_see else []
    may_suppress = visit.actor.may_use(SUPPRESSED_EMAILS.name)
    # Build the thread, oldest first. Of equal messages of the person, keep only the last.
    times = Counter(map(text_key, leads))
    last = {text_key(lead): lead for lead in reversed(leads)}
    items: list[dict[str, Any]] = [
        {"lead": lead, "at": lead["created_at"], "times": times[key]} for key, lead in last.items()
    ]
    items += [
        {"message": each, "at": each["created_at"]} for each in messages if each not in drafts
    ]
    items.sort(key=itemgetter("at"))
    place, former, following = await find_neighbours(visit, row)
    quoted = [f"> {line}" for line in row["message"][:1500].splitlines()]
    return {
        "title": name_of(row),
        "lead": row,
        "name": name_of(row),
        "name_of": name_of,
        "box_label": "Inbox" if read_box(visit) == "new" else BOXES[read_box(visit)],
        "query": split_query(with_parameters(visit.here)),
        "place": place,
        "former": former,
        "following": following,
        "folded": items[:-MOST_OPEN],
        "items": items[-MOST_OPEN:],
        "there": {each["id"]: each["created_at"] for each in leads},
        "first_at": min(each["created_at"] for each in leads),
        "number": len(items),
        "failed": {each["message_id"]: each for each in log if each["status"] in UNDELIVERED},
        "mail": log if may_see else None,
        "draft": drafts[-1] if drafts else None,
        "subject": await answers.default_subject(row),
        "problem": await answers.unmailable_reason(row["email"]),
        "replies": list_replies(service.settings),
        "reminders": {key: label for key, (label, _) in reminders(visit.now).items()},
        "statuses": [each for each in STATUSES if each != "spam"],
        "sent_columns": [*SentLead.model_fields],
        "notes": {column.name: text for column, text in form_fields(LEADS, row)}["notes"],
        # Quoted as RFC 3676, section 4.5, says.
        "quote": "\r\n".join(["", "", f"{row['name']} wrote:", *quoted]),
        "suppression": may_suppress and await read_first(store, read_suppression(row["email"])),
        "may_suppress": may_suppress,
        "is_whole": visit.actor.may_use(""),
        "seen": format_instant(service.clock()),
    }


async def find_neighbours(visit: Visit, row: Row) -> tuple[str, str, str]:
    """Return the position of a message in its box, and the addresses of its neighbours.

    An address is empty where there is no neighbour. A message that has left the box has only a
    next one.
    """
    query, now = read_query(visit), visit.service.clock()
    threads, _ = await list_threads(visit.service.store, now, query, read_box(visit))
    people = [each.person for each in threads]
    place, before = "", threads[:0]
    after = [
        each
        for each in threads
        if (each.lead["created_at"] > row["created_at"]) == query.oldest_first
    ]
    if (person := fold_address(row["email"])) in people:
        at = people.index(person)
        place = f"{at + 1} of {format_count(len(people))}"
        before, after = threads[:at], threads[at + 1 :]
    kept = split_query(with_parameters(visit.here))
    former, following = (
        "".join(f"{INBOX.path}{each.lead['id']}/{kept}" for each in nearest)
        for nearest in (before[-1:], after[:1])
    )
    return place, former, following


def split_query(address: str) -> str:
    """Return the query string of an address with its question mark, or an empty string."""
    return "".join(address.partition("?")[1:])


def reminders(now: datetime) -> Mapping[str, tuple[str, datetime]]:
    """Return the labels and times of the reminders that the owner can choose from.

    `now` is in the time zone of the journal.
    """

    def at(days: int, hour: int) -> datetime:
        return datetime.combine(now.date() + timedelta(days), time(hour), now.tzinfo)

    evening, friday = at(0, 18), (4 - now.weekday()) % 7 or 7
    return {
        "evening": ("This evening, 18:00", evening)
        if now < evening
        else ("Tomorrow, 18:00", at(1, 18)),
        "tomorrow": ("Tomorrow, 8:00", at(1, 8)),
        "friday": (f"Friday, {at(friday, 8):%-d %b}, 8:00", at(friday, 8)),
        "week": (f"In a week, {at(7, 8):%-d %b}, 8:00", at(7, 8)),
    }


async def act(visit: Visit) -> str:
    """Store what was typed, run the pressed button's action, and return the next address."""
    row, answers = await read_row(visit, LEADS, visit.path["key"]), visit.service[Answers]
    button, text = visit.typed.get("do", ""), visit.typed.get("text", "")
    subject = visit.typed.get("subject", "")
    if button == "insert":
        text = "\n\n".join(filter(None, (text.rstrip(), visit.typed.get("reply", ""))))
    notes: dict[str, str | list[str]]
    notes = {name: visit.typed[name] for name in ("notes", "was.notes") if name in visit.typed}
    await save_row(replace(visit, form=notes), LEADS, row["id"])
    if "text" in visit.typed:  # every button saves the draft; an empty text deletes it
        drafts = [
            each for each in await answers.list_messages([row["id"]]) if each["kind"] == "draft"
        ]
        stored, shown = drafts[-1]["body"] if drafts else "", visit.typed.get("was.text", "")
        # Mail keeps no blanks at line ends. A draft that was sent or emptied is not overwritten.
        if stored and stored.split() not in (shown.split(), text.split()):
            raise FormErrors(
                {
                    "text": f"Meanwhile this was changed to: {stored}. "
                    "What you typed is kept here; save again to replace it."
                },
                "conflict",
            )
        if text.strip() or drafts:
            await answers.save_draft(row, text, subject if text.strip() else "")
    was = visit.typed.get("was.status", row["status"])
    if (status := visit.typed.get("status", was)) not in (was, row["status"]):
        if row["status"] != was:
            raise FormErrors(
                {"status": f"Meanwhile this was changed to: {row['status']}."}, "conflict"
            )
        await visit.service[Leads].mark((row["id"],), status, visit.actor)
    if button not in (*BUTTON_STATUSES, "send", "remind"):
        return visit.here
    _, _, following = await find_neighbours(visit, row)
    ahead = following or f"{INBOX.path}{split_query(with_parameters(visit.here))}"
    wanted: tuple[str, str | None] = button, None
    if button == "remind":
        chosen = reminders(visit.now).get(visit.typed.get("remind", ""))
        if chosen is None:
            raise FormErrors({"remind": "Choose when this is to come back."})
        wanted = "new", format_instant(chosen[1])
    if wanted != (row["status"], row["remind_at"]):  # else the button was pressed twice
        await refuse_unseen(visit, row)
    if button == "send":
        others, seen = await find_seen_leads(visit, (row["id"],), "contacted"), read_seen(visit)
        message = await answers.send(row, text, subject, visit.actor, others, seen=seen)
        return with_parameters(ahead, sent=message["id"])
    await mark_threads(visit, (row["id"],), *wanted)
    return ahead


async def refuse_unseen(visit: Visit, row: Row) -> None:
    """Raise FormErrors if a message was answered or marked after its page was shown."""
    store, seen = visit.service.store, read_seen(visit)
    ids = [row["id"], *(each["id"] for each in await leads_of(store, row["email"]))]
    sent = [
        each
        for each in await visit.service[Answers].list_messages(ids)
        if each["kind"] == "sent" and each["created_at"] > seen
    ]
    since = (
        Filter("table_name", "eq", LEADS.name),
        Filter("row_id", "eq", row["id"]),
        Filter("created_at", "gt", seen),
    )
    changes = [
        each
        for each in await read_all(store, Read(FORMER_ROWS, (), since, NEWEST))
        if each["former"] and each["changed"]  # else it was deleted and restored
        if any(each["former"][name] != each["changed"][name] for name in ("status", "remind_at"))
    ]
    is_again = sent and sent[-1]["body"].split() == visit.typed.get("text", "").split()
    if (sent or changes) and not is_again:
        last = sent[-1] if sent else changes[0]
        entries = await read_all(store, Read(AUDIT_LOG, where=where_id(last["audit_id"])))
        said = Markup(" ").join(
            Markup("{sentence} meanwhile, by {by}").format(**each)
            for each in await describe(store, entries, visit.actor)
        )
        answer = f": “{first_words(sent[-1]['body'])}”" if sent else ""
        raise FormErrors(
            {
                "form": said
                + answer
                + ". What you typed is kept here; press the button again if you still want that."
            },
            "conflict",
        )


async def take_back(visit: Visit) -> str:
    """Turn an answer that is not sent yet back into a draft, and show it."""
    draft = await visit.service[Answers].take_back(visit.path["key"], visit.actor)
    return f"{INBOX.path}{draft['lead_id']}/"


async def export(visit: Visit) -> OperationResult:
    """Return all that is kept of the person who sent a lead, as JSON."""
    row = await read_row(visit, LEADS, visit.path["key"])
    service = visit.service
    found = await service[Privacy].find(row["email"])
    return OperationResult(
        export_person(row["email"], found, format_instant(service.clock())),
        headers={"Content-Disposition": 'attachment; filename="person.json"'},
        media_type=JSON,
    )


async def erase(visit: Visit) -> OperationResult:
    """Erase all that is kept of the person who sent a lead; list the copies that remain."""
    row = await read_row(visit, LEADS, visit.path["key"])
    if visit.typed.get("sure") != "yes":
        raise FormErrors({"sure": "Tick this first: erasing cannot be undone."})
    service = visit.service
    found = await service[Privacy].erase(row["email"], visit.actor)
    await service.store.scrub()
    copies = await list_unerased_copies(service.store, service.settings, service.clock())
    return await render(service, "erased", "Erased", found=found, copies=copies, back=INBOX.path)


LEAD: Final = Screen(
    "/desk/leads/{key}/", "A message", "lead", show_message, LEADS.name, section="Inbox"
)
SCREENS: Final = (
    LEAD,
    Screen("/desk/leads/{key}/person.json", "", "", export, needs_fresh_sign_in=True),
)
ACTIONS: Final = (
    Action(LEAD.path, LEAD, act),
    Action("/desk/leads/answers/{key}/undo/", INBOX, take_back),
    Action(
        "/desk/leads/{key}/erase/",
        replace(LEAD, table=""),  # a person is in many tables: it needs a sign-in for all
        erase,
        needs_fresh_sign_in=True,
    ),
)
