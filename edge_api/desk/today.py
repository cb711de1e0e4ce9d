"""The desk's first page, Today: what waits for the owner, and the number of messages each day."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Any, Final
from weakref import WeakKeyDictionary

from edge_api.access.service import count_pending
from edge_api.auth.keys import Keys
from edge_api.db.internal_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.db.query import NEWEST, Filter, Order, Read, Store, read_all
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.posts import count_unread
from edge_api.desk.screens import Screen, Values, Visit
from edge_api.health import Health, PublishingMonitor
from edge_api.leads.threads import MAX_COUNTED_LEADS, box_conditions, count_people
from edge_api.newsletter.mailings import Mailings
from edge_api.outbox import GIVEN_UP, WAITING
from edge_api.schema.paths import DESK

DAYS: Final = 30  # days of the chart
# The order of an index, so that a read with a limit does not sort all matching rows.
_DEAD_AT_ORDER: Final = (Order("dead_at", nulls_first=True),)
_OMITTED_ERRORS: Final = (
    "mail was given up",
    "events for webhooks were given up",
    "a mailing is held",
)
"""Beginnings of readiness errors that Today omits, since it shows them as entries with a link."""


async def today(visit: Visit) -> Values:
    """Return what waits, what does not work, and how many messages came on each day."""
    values: dict[str, Any] = {"most": MAX_COUNTED_LEADS}
    service = visit.service
    if visit.actor.may_use(LEADS.name):
        values |= await read_people(service.store, visit.now)
        values["days"] = await _count_days(service.store, visit.now)
    if visit.actor.may_use(""):
        values["unread"] = await count_unread(visit)
        values["mailings"] = len(await service[Mailings].read_resting())
        values["pending"] = await count_pending(service.store, service.clock())
        values["failing"] = await _find_failing(service.store, service.clock())
        _, _, values["warning"] = await Keys(service.store, service.clock).find_unreviewed()
    if visit.actor.may_use(EMAIL_SEND_LOG.name):
        dead = Read(EMAIL_OUTBOX, ("id",), (GIVEN_UP,), _DEAD_AT_ORDER, MAX_COUNTED_LEADS)
        values["dead"] = len(await read_all(service.store, dead))
    checks = (await service[Health].report())["checks"].values()
    errors = (each["error"] for each in checks if "error" in each)
    faults = [
        part for each in errors for part in each.split("; ") if not part.startswith(_OMITTED_ERRORS)
    ]
    faults += service[PublishingMonitor].held if visit.actor.may_use("") else []
    return {**values, "faults": faults}


async def read_people(store: Store, now: datetime) -> Values:
    """Return how many people wait, the longest wait, due reminders, and this month's answers.

    A person who replied by mail waits since the reply; only replies to the 50 oldest leads count.
    """
    at, month = format_instant(now), datetime.combine(now.replace(day=1), time(), now.tzinfo)
    due = Filter("remind_at", "lte", at), Filter("status", "neq", "spam")
    this_month = Filter("created_at", "gte", format_instant(month))
    answered, reminders, any_lead, oldest = await store.run(
        Read(
            LEADS,
            ("email",),
            (Filter("status", "eq", "contacted"), this_month),
            NEWEST,
            MAX_COUNTED_LEADS,
        ),
        Read(LEADS, ("id",), due, (Order("remind_at", descending=True),), MAX_COUNTED_LEADS),
        Read(LEADS, ("id",), limit=1),
        Read(LEADS, ("id", "created_at"), box_conditions("new", now), (Order("created_at"),), 50),
    )
    waiting = {row["id"]: row["created_at"] for row in oldest.rows}
    of_waiting = Filter("kind", "eq", "received"), Filter("lead_id", "in", tuple(waiting))
    replies = await read_all(store, Read(LEAD_MESSAGES, (), of_waiting, (Order("created_at"),)))
    waiting |= {row["lead_id"]: row["created_at"] for row in replies}
    people, spam = await count_people(store, now, "new", "spam")
    return {
        "people": people,
        "spam": spam,
        "waited": now - datetime.fromisoformat(min(waiting.values(), default=at)),
        "reminders": len(reminders.rows),
        "answered_this_month": len({row["email"].lower() for row in answered.rows}),
        "is_first": not any_lead.rows,
    }


async def _find_failing(store: Store, now: datetime) -> str:
    """Return the time of the oldest webhook event whose delivery failed, or an empty string."""
    later = (WAITING, Filter("attempts", "gt", 0), Filter("due_at", "gt", format_instant(now)))
    results = await store.run(
        Read(WEBHOOK_DELIVERIES, ("created_at",), (GIVEN_UP,), _DEAD_AT_ORDER, 1),
        Read(WEBHOOK_DELIVERIES, ("created_at",), later, (Order("due_at"),), 1),
    )
    return min((row["created_at"] for each in results for row in each.rows), default="")


_past_counts: Final[WeakKeyDictionary[Store, tuple[datetime, Sequence[int]]]] = WeakKeyDictionary()
"""The counts of past days by store, each with the beginning of the day on which they were made."""


async def _count_days(store: Store, now: datetime) -> Sequence[tuple[str, int]]:
    """Return the days of the chart and the number of messages of each, at most `MAX_COUNTED_LEADS`.

    Past days are counted at the first request of a day and kept in memory, today at each request.
    """
    midnight = datetime.combine(now, time(), now.tzinfo)
    starts = [midnight - timedelta(days=number) for number in range(DAYS - 1, -2, -1)]
    reads = [
        Read(
            LEADS,
            ("id",),
            (Filter("created_at", "gte", start), Filter("created_at", "lt", end)),
            NEWEST,
            MAX_COUNTED_LEADS,
        )
        for start, end in pairwise(map(format_instant, starts))
    ]
    day, counts = _past_counts.get(store, (None, ()))
    if day != midnight:
        counts = [len(result.rows) for result in await store.run(*reads[:-1])]
        _past_counts[store] = midnight, counts
    totals = [*counts, len(await read_all(store, reads[-1]))]
    return [(f"{start:%-d %b}", total) for start, total in zip(starts, totals, strict=False)]


SCREENS: Final = (Screen(DESK, "Today", "today", today, nav="Today", checks_tables=True),)
ACTIONS: Final = ()
