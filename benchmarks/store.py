"""What sharing a commit brings: rows a second, grouped and one commit a call, in one run.

`python -m benchmarks.store`
"""

import asyncio
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

from edge_api.auth.actor import new_id
from edge_api.db import transaction as grouping
from edge_api.db.query import Insert
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant

CALLERS = 64
ROUNDS = 5
SECONDS = 2.0
GROUP_MOST = grouping.MAX_GROUP_SIZE
LEAD = {"name": "Ada", "email": "ada@example.org", "budget_tier": "small", "message": "m" * 300}


def main() -> None:
    """Measure by turns, so that a change of the machine's mood falls on both, and print."""
    grouped, single, alone = [], [], []
    for _ in range(ROUNDS):
        grouped.append(measure(GROUP_MOST, CALLERS))
        single.append(measure(1, CALLERS))
        alone.append(measure(GROUP_MOST, 1))
    print(f"{CALLERS} callers, commits shared     {median(grouped):>8,.0f} leads/s")
    print(f"{CALLERS} callers, one commit a lead  {median(single):>8,.0f} leads/s")
    print(f" 1 caller                     {median(alone):>8,.0f} leads/s")
    print(f"ratio of the first two        {median(grouped) / median(single):>8.2f}")


def measure(group_most: int, callers: int) -> float:
    """Return how many leads a second a new store takes, each durable when it is answered."""
    grouping.MAX_GROUP_SIZE = group_most  # type: ignore[misc]  # what is compared
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder) / "edge.db", callers))


async def _measure(path: Path, callers: int) -> float:
    store = await open_store(path, lambda: datetime.now(UTC))
    try:
        ends_at = time.perf_counter() + SECONDS
        counts = await asyncio.gather(*(_write(store, ends_at) for _ in range(callers)))
    finally:
        await store.close()
    return sum(counts) / SECONDS


async def _write(store: SQLiteStore, ends_at: float) -> int:
    """Store one lead after the other until the time is over; return their number."""
    count = 0
    while time.perf_counter() < ends_at:
        now = datetime.now(UTC)
        lead = LEADS.new_row(LEAD, format_instant(now), partial(new_id, now))
        await store.run(Insert(LEADS, [lead]))
        count += 1
    return count


if __name__ == "__main__":
    main()
