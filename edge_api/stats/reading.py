"""Sums of what was counted: for the desk, Monday's mail, the API, its tool, the command and CSV.

A day is one of the journal's time zone. Today is not over: a period ends yesterday unless another
end is asked for.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from edge_api.db.query import Filter, Order, Read, Store, Where, read_all
from edge_api.db.stats_tables import DAILY_FIGURES, PAGE_VIEWS, Figure, Kind
from edge_api.db.table import Row, Table
from edge_api.journal.builds import read_zone
from edge_api.schema.index import CURRENT_LINK
from edge_api.settings import Settings

READ_SECONDS: Final = 15.0
"""The time limit of sums, which read every row of the period."""
MOST_LISTED: Final = 100
"""The most entries of a list, unless another number is asked for."""
CSV_COLUMNS: Final = ("day", "figure", "name", "kind", "agent", "count")
KINDS: Final[Mapping[Kind, str]] = {
    "person": "People",
    "feed_reader": "Feed readers",
    "search_engine": "Search engines",
    "ai_crawler": "AI crawlers",
    "ai_assistant": "AI assistants",
    "mcp": "Agents by MCP",
    "markdown_reader": "Readers of Markdown",
    "other_program": "Other programs",
}
_DAY: Final = timedelta(days=1)
Summary = Mapping[str, Any]
"""The sums, with the members that `operations.SUMMARY_SCHEMA` describes."""


@dataclass(frozen=True, slots=True)
class Period:
    """The days of which sums are read, both included, and the chosen page; empty: all pages."""

    since: date
    until: date
    path: str = ""

    def where(self, *others: Filter) -> Where:
        """Return the conditions of the rows of these days."""
        days = Filter("day", "gte", str(self.since)), Filter("day", "lte", str(self.until))
        return (*days, *others)

    def has(self, day: str) -> bool:
        """Return whether a day is one of these."""
        return str(self.since) <= day <= str(self.until)


def local_time(settings: Settings, now: datetime) -> datetime:
    """Return an instant in the time zone of the journal, by its current build."""
    return now.astimezone(read_zone((settings.build_dir / CURRENT_LINK).resolve()))


def last_days(today: date, days: int = 7, path: str = "") -> Period:
    """Return the days that ended yesterday."""
    return Period(today - timedelta(days=days), today - _DAY, path)


async def read_stats(
    store: Store, today: date, period: Period, limit: int = MOST_LISTED
) -> Summary:
    """Return the sums of a period, with at most `limit` entries in a list. Raises Problem."""
    last = period.since - _DAY
    spans = {"": period, "_before": Period(last - (period.until - period.since), last)}
    spans["_today"] = Period(today, today)
    wide = Period(spans["_before"].since, max(period.until, today))
    of_page = (Filter("path", "eq", period.path),) if period.path else ()
    # Visitors, hosts and words belong to no page: for one page none are read.
    of_site = (Filter("name", "in", ()),) if period.path else ()

    def figures(figure: Figure, columns: tuple[str, ...], span: Period, most: int | None) -> Read:
        where = span.where(Filter("figure", "eq", figure), *of_site)
        return _sum(DAILY_FIGURES, columns, where, most)

    is_program = Filter("kind", "neq", "person")
    by_day, by_path, programs, estimates, referrers, sources, reported, oldest, of_path = (
        found.rows
        for found in await store.run(
            _sum(PAGE_VIEWS, ("day", "kind"), wide.where(*of_page)),
            _sum(PAGE_VIEWS, ("path", "kind"), period.where(*of_page)),
            _sum(PAGE_VIEWS, ("kind", "agent"), period.where(is_program, *of_page), limit),
            figures("visitors", ("day", "name"), wide, None),
            figures("referrer", ("name",), period, limit),
            figures("source", ("name",), period, limit),
            figures("subscribers", ("day", "name"), period, None),
            Read(PAGE_VIEWS, ("day",), order=(Order("day"),), limit=1),
            # The newest first: a new post is found at once, by the index that begins with the day.
            Read(PAGE_VIEWS, ("day",), of_page, (Order("day", descending=True),), limit=1),
        )
    )
    counts = {
        "visitors": Counter({(row["day"], row["name"]): row["count"] for row in estimates}),
        "views": Counter({(row["day"], row["kind"]): row["count"] for row in by_day}),
    }
    of_pages = Counter({(row["path"], row["kind"]): row["count"] for row in by_path})

    def total(name: str, kind: str, span: Period) -> int:
        return sum(n for (day, of), n in counts[name].items() if of == kind and span.has(day))

    def others(views: Counter[tuple[str, str]], key: str) -> int:
        return sum(views[key, kind] for kind in KINDS if kind != "person")

    newest = {row["name"]: row["count"] for row in sorted(reported, key=itemgetter("day"))}
    return {
        "since": str(period.since),
        "until": str(period.until),
        "counted_since": oldest[0]["day"] if oldest else None,
        "path": period.path,
        "is_counted": bool(of_path),
        "days_not_estimated": sum(
            (day, kind) not in counts["visitors"]
            for day, kind in counts["views"]
            if kind == "person" and day <= str(period.until)
        ),
        **{
            f"{name}{end}": total(name, "person", span)
            for name in counts
            for end, span in spans.items()
        },
        "days": [
            {
                "day": day,
                **{name: found[day, "person"] for name, found in counts.items()},
                "others": others(counts["views"], day),
            }
            for day in sorted({day for found in counts.values() for day, _ in found})
            if period.has(day)
        ],
        "kinds": [
            {"kind": kind, **{name: total(name, kind, period) for name in counts}} for kind in KINDS
        ],
        "pages": sorted(
            (
                {
                    "path": path,
                    "views": of_pages[path, "person"],
                    "others": others(of_pages, path),
                }
                for path in sorted({path for path, _ in of_pages})
            ),
            key=itemgetter("views", "others"),
            reverse=True,
        )[:limit],
        "programs": [
            {"kind": row["kind"], "name": row["agent"], "views": row["count"]} for row in programs
        ],
        "referrers": referrers,
        "sources": sources,
        "subscribers": [
            {"name": name, "count": count} for name, count in Counter(newest).most_common(limit)
        ],
    }


def _sum(table: Table, columns: tuple[str, ...], where: Where, limit: int | None = None) -> Read:
    return Read(table, columns, where, limit=limit, timeout=READ_SECONDS, summed="count")


async def read_views(store: Store, period: Period, paths: Sequence[str]) -> Mapping[str, int]:
    """Return how often people opened each of these pages. Raises Problem."""
    chosen = Filter("path", "in", tuple(paths)), Filter("kind", "eq", "person")
    rows = await read_all(store, _sum(PAGE_VIEWS, ("path",), period.where(*chosen)))
    return {row["path"]: row["count"] for row in rows}


async def read_csv_rows(store: Store, period: Period) -> AsyncGenerator[Sequence[Row], None]:
    """Yield all rows of a period, day by day, in the columns of `CSV_COLUMNS`. Raises Problem."""
    day = period.since
    while day <= period.until:
        of_day = Filter("day", "eq", str(day))
        of_page = (Filter("path", "eq", period.path),) if period.path else ()
        views, figures = await store.run(
            Read(
                PAGE_VIEWS, (), (of_day, *of_page), (Order("path"), Order("kind"), Order("agent"))
            ),
            Read(DAILY_FIGURES, (), (of_day,), (Order("figure"), Order("name"))),
        )
        yield [{**row, "figure": "views", "name": row["path"]} for row in views.rows]
        if not period.path:
            yield [{**row, "kind": "", "agent": ""} for row in figures.rows]
        day += _DAY


def is_about_people(stats: Summary) -> bool:
    """Return whether the sentence counts people, and not views, as for one page."""
    return not stats["path"] and (stats["visitors"] or not stats["views"])


def describe(stats: Summary, span: str = "this week", former: str = "last", title: str = "") -> str:
    """Return the sentence that the screen, the mail and the command begin with.

    It counts people, or views where people are not estimated. `title` names the page, if there is
    one; without it the path does.
    """
    path, began = stats["path"], stats["counted_since"] or ""
    if not (stats["is_counted"] or title):
        return f"Nothing is counted of {path} yet: check it." if path else "Nothing is counted yet."
    if began > stats["until"]:
        return f"Counting began on {began}."
    unit = "visitors" if is_about_people(stats) else "views"
    now, before = stats[unit], stats[f"{unit}_before"]
    if not now:
        said = f"Nobody read {title or path or 'you'} {span}"
    elif unit == "visitors":
        said = f"{now:,} {'people' if now > 1 else 'person'} read you {span}"
    else:
        pages = f"{title or path} was" if path else "Your pages were"
        said = f"{pages} opened {now:,} time{'s' * (now != 1)} {span}"
    since, until = date.fromisoformat(stats["since"]), date.fromisoformat(stats["until"])
    # Only whole days are compared, and visitors only if every day estimated them.
    is_like = "" < began < str(since - (until - since) - _DAY)
    if is_like and (now or before) and not (unit == "visitors" and stats["days_not_estimated"]):
        more = f"{abs(now - before):,} {'more' if now > before else 'fewer'} than"
        said = f"{said}, {more if now != before else 'as many as'} {former}"
    others = sum(each["views"] for each in stats["kinds"] if each["kind"] != "person")
    fetched = f" Programs fetched it {others:,} time{'s' * (others != 1)}."
    return f"{said}.{fetched if path and others and not now else ''}"
