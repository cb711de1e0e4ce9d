"""The edge with a planted fault: it answers before it commits. A drill must notice."""

import asyncio
import sys
from typing import Any

from edge_api.__main__ import main
from edge_api.store.plan import Insert, Outcome
from edge_api.store.sqlite import SQLiteStore

_run = SQLiteStore.run
_late: set[asyncio.Task[Any]] = set()


async def _run_late(store: SQLiteStore, *plans: Any) -> list[Outcome]:
    """Answer inserts at once, and carry them out a moment later."""
    if not any(isinstance(plan, Insert) for plan in plans):
        return await _run(store, *plans)
    task = asyncio.create_task(_carry_out(store, *plans))
    _late.add(task)
    return [Outcome([dict(row) for row in getattr(plan, "rows", ())]) for plan in plans]


async def _carry_out(store: SQLiteStore, *plans: Any) -> None:
    await asyncio.sleep(0.02)
    await _run(store, *plans)


if __name__ == "__main__":
    SQLiteStore.run = _run_late  # type: ignore[method-assign]
    sys.exit(main(["serve"]))
