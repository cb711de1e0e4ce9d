"""The rows of the stats: how counts are added to them, and how old days become months."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final, Literal

from edge_api.auth.actor import new_id
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    read_first,
)
from edge_api.db.stats_tables import DAILY_FIGURES, PAGE_VIEWS
from edge_api.db.table import Row, Table

KEPT_MONTHS: Final = 25  # the months of which each day is kept

RowKey = tuple[str, ...]
"""Day, path, kind and agent of views; or day, figure and name of another number."""


def make_inserts(counts: Mapping[RowKey, int]) -> list[Insert]:
    """Return the queries that add counts to the rows of their keys; called in a thread."""
    inserts: dict[tuple[Table, Literal["sum", "largest"]], list[Row]] = defaultdict(list)
    for key, count in counts.items():
        table = next(each for each in (PAGE_VIEWS, DAILY_FIGURES) if len(_names(each)) == len(key))
        row = {**dict(zip(_names(table), key, strict=True)), "count": count}
        # The id has the time of midnight: that of a view would say when somebody came.
        midnight = datetime.fromisoformat(f"{key[0]}T00:00Z")
        new = table.trusted_row(row, "", partial(new_id, midnight))
        inserts[table, "largest" if key[1] == "subscribers" else "sum"].append(new)
    return [Insert(table, rows, merge=merge) for (table, merge), rows in inserts.items()]


def _names(table: Table) -> tuple[str, ...]:
    return table.indexes[0].columns


async def roll_up(store: Store, today: str) -> None:
    """Add the days before the last 25 months to the first days of their months. Raises Problem."""
    year, month = divmod(int(today[:4]) * 12 + int(today[5:7]) - 1 - KEPT_MONTHS, 12)
    old = Filter("day", "lt", f"{year:04}-{month + 1:02}-01")
    where = old, Filter("day", "like", "%-01", negated=True)
    for table in (PAGE_VIEWS, DAILY_FIGURES):
        oldest = Read(table, ("id", "day"), where, (Order("day"),), limit=1)
        while row := await read_first(store, oldest):
            await store.run(Procedure(partial(_move_day, table, row["day"])))


def _move_day(table: Table, day: str, results: list[QueryResult]) -> Iterator[Query]:
    """Yield the queries of one transaction, so that two edges at a time add nothing twice."""
    yield Delete(table, (Filter("day", "eq", day),))
    month = f"{day[:8]}01"
    yield from make_inserts(
        {
            (month, *(row[name] for name in _names(table)[1:])): row["count"]
            for row in results[-1].rows
        }
    )
