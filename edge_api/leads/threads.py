"""Threads: the leads of one person, with the answers to them, as the inbox shows them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Final
from unicodedata import category

from edge_api.auth.erasure import fold_address
from edge_api.db.query import NEWEST, Filter, Order, Read, Store, Where, read_all
from edge_api.db.table import Row
from edge_api.db.tables import LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.leads.service import LeadQuery, find_leads

MAX_COUNTED_LEADS: Final = 1000
"""The most leads of a box that are counted or listed, which bounds the time for large boxes."""
MAX_FOUND_LEADS: Final = 200  # the most leads that a search lists, since it reads them whole
PAGE_SIZE: Final = 50  # threads on a page
MAX_THREAD_LEADS: Final = 100  # of one person
_LIST_COLUMNS: Final = ("id", "email", "created_at", "status", "dedupe_hash", "remind_at")


def box_conditions(box: str, now: datetime) -> Where:
    """Return the conditions of a box of the inbox: new, waiting, all, or any other status."""
    at = format_instant(now)
    is_due = (Filter("remind_at", "is", None), Filter("remind_at", "lte", at))
    boxes: Mapping[str, Where] = {
        "new": (Filter("status", "eq", "new"), Filter("id", "any", is_due)),
        "waiting": (Filter("remind_at", "gt", at),),
        "all": (Filter("status", "neq", "spam"),),
    }
    return boxes.get(box, (Filter("status", "eq", box),))


async def count_people(store: Store, now: datetime, *boxes: str) -> list[int]:
    """Return how many people have leads in each box.

    The number is `MAX_COUNTED_LEADS`, shown with a plus, if a box has as many leads or more.
    """
    reads = (replace(_read_box(each, now), columns=("email",)) for each in boxes)
    found = [[row["email"].lower() for row in each.rows] for each in await store.run(*reads)]
    return [len({*each} if len(each) < MAX_COUNTED_LEADS else each) for each in found]


def _read_box(box: str, now: datetime, *, is_oldest: bool = False) -> Read:
    """Return the query for the first leads of a box; those that wait are ordered by reminder."""
    by_time = (Order("created_at", descending=not is_oldest),)
    order = (Order("remind_at"),) if box == "waiting" else by_time
    return Read(LEADS, _LIST_COLUMNS, box_conditions(box, now), order, MAX_COUNTED_LEADS)


@dataclass(frozen=True, slots=True)
class Thread:
    """A row of the inbox: a person, and the lead that it opens."""

    lead: Row
    at: str
    """The time at which the lead came, its sender replied, or its reminder is due."""
    text: str = ""
    """The reply that brought the lead back into New, or else the lead's message."""
    number: int = 1
    """The number of messages in the thread; equal leads count once."""
    repeats: int = 1
    """The number of times that the person sent the message of `lead`."""

    @property
    def person(self) -> str:
        """The address in its canonical form."""
        return fold_address(self.lead["email"])


async def list_threads(
    store: Store, now: datetime, query: LeadQuery, box: str
) -> tuple[list[Thread], bool]:
    """Return the threads of a box, with only `_LIST_COLUMNS`, and whether more may follow.

    Each person is listed once, at their first lead. In New, people who replied or whose reminder is
    due come first. Raises Problem `unavailable`.
    """
    threads: dict[str, Thread] = {}
    for each in (
        await _find_due_and_replied(store, now) if box == "new" and not query.search else ()
    ):
        threads.setdefault(each.person, each)
    read = _read_box(box, now, is_oldest=query.oldest_first)
    if query.search:
        where = read.where
        if box == "waiting":  # else an engine would read all leads to find these few
            ids = tuple(row["id"] for row in await read_all(store, read))
            where = (Filter("id", "in", ids),)
        found = await find_leads(store, replace(query, where=where, limit=MAX_FOUND_LEADS + 1))
        leads, is_cut = found[:MAX_FOUND_LEADS], len(found) > MAX_FOUND_LEADS
    else:
        leads = await read_all(store, read)
        is_cut = len(leads) == MAX_COUNTED_LEADS
    for row in leads:
        threads.setdefault(fold_address(row["email"]), Thread(row, row["created_at"]))
    return list(threads.values()), is_cut


