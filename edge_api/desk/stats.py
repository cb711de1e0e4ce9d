"""The screen Stats: how many people read, what, and which programs do."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from operator import add
from typing import Final
from urllib.parse import unquote, urlsplit

import orjson

from edge_api.db.problems import Problem
from edge_api.db.stats_tables import MAX_PATH_LENGTH
from edge_api.desk.screens import Screen, Values, Visit
from edge_api.journal.builds import BuildManager
from edge_api.operation.model import OperationResult
from edge_api.operation.sheets import CSV_TYPE, stream_csv
from edge_api.stats.reading import (
    CSV_COLUMNS,
    KINDS,
    Period,
    Summary,
    describe,
    is_about_people,
    last_days,
    read_csv_rows,
    read_stats,
    read_views,
)

SPANS: Final[Mapping[str, tuple[str, str, str, int]]] = {
    "week": ("A week", "this week", "last", 7),
    "month": ("30 days", "in 30 days", "in the 30 before", 30),
    "year": ("A year", "from {since} to {until}", "in as many days before", 365),
}
"""The periods by name: label, words for the period and for the one before, number of days."""
MOST_BARS: Final = 62
"""The most days that have a bar each; of more each month has one."""


def _find_period(visit: Visit) -> tuple[str, Period]:
    """Return the chosen span and its days. Raises Problem where STATS is off."""
    if visit.service.settings.stats == "off":
        raise Problem("unavailable", "Nothing is counted here; STATS=on switches it on")
    asked = visit.query.get("span", "")
    span = asked if asked in SPANS else "week"
    path = visit.query.get("page", "")[:MAX_PATH_LENGTH].replace("\0", "")
    period = last_days(visit.now.date(), SPANS[span][3], path)
    if span == "year":  # it begins on the first of a month
        first = (period.since - timedelta(days=1)).replace(day=1) + timedelta(days=32)
        period = replace(period, since=first.replace(day=1))
    return span, period


async def show_stats(visit: Visit) -> Values:
    """Return the sums of a span, with its sentence and the bars of its chart."""
    span, period = _find_period(visit)
    (_, said, former, _), today, store = SPANS[span], visit.now.date(), visit.service.store
    found = await read_stats(store, today, period, limit=50)
    if found["counted_since"] == str(today):
        period, said = replace(period, since=today, until=today), "today, the first day counted"
        found = await read_stats(store, today, period, limit=50)
    build = visit.service[BuildManager].current
    posts = [orjson.loads(each.summary) for each in build.posts.entries] if build else []
    titles = {path_of(each): each["title"] for each in posts}
    title = f"“{titles[path]}”" if (path := found["path"]) in titles else ""
    if build and path in build.files:
        title = title or path
    return {
        "sentence": describe(found, said.format(**found), former, title),
        "stats": found,
        "span": span,
        "spans": {name: label for name, (label, *_) in SPANS.items()},
        "kinds": KINDS,
        "bars": make_bars(found, period),
        "titles": titles,
        "is_by_visitors": is_about_people(found),
        "is_estimated": visit.service.settings.stats_visitors == "on",
    }


def path_of(post: Mapping[str, str]) -> str:
    """Return the path of a post as the counts have it."""
    return unquote(urlsplit(post["url"]).path)


async def count_reads(visit: Visit, posts: Sequence[Mapping[str, str]]) -> Mapping[str, int]:
    """Return how often people opened posts in 30 days with today, by their slugs.

    What was counted under their former addresses is added. It is empty where STATS is off, and for
    a sign-in without the scope.
    """
    if visit.service.settings.stats == "off" or STATS.scope not in visit.actor.scopes:
        return {}
    build = visit.service[BuildManager].current
    period = last_days(visit.now.date() + timedelta(days=1), 30)
    slugs = {path_of(each): each["slug"] for each in posts}
    moved = build.moved.items() if build else ()
    slugs |= {former: slugs[path] for former, path in moved if path in slugs}
    reads = Counter(dict.fromkeys(slugs.values(), 0))
    for path, views in (await read_views(visit.service.store, period, tuple(slugs))).items():
        reads[slugs[path]] += views
    return reads


def make_bars(found: Summary, period: Period) -> Mapping[str, list[int]]:
    """Return visitors, views and other views of each day, or of each month of a long period."""
    length = (period.until - period.since).days + 1
    form = "%-d %b" if length <= MOST_BARS else "%b %Y"
    days = (period.since + timedelta(days=number) for number in range(length))
    bars = {format(day, form): [0, 0, 0] for day in days}
    for each in found["days"]:
        bar = bars[format(date.fromisoformat(each["day"]), form)]
        bar[:] = map(add, bar, (each["visitors"], each["views"], each["others"]))
    return bars


async def export_csv(visit: Visit) -> OperationResult:
    """Return all counts of the span as CSV."""
    _, period = _find_period(visit)
    return OperationResult(
        stream_csv(CSV_COLUMNS, read_csv_rows(visit.service.store, period)),
        headers={"Content-Disposition": 'attachment; filename="stats.csv"'},
        media_type=CSV_TYPE,
    )


STATS: Final = Screen(
    "/desk/stats/", "Stats", "stats", show_stats, nav="Stats", scope="stats:read", switch="stats"
)
SCREENS: Final = (STATS, Screen("/desk/stats.csv", "", "", export_csv, scope=STATS.scope))
ACTIONS: Final = ()
