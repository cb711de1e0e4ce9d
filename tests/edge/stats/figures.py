"""Counts of days, stored as the counter stores them."""

from collections.abc import Mapping
from datetime import date, timedelta

from edge_api.db.query import Insert, Store
from edge_api.db.stats_tables import DAILY_FIGURES, PAGE_VIEWS
from tests.edge.store.samples import make_row

TODAY = date(2026, 6, 1)
"""The day on which `MovableClock` begins: a Monday."""
Views = Mapping[tuple[int, str, str, str], int]
"""Counts by days before today, path, kind and agent."""
Figures = Mapping[tuple[int, str, str], int]
"""Counts by days before today, figure and name."""


def day(ago: int, today: date = TODAY) -> str:
    """Return a day that is some days past."""
    return str(today - timedelta(days=ago))


async def fill(store: Store, views: Views, figures: Figures, today: date = TODAY) -> None:
    """Store counts."""
    pages = [
        make_row(
            PAGE_VIEWS,
            {"day": day(ago, today), "path": path, "kind": kind, "agent": agent, "count": count},
        )
        for (ago, path, kind, agent), count in views.items()
    ]
    others = [
        make_row(
            DAILY_FIGURES,
            {"day": day(ago, today), "figure": figure, "name": name, "count": count},
        )
        for (ago, figure, name), count in figures.items()
    ]
    for at in range(0, max(len(pages), 1), 5000):
        await store.run(Insert(PAGE_VIEWS, pages[at : at + 5000]))
    await store.run(Insert(DAILY_FIGURES, others))


FIRST, LLMS = "/journal/first-edge/", "/llms.txt"
VIEWS: Views = {
    (0, FIRST, "person", ""): 9,
    (1, FIRST, "person", ""): 30,
    (1, "/", "person", ""): 20,
    (7, "/", "person", ""): 11,
    (1, LLMS, "ai_crawler", "GPTBot"): 40,
    (3, FIRST, "feed_reader", "Feedly"): 5,
    (3, FIRST, "other_program", ""): 2,
    (8, FIRST, "person", ""): 50,
    (14, "/", "person", ""): 1,
    (15, "/", "person", ""): 1000,
}
FIGURES: Figures = {
    (0, "visitors", "person"): 7,
    (1, "visitors", "person"): 200,
    (7, "visitors", "person"): 14,
    (1, "visitors", "ai_crawler"): 3,
    (8, "visitors", "person"): 170,
    (14, "visitors", "person"): 6,
    (15, "visitors", "person"): 999,
    (1, "referrer", "news.example"): 60,
    (2, "referrer", "news.example"): 10,
    (2, "referrer", "other"): 4,
    (2, "source", "=mastodon"): 8,
    (7, "subscribers", "Feedly"): 40,
    (2, "subscribers", "Feedly"): 38,
    (5, "subscribers", "NewsBlur"): 3,
}
DAYS = [key[0] for key in VIEWS] + [key[0] for key in FIGURES]
"""How many days ago each count was."""
"""A week with 214 people, after one with 176."""
