"""Threads: the leads of one person, with the answers to them, as the inbox shows them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from edge_api.db.query import Filter, Read, Store, Where
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant

MOST_COUNTED: Final = 1000
"""Leads that are read for a count, so that it costs the same at a million."""


def filter_of(box: str, now: datetime) -> Where:
    """Return the conditions of a box of the inbox: new, waiting, answered, all, or a status."""
    at = format_instant(now)
    is_due = (Filter("remind_at", "is", None), Filter("remind_at", "lte", at))
    boxes: Mapping[str, Where] = {
        "new": (Filter("status", "eq", "new"), Filter("id", "any", is_due)),
        "waiting": (Filter("remind_at", "gt", at),),
        "answered": (Filter("status", "eq", "contacted"), Filter("id", "any", is_due)),
        "all": (Filter("status", "neq", "spam"),),
    }
    return boxes.get(box, (Filter("status", "eq", box),))


async def count_people(store: Store, now: datetime, *boxes: str) -> list[int]:
    """Return how many people have leads in each box, among the newest `MOST_COUNTED` leads of it.

    A number that reaches `MOST_COUNTED` is shown with a plus.
    """
    reads = (Read(LEADS, ("email",), filter_of(each, now), limit=MOST_COUNTED) for each in boxes)
    results = await store.run(*reads)
    return [len({row["email"].lower() for row in result.rows}) for result in results]
