"""Threads: the leads of one person, with the answers to them, as the inbox shows them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from unicodedata import category

from edge_api.auth.erasure import fold_address
from edge_api.db.internal_tables import LEAD_MESSAGES
from edge_api.db.query import NEWEST, Filter, Order, Read, Store, Where, fold_accents, read_all
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.leads.service import MIN_INDEXED, LeadQuery, find_leads

MOST_COUNTED: Final = 1000
"""Leads that are read for a count, so that it costs the same at a million."""
PAGE_SIZE: Final = 50  # threads of a page
MOST_READ: Final = 5  # reads of a page, each of twice as many leads: one person may have many
MOST_LISTED: Final = 1000  # leads of the persons of a page
MOST_OF_PERSON: Final = 100  # leads of a thread that are shown
_BRIEF: Final = ("id", "email", "created_at", "status", "dedupe_hash", "remind_at")


def filter_of(box: str, now: datetime) -> Where:
    """Return the conditions of a box of the inbox: new, waiting, answered, all, or a status."""
    at = format_instant(now)
    is_due = (Filter("remind_at", "is", None), Filter("remind_at", "lte", at))
    boxes: Mapping[str, Where] = {
        "new": (Filter("status", "eq", "new"), Filter("id", "any", is_due)),
        "waiting": (Filter("remind_at", "gt", at),),
        "answered": (Filter("status", "eq", "contacted"),),
        "all": (Filter("status", "neq", "spam"),),
    }
    return boxes.get(box, (Filter("status", "eq", box),))


async def count_people(store: Store, now: datetime, *boxes: str) -> list[int]:
    """Return how many people have leads in each box, among the newest `MOST_COUNTED` leads of it.

    A number that reaches `MOST_COUNTED` is shown with a plus.
    """
    reads = (
        Read(LEADS, ("email",), filter_of(each, now), _order_of(each), MOST_COUNTED)
        for each in boxes
    )
    results = await store.run(*reads)
    return [len({row["email"].lower() for row in result.rows}) for result in results]


def _order_of(box: str) -> tuple[Order, ...]:
    return (Order("remind_at"),) if box == "waiting" else NEWEST


@dataclass(frozen=True, slots=True)
class Thread:
    """A row of the inbox: a person, and the lead of theirs that it opens."""

    lead: Row
    at: str
    """When the lead came, was answered by its sender, or is due again."""
    text: str
    """What was written last, as far as the row is about it."""
    number: int = 1
    """Messages, equal ones of the person counted once."""
    repeats: int = 1
    """How often the person sent this one."""

    @property
    def is_new(self) -> bool:
        """Whether it waits for an answer."""
        return bool(self.lead["status"] == "new")


async def list_threads(
    store: Store, now: datetime, query: LeadQuery, box: str, start: Row | None = None
) -> tuple[list[Thread], str]:
    """Return a page of a box, and the id of the lead that the next page starts behind, or none.

    Each person is listed once, at their first lead of the box in the order of the query; before all
    others come those who answered and those whose reminder is due. Raises Problem `unavailable`.
    """
    woken = await _find_woken(store, now) if box == "new" and not query.search else {}
    found, where = ({} if start else dict(woken)), filter_of(box, now)
    if box == "waiting":  # else an engine looks through all leads for the few
        few = Read(LEADS, ("id",), where, _order_of(box), MOST_LISTED)
        where = (Filter("id", "in", tuple(row["id"] for row in await read_all(store, few))),)
    way, last, more = ("gt" if query.oldest_first else "lt"), start, True
    for _ in range(MOST_READ):
        if not more:
            break
        beyond = (*where, *(_beyond(last, way) if last else ()))
        part = replace(query, statuses=(), beyond=beyond, limit=2 * PAGE_SIZE, offset=0)
        rows, more = await find_leads(store, part)
        is_listed = start and not query.search  # which would search all pages again
        brief = await _read_brief(store, rows) if is_listed else []
        listed = {
            person
            for person, lead in brief
            if start and _is_in(lead, box, now) and _is_before(lead, start, query)
        }
        listed |= woken.keys()
        for row in rows:
            person = fold_address(row["email"])
            if person not in found and person not in listed:
                if len(found) >= PAGE_SIZE:
                    return await _count(store, found), last["id"] if last else ""
                found[person] = Thread(row, row["created_at"], row["message"])
            last = row
    return await _count(store, found), last["id"] if last and more else ""


def _beyond(lead: Row, way: str) -> Where:
    """Return the conditions of the leads behind one."""
    at = lead["created_at"]
    either = Filter("created_at", way, at), Filter("id", way, lead["id"])
    return Filter("created_at", f"{way}e", at), Filter("id", "any", either)


def _is_before(lead: Row, start: Row, query: LeadQuery) -> bool:
    """Return whether a page before the one that starts behind `start` had a lead."""
    place, end = ((row["created_at"], row["id"]) for row in (lead, start))
    return bool(place <= end if query.oldest_first else place >= end)


def _is_in(lead: Row, box: str, now: datetime) -> bool:
    """Return whether a lead is in a box, as `filter_of` says."""
    waits = (lead["remind_at"] or "") > format_instant(now)
    special = {"waiting": waits, "all": lead["status"] != "spam"}
    return special.get(box, lead["status"] == box and not (box == "new" and waits))


async def _read_brief(store: Store, leads: Iterable[Row]) -> list[tuple[str, Row]]:
    """Return the newest leads of the people of some leads, with the address of each."""
    read = Read(LEADS, _BRIEF, (spelled("email", leads),), NEWEST, MOST_LISTED)
    return [(fold_address(row["email"]), row) for row in await read_all(store, read)]


async def _find_woken(store: Store, now: datetime) -> dict[str, Thread]:
    """Return the threads that are due again or were answered by their sender, newest first."""
    at, newest = format_instant(now), (Order("remind_at", descending=True),)
    is_due, is_reply = Filter("remind_at", "lte", at), Filter("kind", "eq", "received")
    due, replies = await store.run(
        Read(LEADS, (), (is_due,), newest, PAGE_SIZE),
        Read(LEAD_MESSAGES, (), (is_reply,), NEWEST, PAGE_SIZE),
    )
    ids = tuple({row["lead_id"] for row in replies.rows})
    answered = await read_all(store, Read(LEADS, (), (Filter("id", "in", ids),))) if ids else []
    leads = {row["id"]: row for row in answered}
    threads = [Thread(row, row["remind_at"], row["message"]) for row in due.rows]
    threads += [
        Thread(leads[row["lead_id"]], row["created_at"], row["body"])
        for row in replies.rows
        if row["lead_id"] in leads
    ]
    woken: dict[str, Thread] = {}
    for each in sorted(threads, key=lambda thread: thread.at, reverse=True):
        if each.is_new and (each.lead["remind_at"] or "") <= at:
            woken.setdefault(fold_address(each.lead["email"]), each)
    return woken


async def _count(store: Store, found: Mapping[str, Thread]) -> list[Thread]:
    """Return threads with the numbers of their messages."""
    by_person: dict[str, list[Row]] = {}
    for person, row in await _read_brief(store, [each.lead for each in found.values()]):
        by_person.setdefault(person, []).append(row)
    ids = tuple(row["id"] for own in by_person.values() for row in own)
    where = Filter("lead_id", "in", ids), Filter("kind", "neq", "draft")
    more = await read_all(store, Read(LEAD_MESSAGES, ("lead_id",), where, limit=MOST_LISTED))
    threads = []
    for person, thread in found.items():
        own = by_person.get(person, [thread.lead])
        own_ids, text = {row["id"] for row in own}, text_key(thread.lead)
        number = len({*map(text_key, own)}) + sum(row["lead_id"] in own_ids for row in more)
        repeats = sum(text_key(row) == text for row in own)
        threads.append(replace(thread, number=number, repeats=repeats))
    return threads


def text_key(lead: Row) -> str:
    """Return what equal texts of one person have in common."""
    return str(lead["dedupe_hash"] or lead["id"])


async def leads_of(store: Store, email: str) -> list[Row]:
    """Return the newest leads of an address, newest first, whatever the case of its letters."""
    by_index = Filter("id", "search", (fold_accents(email),))
    same = by_index if len(email) >= MIN_INDEXED else Filter("email", "eq", email)
    found = await read_all(store, Read(LEADS, (), (same,), NEWEST, MOST_OF_PERSON))
    person = fold_address(email)
    return [row for row in found if fold_address(row["email"]) == person]


def spelled(column: str, leads: Iterable[Row]) -> Filter:
    """Return the filter of a column for the addresses of leads, as typed or normalized."""
    typed = {row["email"] for row in leads}
    forms = {*typed, *map(str.lower, typed), *map(fold_address, typed)}
    return Filter(column, "in", tuple(forms))


_LINK: Final = re.compile(r"https?://(?:www\.)?([^\s/?#]{1,100})\S*", re.IGNORECASE)
_PATH: Final = re.compile(r" \(/\S{1,300}\):")
"""The path of a page that a message is about, behind its title."""
_BLANKS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters that have no ink
_MOST_WORDS: Final = 160  # characters


def name_of(lead: Row) -> str:
    """Return the name of a person; where it has no ink, the address before the @ sign."""
    name = str(lead["name"])
    has_ink = any(category(each)[0] in "LNPS" and each not in _BLANKS for each in name)
    return name if has_ink else str(lead["email"]).rpartition("@")[0]


def first_words(text: str) -> str:
    """Return the beginning of a text on one line, with links as their host."""
    start = _PATH.sub(":", text[: 10 * _MOST_WORDS], count=1)
    return " ".join(_LINK.sub(r"\1", start).split())[:_MOST_WORDS]
