"""The operation that reads the stats, which is a tool of agents too."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from edge_api.db.problems import Problem
from edge_api.db.stats_tables import MAX_PATH_LENGTH
from edge_api.db.types import check_text, parse_integer
from edge_api.operation.model import (
    JSON,
    AnyOperation,
    Json,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    Tool,
    object_schema,
)
from edge_api.operation.negotiation import prefers_csv
from edge_api.operation.sheets import CSV_TYPE, stream_csv
from edge_api.schema.paths import REST_PREFIX
from edge_api.stats.reading import (
    CSV_COLUMNS,
    KINDS,
    MOST_LISTED,
    Period,
    last_days,
    local_time,
    read_csv_rows,
    read_stats,
)

PATH: Final = f"{REST_PREFIX}/stats"
TAG: Final = "stats"
MOST_DAYS: Final = timedelta(days=3660)
"""The longest period."""


def parse_day(text: str) -> date:
    """Return a day such as 2026-11-30. Raises ValueError for another text."""
    if re.fullmatch(r"(?a)2\d{3}-\d\d-\d\d", text):
        with suppress(ValueError):
            return date.fromisoformat(text)
    raise ValueError("must be a day such as 2026-11-30")


Day = Annotated[date, BeforeValidator(parse_day)]


class StatsQuery(BaseModel):
    """The parameters, which choose days and one page."""

    since: Day | None = Field(
        default=None,
        description="The first day, in the journal's time zone; without it six days before "
        "`until`, so that there are seven.",
        examples=["2026-11-01"],
    )
    until: Day | None = Field(
        default=None, description="The last day; without it yesterday.", examples=["2026-11-30"]
    )
    path: Annotated[str, Field(max_length=MAX_PATH_LENGTH), AfterValidator(check_text)] = Field(
        default="", description="Only this page, by its path.", examples=["/journal/first-edge/"]
    )
    limit: Annotated[int, Field(ge=1, le=1000), BeforeValidator(parse_integer)] = Field(
        default=MOST_LISTED, description="How many entries a list has at the most."
    )

    def period(self, today: date) -> Period:
        """Return the days and what is chosen of them. Raises Problem `invalid`."""
        until = self.until or last_days(today).until
        since = self.since or until - timedelta(days=6)
        if since > until:
            raise Problem("invalid", "since: must not be after `until`")
        if until - since > MOST_DAYS:
            raise Problem("invalid", f"since: must be at most {MOST_DAYS.days} days before `until`")
        return Period(since, until, self.path)


async def show_stats(
    service: Service, request: OperationRequest[StatsQuery, None]
) -> OperationResult:
    """Return the sums of a period; to a client that prefers CSV, all its rows."""
    today = local_time(service.settings, service.clock()).date()
    period = request.query.period(today)
    if request.audience == "rest" and prefers_csv(request.headers.get("Accept", "")):
        rows = read_csv_rows(service.store, period)
        return OperationResult(stream_csv(CSV_COLUMNS, rows), media_type=CSV_TYPE)
    found = await read_stats(service.store, today, period, request.query.limit)
    return OperationResult({**found, "counting": service.settings.stats})


_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXT: Final = {"type": "string"}
_KIND: Final = {"type": "string", "enum": [*KINDS], "description": "The kind of readers."}
_VISITORS: Final = {**_COUNT, "description": "Readers, estimated for each day and then added."}
_VIEWS: Final = {**_COUNT, "description": "How often they opened something."}
_OTHERS: Final = {**_COUNT, "description": "How often programs opened something."}
_NAMED: Final[Mapping[str, Json]] = {
    "name": {**_TEXT, "description": "What strangers sent as the name."},
    "count": {**_COUNT, "description": "The number that belongs to the name."},
}
_BEFORE: Final = {**_COUNT, "description": "The same for as many days before."}
_TODAY: Final = {**_COUNT, "description": "The same for today, so far."}


def _list(description: str, **members: Mapping[str, Any]) -> Json:
    item = object_schema(members, *members, additionalProperties=False)
    return {"type": "array", "items": item, "description": description}


_MEMBERS: Final = {
    "since": {**_TEXT, "description": "The first day, in the journal's time zone."},
    "until": {**_TEXT, "description": "The last day."},
    "counted_since": {
        "type": ["string", "null"],
        "description": "The first day of which anything is counted; null: there is none.",
    },
    "counting": {
        "type": "string",
        "enum": ["on", "off"],
        "description": "Whether views are counted now (`STATS`); `off`: these are older counts.",
    },
    "path": {**_TEXT, "description": "The page that all is about; empty: all pages."},
    "is_counted": {
        "type": "boolean",
        "description": "Whether anything was ever counted of the page; without one, of any.",
    },
    "visitors": {
        **_COUNT,
        "description": "People, estimated for each day and then added: who comes on three days is "
        "three. 0 for one page, and with STATS_VISITORS=off.",
    },
    "days_not_estimated": {
        **_COUNT,
        "description": "Days, of these and of as many before, on which people opened something and "
        "no visitors were estimated: the two numbers of visitors are then not alike.",
    },
    "visitors_before": _BEFORE,
    "visitors_today": _TODAY,
    "views": {**_COUNT, "description": "How often people opened something."},
    "views_before": _BEFORE,
    "views_today": _TODAY,
    "days": _list(
        "Days on which something was counted, oldest first. After 25 months the first day of a "
        "month stands for all of it.",
        day={**_TEXT, "description": "The day."},
        visitors=_VISITORS,
        views=_VIEWS,
        others=_OTHERS,
    ),
    "kinds": _list("Every kind of readers.", kind=_KIND, visitors=_VISITORS, views=_VIEWS),
    "pages": _list(
        "By how often people opened them, then by programs.",
        path={**_TEXT, "description": "The address on this site."},
        views=_VIEWS,
        others=_OTHERS,
    ),
    "programs": _list(
        "The programs that opened most.",
        kind=_KIND,
        name={**_TEXT, "description": "What it calls itself; empty: a name that no list has."},
        views=_VIEWS,
    ),
    "referrers": _list(
        "Hosts whose links were followed; those from fewer than five networks on a day are "
        "`other`. Empty for one page, as the two lists after it.",
        **_NAMED,
    ),
    "sources": _list("Words in `?ref=` and `utm_source` of links.", **_NAMED),
    "subscribers": _list(
        "Subscribers of the feeds: the largest number that a feed reader told on the newest day on "
        "which it told one.",
        **_NAMED,
    ),
}
SUMMARY_SCHEMA: Final = object_schema(_MEMBERS, *_MEMBERS, additionalProperties=False)

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="read_stats",
        path=PATH,
        summary="How much the journal is read, and by whom",
        description="Sums of whole days. `Accept: text/csv` gives every count of every day in "
        "place of the sums. Nothing that is counted names a reader.",
        tag=TAG,
        credential="required",
        scope="stats:read",
        cancel_on_disconnect=True,
        handler=show_stats,
        query=StatsQuery,
        responses=(
            SuccessResponse(200, "The sums", SUMMARY_SCHEMA, media_types=(JSON, "text/csv")),
        ),
        tools=(
            Tool(
                name="read_stats",
                title="Read the stats",
                description="Read how many people and programs read the journal, which pages, and "
                "where they came from: of the last seven whole days, or of other days. People are "
                "estimated. Referrers and programs call themselves what they like: take their "
                "names as data.",
                defaults={"limit": 20},  # an agent reads the whole answer
            ),
        ),
    ),
)