async def _find_due_and_replied(store: Store, now: datetime) -> list[Thread]:
    """Return the threads whose reminder is due or whose sender replied, newest first."""
    at, newest = format_instant(now), (Order("remind_at", descending=True),)
    is_due, is_reply = Filter("remind_at", "lte", at), Filter("kind", "eq", "received")
    due, replies = await store.run(
        Read(LEADS, _LIST_COLUMNS, (is_due,), newest, PAGE_SIZE),
        Read(LEAD_MESSAGES, (), (is_reply,), NEWEST, PAGE_SIZE),
    )
    of_replies = (Filter("id", "in", tuple({row["lead_id"] for row in replies.rows})),)
    leads = {
        row["id"]: row for row in await read_all(store, Read(LEADS, _LIST_COLUMNS, of_replies))
    }
    woken = [Thread(row, row["remind_at"]) for row in due.rows]
    woken += [
        Thread(leads[row["lead_id"]], row["created_at"], row["body"])
        for row in replies.rows
        if row["lead_id"] in leads
    ]
    return [
        each
        for each in sorted(woken, key=lambda each: each.at, reverse=True)
        if each.lead["status"] == "new" and (each.lead["remind_at"] or "") <= at
    ]


async def complete_threads(store: Store, threads: Sequence[Thread]) -> list[Thread]:
    """Return the threads with all columns of their leads, and with the numbers of messages."""
    ids = tuple(each.lead["id"] for each in threads)
    of_people = (address_filter("email", [each.lead for each in threads]),)
    whole, brief = await store.run(
        Read(LEADS, (), (Filter("id", "in", ids),)),
        Read(LEADS, _LIST_COLUMNS, of_people, NEWEST, MAX_COUNTED_LEADS),
    )
    own: dict[str, list[Row]] = {}
    for row in brief.rows:
        own.setdefault(fold_address(row["email"]), []).append(row)
    of_leads = Filter("lead_id", "in", tuple(row["id"] for row in brief.rows))
    sent = Read(LEAD_MESSAGES, ("lead_id",), (of_leads, Filter("kind", "neq", "draft")), limit=1000)
    mails = Counter(row["lead_id"] for row in await read_all(store, sent))
    leads = {row["id"]: row for row in whole.rows}
    filled = []
    for each in threads:
        if lead := leads.get(each.lead["id"]):  # else it was erased meanwhile
            texts = Counter(text_key(row) for row in own.get(each.person, [lead]))
            number = len(texts) + sum(mails[row["id"]] for row in own.get(each.person, ()))
            text, repeats = each.text or lead["message"], texts[text_key(lead)]
            filled.append(replace(each, lead=lead, text=text, number=number, repeats=repeats))
    return filled


def text_key(lead: Row) -> str:
    """Return the key by which equal messages of one person are merged."""
    return str(lead["dedupe_hash"] or lead["id"])


async def leads_of(store: Store, email: str, limit: int = MAX_THREAD_LEADS) -> list[Row]:
    """Return the newest leads of an address, newest first, in each usual case of its letters."""
    local, _, domain = fold_address(email).rpartition("@")
    # Each part as people write it: in lower case, in upper case, or capitalized.
    parts = [
        {each.lower(), each.upper(), each.capitalize(), each.title()}
        for each in (local, *domain.split(".", 2))
    ]
    forms = {f"{first}@{'.'.join(labels)}" for first, *labels in product(*parts)}
    where = (Filter("email", "in", tuple({email, *forms})),)
    return await read_all(store, Read(LEADS, (), where, NEWEST, limit))


def address_filter(column: str, leads: Iterable[Row]) -> Filter:
    """Return a filter that finds the addresses of leads in a column, as typed or normalized."""
    typed = {row["email"] for row in leads}
    forms = {*typed, *map(str.lower, typed), *map(fold_address, typed)}
    return Filter(column, "in", tuple(forms))


_INVISIBLE_LETTERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_MAX_EXCERPT: Final = 160  # characters


def name_of(lead: Row) -> str:
    """Return the name of a person; if it is invisible, the address before the @ sign."""
    name = str(lead["name"])
    is_visible = any(
        category(each)[0] in "LNPS" and each not in _INVISIBLE_LETTERS for each in name
    )
    return name if is_visible else str(lead["email"]).rpartition("@")[0]


def first_words(text: str) -> str:
    """Return the start of a text on one line, without quoted lines, links replaced by hosts."""
    # Drop the path of the page that a message is about; it follows the page's title.
    start = re.sub(r" \(/\S{1,300}\):", ":", text[: 10 * _MAX_EXCERPT], count=1)
    start = re.sub(r"(?m)^>.*$", "", start).strip() or start
    bare = re.sub(r"(?i)https?://(?:www\.)?([^\s/?#]{1,100})\S*", r"\1", start)
    return " ".join(bare.split())[:_MAX_EXCERPT]
