"""Fills a store with as many leads as asked for, like those that people send: all differ.

python -m benchmarks.leads 1000000 edge.db
"""

import argparse
import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from edge_api.auth.actor import new_id
from edge_api.db.query import Insert
from edge_api.db.sqlite.engine import open_store
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant

TIERS: Final = ("starter", "growth", "5k-10k", "10k-25k", "enterprise")
_AT_ONCE: Final = 10_000
FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MESSAGE: Final = "We would like to talk about our journal, its readers and what it could become. "


async def fill(path: Path, count: int) -> None:
    """Store `count` leads, one a second from the beginning of 2026 on."""
    store = await open_store(path, lambda: datetime.now(UTC))
    try:
        for start in range(0, count, _AT_ONCE):
            numbers = range(start, min(count, start + _AT_ONCE))
            await store.run(Insert(LEADS, [make_lead(number) for number in numbers]))
    finally:
        await store.close()


def make_lead(number: int) -> Row:
    """Return one lead; its number stands in its name, its address and its message."""
    moment = FIRST + timedelta(seconds=number)
    given = {
        "name": f"Reader {number}",
        "email": f"reader{number}@example.com",
        "budget_tier": TIERS[number % len(TIERS)],
        "message": f"Enquiry {number}. {_MESSAGE}",
    }
    return LEADS.new_row(given, format_instant(moment), partial(new_id, moment))


def main() -> None:
    """Fill the store that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leads", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    asyncio.run(fill(options.file, options.count))


if __name__ == "__main__":
    main()
