"""Sums of what was counted: for the desk, Monday's mail, the API, its tool, the command and CSV.

A day is one of the journal's time zone. Today is not over: a period ends yesterday unless another
end is asked for.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Annotated, Any, Final, get_args

from pydantic import BaseModel, Field

from edge_api.db.query import Filter, Order, Read, Store, Where, read_all
from edge_api.db.stats_tables import DAILY_FIGURES, PAGE_VIEWS, Kind
from edge_api.db.table import Row, Table
from edge_api.journal.builds import read_zone
from edge_api.schema.index import CURRENT_LINK
from edge_api.settings import Settings

READ_SECONDS: Final = 15.0
"""The time limit of sums, which read every row of the period."""
MOST_LISTED: Final = 100
"""The most entries of a list, unless another number is asked for."""
CSV_COLUMNS: Final = ("day", "figure", "name", "kind", "agent", "count")
WEEK: Final = 7  # days
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
Count = Annotated[int, Field(ge=0)]


class _Model(BaseModel, extra="forbid"):
    """The parent of an answer and of its parts."""


class DaySum(_Model):
    """One day; the first of a month stands for the whole month after 25 months."""

    day: str
    visitors: Count = Field(description="Readers of the chosen kind, estimated.")
    views: Count = Field(description="Times that the chosen kind opened something.")
    others: Count = Field(description="Times that all others did.")


class KindSum(_Model):
    """One kind of readers."""

    kind: Kind
    visitors: Count = Field(description="Estimated for each day, then added.")
    views: Count


class PageSum(_Model):
    """One address of the site."""

    path: str
    views: Count = Field(description="Times that the chosen kind opened it.")
    others: Count = Field(description="Times that all others did.")


class ProgramSum(_Model):
    """One program, by the name that it gives itself."""

    kind: Kind
    name: str = Field(description="Empty: the program has no name in the list of known ones.")
    views: Count


class NamedSum(_Model):
    """One name with its number."""

    name: str
    count: Count


class Summary(_Model):
    """What was read in a period, and by whom; lists begin with the largest number."""

    since: str = Field(description="The first day, in the journal's time zone.")
    until: str = Field(description="The last day.")
    counted_since: str | None = Field(description="The first day of which anything is counted.")
    kind: Kind = Field(description="The chosen kind of readers, whose numbers come first.")
    path: str = Field(description="The page that all is about; empty: all pages.")
    visitors: Count = Field(
        description="Readers of the kind, estimated for each day and then added: one who comes on "
        "three days counts as three. 0 for one page, and with STATS_VISITORS=off."
    )
    visitors_before: Count = Field(description="The same for as many days before.")
    visitors_today: Count = Field(description="The same for today, so far.")
    views: Count = Field(description="Times that the kind opened something.")
    views_before: Count = Field(description="The same for as many days before.")
    views_today: Count = Field(description="The same for today, so far.")
    days: list[DaySum] = Field(description="The days of the period, oldest first.")
    kinds: list[KindSum]
    pages: list[PageSum]
    programs: list[ProgramSum]
    referrers: list[NamedSum] = Field(
        description="Hosts whose links were followed; those with fewer than five visitors on a day "
        "are together as `other`. For all pages alone, as the two lists after it."
    )
    sources: list[NamedSum] = Field(description="Words in `?ref=` and `utm_source` of links.")
    subscribers: list[NamedSum] = Field(
        description="Subscribers of the feeds, by the number that each feed reader told last."
    )


@dataclass(frozen=True, slots=True)
class Period:
    """The days of which sums are read, both included, with the chosen page and kind."""

    since: date
    until: date
    path: str = ""  # all
    kind: Kind = "person"

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


def last_days(today: date, days: int = WEEK, **chosen: Any) -> Period:
    """Return the days that ended yesterday."""
    return Period(today - timedelta(days=days), today - _DAY, **chosen)


async def read_stats(
    store: Store, today: date, period: Period, limit: int = MOST_LISTED
) -> Summary:
    """Return the sums of a period, with at most `limit` entries in a list. Raises Problem."""
    last = period.since - _DAY
    before = Period(last - (period.until - period.since), last)
    wide = Period(before.since, max(period.until, today))
    of_page = (Filter("path", "eq", period.path),) if period.path else ()
    # Visitors, hosts and words are of no page.
    of_site = (Filter("name", "in", ()),) if period.path else ()
    names = Filter("figure", "in", ("referrer", "source"))
    by_day, by_path, by_agent, of_visitors, by_name, told, oldest = (
        found.rows
        for found in await store.run(
            _sum(PAGE_VIEWS, ("day", "kind"), wide.where(*of_page)),
            _sum(PAGE_VIEWS, ("path", "kind"), period.where(*of_page)),
            _sum(
                PAGE_VIEWS,
                ("kind", "agent"),
                period.where(Filter("kind", "neq", "person"), *of_page),
                limit,
            ),
            _read_figure("visitors", wide.where(*of_site)),
            _sum(DAILY_FIGURES, ("figure", "name"), period.where(names, *of_site)),
            _read_figure("subscribers", period.where(*of_site)),
            Read(PAGE_VIEWS, ("day",), order=(Order("day"),), limit=1),
        )
    )
    views = Counter({(row["day"], row["kind"]): row["count"] for row in by_day})
    visitors = Counter({(row["day"], row["name"]): row["count"] for row in of_visitors})

    def add(counts: Counter[tuple[str, str]], days: Period, *kinds: str) -> int:
        return sum(n for (day, kind), n in counts.items() if kind in kinds and days.has(day))

    def list_names(figure: str) -> list[NamedSum]:
        found = (row for row in by_name if row["figure"] == figure)
        return [NamedSum(name=row["name"], count=row["count"]) for row in found][:limit]

    paths: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in by_path:
        paths[row["path"]][row["kind"] != period.kind] += row["count"]
    pages = sorted(paths.items(), key=itemgetter(1), reverse=True)[:limit]
    # The last row of a name is its newest.
    newest = Counter({row["name"]: row["count"] for row in told})
    kinds = get_args(Kind)
    others = [each for each in kinds if each != period.kind]
    now = Period(today, today)
    return Summary(
        since=str(period.since),
        until=str(period.until),
        counted_since=oldest[0]["day"] if oldest else None,
        kind=period.kind,
        path=period.path,
        visitors=add(visitors, period, period.kind),
        visitors_before=add(visitors, before, period.kind),
        visitors_today=add(visitors, now, period.kind),
        views=add(views, period, period.kind),
        views_before=add(views, before, period.kind),
        views_today=add(views, now, period.kind),
        days=[
            DaySum(
                day=day,
                visitors=visitors[day, period.kind],
                views=views[day, period.kind],
                others=sum(views[day, each] for each in others),
            )
            for day in sorted({day for day, _ in (*views, *visitors) if period.has(day)})
        ],
        kinds=[
            KindSum(kind=each, visitors=add(visitors, period, each), views=add(views, period, each))
            for each in kinds
        ],
        pages=[PageSum(path=path, views=own, others=rest) for path, (own, rest) in pages],
        programs=[
            ProgramSum(kind=row["kind"], name=row["agent"], views=row["count"]) for row in by_agent
        ],
        referrers=list_names("referrer"),
        sources=list_names("source"),
        subscribers=[NamedSum(name=name, count=n) for name, n in newest.most_common(limit)],
    )


def _sum(table: Table, columns: tuple[str, ...], where: Where, limit: int | None = None) -> Read:
    return Read(table, columns, where, limit=limit, timeout=READ_SECONDS, summed="count")


def _read_figure(figure: str, where: Where) -> Read:
    order = (Order("day"),)
    return Read(
        DAILY_FIGURES, ("day", "name", "count"), (Filter("figure", "eq", figure), *where), order
    )


async def read_views(store: Store, period: Period, paths: Sequence[str]) -> Mapping[str, int]:
    """Return how often people opened each of these pages. Raises Problem."""
    chosen = Filter("path", "in", tuple(paths)), Filter("kind", "eq", period.kind)
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


def describe(stats: Summary, span: str = "this week", former: str = "last", title: str = "") -> str:
    """Return the sentence that the screen and the mail begin with.

    It is about people, or about opened pages where these are not estimated.
    """
    if stats.visitors or stats.visitors_before or not (stats.views or stats.views_before):
        now, before = stats.visitors, stats.visitors_before
        people = f"{now:,} people" if now > 1 else "1 person" if now else "Nobody"
        said = f"{people} read you {span}"
    else:
        now, before = stats.views, stats.views_before
        what = f"{title or stats.path} was" if stats.path else "Your pages were"
        said = f"{what} opened {now:,} time{'s' * (now != 1)} {span}"
    since, until = date.fromisoformat(stats.since), date.fromisoformat(stats.until)
    first = str(since - (until - since) - _DAY)
    if not stats.counted_since or stats.counted_since > first:
        return f"{said}."  # the days before were not counted, or not all of them
    more = f"{abs(now - before):,} {'more' if now > before else 'fewer'} than"
    return f"{said}, {more if now != before else 'as many as'} {former}."
