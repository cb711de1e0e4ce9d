"""`stats`: print how many people and programs read the journal."""

import json
from typing import Final

from click import Option

from edge_api.auth.actor import system_clock
from edge_api.cli import Columns, print_list
from edge_api.open_store import command_store
from edge_api.operation.model import check_query
from edge_api.operation.sheets import stream_csv
from edge_api.schema.commands import JSON, Arguments
from edge_api.settings import Settings
from edge_api.stats.operations import StatsQuery
from edge_api.stats.reading import (
    CSV_COLUMNS,
    KINDS,
    MOST_LISTED,
    describe,
    local_time,
    read_csv_rows,
    read_stats,
)

PARAMS: Final = (
    Option(["--since"], metavar="DAY", help="the first day (default: six days before the last)"),
    Option(["--until"], metavar="DAY", help="the last day (default: yesterday)"),
    Option(["--path"], help="only this page, such as /journal/two-winters/"),
    Option(["--limit"], help=f"entries of a list (default: {MOST_LISTED})"),
    Option(["--csv"], is_flag=True, help="print every count of every day as CSV"),
    JSON,
)
_LISTS: Final[dict[str, Columns]] = {
    "pages": {"PAGE": "path", "OPENED": "views", "BY OTHERS": "others"},
    "kinds": {"KIND": lambda row: KINDS[row["kind"]], "OPENED": "views"},
    "programs": {
        "PROGRAM": lambda row: row["name"] or "no known name",
        "KIND": lambda row: KINDS[row["kind"]],
        "OPENED": "views",
    },
    "referrers": {"CAME FROM": "name", "OPENED": "count"},
    "sources": {"WORD IN THE LINK": "name", "OPENED": "count"},
    "subscribers": {"FEED READER": "name", "SUBSCRIBERS": "count"},
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Print the sums of the chosen days, or all their counts. Returns 0; raises Problem."""
    given = {name: getattr(arguments, name) for name in StatsQuery.model_fields}
    query = check_query(StatsQuery, {name: text for name, text in given.items() if text})
    today = local_time(settings, system_clock()).date()
    period = query.period(today)
    async with command_store(settings) as store:
        if arguments.csv:
            async for part in stream_csv(CSV_COLUMNS, read_csv_rows(store, period)):
                print(part.decode(), end="")
            return 0
        found = await read_stats(store, today, period, query.limit)
    if arguments.json:
        found = {**found, "counting": settings.stats}
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if settings.stats == "off":
        print("Counting is off (STATS=off): these are older counts.")
    is_week = not (arguments.since or arguments.until)
    span = f"from {period.since} to {period.until}"
    print(describe(found) if is_week else describe(found, span, "in as many days before"))
    for name, columns in _LISTS.items():
        if rows := [
            each
            for each in found[name]
            if any(each.get(number) for number in ("views", "others", "count"))
        ]:
            print()
            print_list(rows, columns, "", as_json=False)
    return 0
