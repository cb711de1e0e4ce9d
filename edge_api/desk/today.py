"""Today, the desk's first page: what waits for its owner, and how many messages came a day."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Any, Final
from weakref import WeakKeyDictionary

from edge_api.access.service import count_pending
from edge_api.auth.keys import Keys
from edge_api.db.internal_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.db.message_tables import LEAD_MESSAGES
from edge_api.db.query import NEWEST, Filter, Order, Read, Store, read_all
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.screens import Screen, Values, Visit
from edge_api.health import Health, PublishingMonitor
from edge_api.leads.threads import MOST_COUNTED, count_people, filter_of
from edge_api.outbox import GIVEN_UP, WAITING
from edge_api.schema.paths import DESK

DAYS: Final = 30  # days of the chart
# Each read with a limit has the order of an index: in another, all that match are sorted first.
_DEAD_FIRST: Final = (Order("dead_at", nulls_first=True),)
_SAID: Final = ("mail was given up", "events for webhooks were given up")
"""Faults in readiness that Today shows as entries of its own, with a link."""


async def today(visit: Visit) -> Values:
    """Return what waits, what does not work, and how many messages came on each day."""
    values: dict[str, Any] = {"most": MOST_COUNTED}
    service = visit.service
    if visit.actor.may_use(LEADS.name):
        values |= await read_people(service.store, visit.now)
        values["days"] = await _count_days(service.store, visit.now)
    if visit.actor.may_use(""):
        values["pending"] = await count_pending(service.store, service.clock())
        values["failing"] = await _find_failing(service.store, service.clock())
        _, _, values["warning"] = await Keys(service.store, service.clock).find_open()
    if visit.actor.may_use(EMAIL_SEND_LOG.name):
        dead = Read(EMAIL_OUTBOX, ("id",), (GIVEN_UP,), _DEAD_FIRST, MOST_COUNTED)
        values["dead"] = len(await read_all(service.store, dead))
    checks = (await service[Health].report())["checks"].values()
    errors = (each["error"] for each in checks if "error" in each)
    faults = [part for each in errors for part in each.split("; ") if not part.startswith(_SAID)]
    faults += service[PublishingMonitor].held if visit.actor.may_use("") else []
    return {**values, "faults": faults}


async def read_people(store: Store, now: datetime) -> Values:
    """Return who waits and since when, reminders that are due, and who was answered this month.

    Who replied by mail waits since the reply; replies to the 50 oldest leads are looked at.
    """
    at, month = format_instant(now), datetime.combine(now.replace(day=1), time(), now.tzinfo)
    due = Filter("remind_at", "lte", at), Filter("status", "neq", "spam")
    this_month = Filter("created_at", "gte", format_instant(month))
    done, reminders, known, first = await store.run(
        Read(
            LEADS,
            ("email",),
            (Filter("status", "eq", "contacted"), this_month),
            NEWEST,
            MOST_COUNTED,
        ),
        Read(LEADS, ("id",), due, (Order("remind_at", descending=True),), MOST_COUNTED),
        Read(LEADS, ("id",), limit=1),
        Read(LEADS, ("id", "created_at"), filter_of("new", now), (Order("created_at"),), 50),
    )
    waiting = {row["id"]: row["created_at"] for row in first.rows}
    came = Filter("kind", "eq", "received"), Filter("lead_id", "in", tuple(waiting))
    again = await read_all(store, Read(LEAD_MESSAGES, (), came, (Order("created_at"),)))
    waiting |= {row["lead_id"]: row["created_at"] for row in again}
    people, spam = await count_people(store, now, "new", "spam")
    return {
        "people": people,
        "spam": spam,
        "waited": now - datetime.fromisoformat(min(waiting.values(), default=at)),
        "reminders": len(reminders.rows),
        "answered_this_month": len({row["email"].lower() for row in done.rows}),
        "is_first": not known.rows,
    }


async def _find_failing(store: Store, now: datetime) -> str:
    """Return since when an event for a webhook waits without effect; empty where none does."""
    later = (WAITING, Filter("attempts", "gt", 0), Filter("due_at", "gt", format_instant(now)))
    results = await store.run(
        Read(WEBHOOK_DELIVERIES, ("created_at",), (GIVEN_UP,), _DEAD_FIRST, 1),
        Read(WEBHOOK_DELIVERIES, ("created_at",), later, (Order("due_at"),), 1),
    )
    return min((row["created_at"] for each in results for row in each.rows), default="")


_past: Final[WeakKeyDictionary[Store, tuple[datetime, Sequence[int]]]] = WeakKeyDictionary()
"""By store the beginning of a day, and the numbers of the days before it."""


async def _count_days(store: Store, now: datetime) -> Sequence[tuple[str, int]]:
    """Return the days of the chart with the number of messages of each, at most `MOST_COUNTED`.

    Past days are counted at the first look of a day and kept in memory, today at each look.
    """
    midnight = datetime.combine(now, time(), now.tzinfo)
    starts = [midnight - timedelta(days=number) for number in range(DAYS - 1, -2, -1)]
    reads = [
        Read(
            LEADS,
            ("id",),
            (Filter("created_at", "gte", start), Filter("created_at", "lt", end)),
            NEWEST,
            MOST_COUNTED,
        )
        for start, end in pairwise(map(format_instant, starts))
    ]
    day, counts = _past.get(store, (None, ()))
    if day != midnight:
        counts = [len(result.rows) for result in await store.run(*reads[:-1])]
        _past[store] = midnight, counts
    totals = [*counts, len(await read_all(store, reads[-1]))]
    return [(f"{start:%-d %b}", total) for start, total in zip(starts, totals, strict=False)]


SCREENS: Final = (Screen(DESK, "Today", "today", today, nav="Today", checks_tables=True),)
ACTIONS: Final = ()
