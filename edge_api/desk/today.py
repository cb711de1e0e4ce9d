"""Today, the desk's first page: what waits for its owner, and how many messages came a day."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from weakref import WeakKeyDictionary

from edge_api.access.service import count_pending
from edge_api.auth.keys import Keys
from edge_api.db.internal_tables import EMAIL_OUTBOX, LEAD_MESSAGES, WEBHOOK_DELIVERIES
from edge_api.db.query import Filter, Order, Read, Store, read_all, read_first
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.frame import lasted, since
from edge_api.desk.screens import Screen, Values, Visit
from edge_api.health import Health, PublishingMonitor
from edge_api.leads.threads import MOST_COUNTED, count_people, filter_of
from edge_api.outbox import GIVEN_UP, WAITING
from edge_api.schema.paths import DESK

DAYS: Final = 30  # days of the chart
_INBOX: Final = f"{DESK}leads/"
_SAID: Final = ("mail was given up", "events for webhooks were given up")
"""Faults that are among what waits, with a link."""
Waits = list[tuple[str, str]]
"""Sentences, each with the address of the screen that shows more."""


async def today(visit: Visit) -> Values:
    """Return what waits, what does not work, and how many messages came on each day."""
    store, now = visit.service.store, visit.now
    waits: Waits = []
    values: dict[str, object] = {"rest": "", "is_first": False, "warning": "", "days": []}
    if visit.may_use(LEADS.name):
        waits += await _list_people(store, now)
        days = await _count_days(store, now)
        values |= {"days": days, "top": max(count for _, count in days), "most": MOST_COUNTED}
        if not any(path == f"{_INBOX}?status=new" for _, path in waits):
            values |= await read_rest(store, now)
    if visit.may_use(""):
        waits += await _list_requests(store, now)
        _, _, values["warning"] = await Keys(store, visit.service.clock).find_open()
    if visit.may_use(EMAIL_SEND_LOG.name):
        dead = await read_all(store, Read(EMAIL_OUTBOX, ("id",), (GIVEN_UP,), limit=MOST_COUNTED))
        waits += _count(
            len(dead), "message could not be sent", "messages could not be sent", "mail/"
        )
    report = await visit.service[Health].report()
    errors = (each["error"] for each in report["checks"].values() if "error" in each)
    faults = [part for each in errors for part in each.split("; ") if not part.startswith(_SAID)]
    faults += visit.service[PublishingMonitor].held if visit.may_use("") else []
    return {**values, "waits": waits, "faults": faults}


def _count(number: int, one: str, several: str, path: str) -> Waits:
    """Return a sentence with a number, if there is any; one that was cut has a plus."""
    plus = "+" if number >= MOST_COUNTED else ""
    said = f"{number:,}{plus} {one if number == 1 else several}"
    return [(said, f"{DESK}{path}")] if number else []


async def _list_people(store: Store, now: datetime) -> Waits:
    """Return the sentences of the inbox: who waits, reminders, spam."""
    people, spam = await count_people(store, now, "new", "spam")
    not_spam = Filter("status", "neq", "spam")
    due = Filter("remind_at", "lte", format_instant(now)), not_spam
    reminders = await read_all(store, Read(LEADS, ("id",), due, limit=MOST_COUNTED))
    waits = _count(people, "person waits", "people wait", "leads/?status=new")
    if people:
        (said, path), long = waits[0], lasted(await _find_oldest(store, now), now)
        waits = [(f"{said} for an answer; the oldest message has waited {long}", path)]
    return [
        *waits,
        *_count(len(reminders), "reminder is due", "reminders are due", "leads/?status=new"),
        *_count(spam, "in spam", "in spam", "leads/?status=spam"),
    ]


async def _find_oldest(store: Store, now: datetime) -> str:
    """Return since when the one who has waited longest does: since the last message of several.

    It is looked for among the leads that came first: somebody who wrote again waits since then.
    """
    first = Read(LEADS, ("id", "created_at"), filter_of("new", now), (Order("created_at"),), 50)
    waiting = {row["id"]: row["created_at"] for row in await read_all(store, first)}
    came = Filter("kind", "eq", "received"), Filter("lead_id", "in", tuple(waiting))
    again = Read(LEAD_MESSAGES, ("lead_id", "created_at"), came, (Order("created_at"),))
    waiting |= {row["lead_id"]: row["created_at"] for row in await read_all(store, again)}
    return min(waiting.values(), default=format_instant(now))


async def read_rest(store: Store, now: datetime) -> Values:
    """Return what is said where nobody waits."""
    if await read_first(store, Read(LEADS, ("id",), limit=1)) is None:
        return {"rest": "Nobody has written yet. Your form is at", "is_first": True}
    month = format_instant(datetime.combine(now.replace(day=1), time(), now.tzinfo))
    where = Filter("status", "eq", "contacted"), Filter("created_at", "gte", month)
    found = await read_all(store, Read(LEADS, ("email",), where, limit=MOST_COUNTED))
    number = len({row["email"].lower() for row in found})
    return {"rest": f"All answered. {number:,} this month." if number else "All answered."}


async def _list_requests(store: Store, now: datetime) -> Waits:
    """Return the sentences of requests for access, and of webhooks that fail."""
    pending = await count_pending(store, now)
    later = (WAITING, Filter("attempts", "gt", 0), Filter("due_at", "gt", format_instant(now)))
    reads = (
        Read(WEBHOOK_DELIVERIES, ("created_at",), where, (Order(column),), limit=1)
        for where, column in (((GIVEN_UP,), "dead_at"), (later, "due_at"))
    )
    failing = [row["created_at"] for result in await store.run(*reads) for row in result.rows]
    said = f"A webhook fails since {since(min(failing), now)}" if failing else ""
    return [
        *_count(pending, "request for access", "requests for access", "access/"),
        *([(said, f"{DESK}webhooks/")] if said else []),
    ]


@dataclass(slots=True)
class _Counts:
    """The messages of the days before one day, of which each was counted once."""

    day: date
    past: dict[date, int] = field(default_factory=dict)


_counts: Final[WeakKeyDictionary[Store, _Counts]] = WeakKeyDictionary()


async def _count_days(store: Store, now: datetime) -> Sequence[tuple[str, int]]:
    """Return the days of the chart with the number of messages of each, at most `MOST_COUNTED`.

    Past days are counted at the first look of a day and kept in memory, today at each look.
    """
    today = now.date()
    if (known := _counts.get(store)) is None or known.day != today:
        known = _counts[store] = _Counts(today)
    days = [today - timedelta(days=number) for number in range(DAYS - 1, -1, -1)]
    missing = [day for day in days if day not in known.past]
    starts = [(_start(day, now), _start(day + timedelta(days=1), now)) for day in missing]
    results = await store.run(*(_read_day(*each) for each in starts))
    counts = {day: len(result.rows) for day, result in zip(missing, results, strict=True)}
    known.past |= {day: count for day, count in counts.items() if day != today}
    return [(f"{day:%-d %b}", {**known.past, **counts}[day]) for day in days]


def _start(day: date, now: datetime) -> str:
    return format_instant(datetime.combine(day, time(), now.tzinfo).astimezone(UTC))


def _read_day(start: str, end: str) -> Read:
    where = Filter("created_at", "gte", start), Filter("created_at", "lt", end)
    return Read(LEADS, ("id",), where, limit=MOST_COUNTED)


TODAY: Final = Screen(DESK, "Today", "today", today, nav="Today", is_open=True)
SCREENS: Final = (TODAY,)
ACTIONS: Final = ()
