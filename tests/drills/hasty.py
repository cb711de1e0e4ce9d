"""The planted fault that the crash drill is there to catch: a writer that answers too early.

`python -m tests.drills.hasty PATH` is the store's process with it, `... hasty serve` the edge.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any

from edge_api.__main__ import main
from edge_api.db.query import Insert
from edge_api.db.sqlite import store_connections
from edge_api.db.sqlite.connection import execute
from edge_api.db.sqlite.store_connections import Writer
from edge_api.db.tables import LEADS
from tests.drills import store_process


def stores_lead(work: Any) -> bool:
    """Return whether this is a list of queries of which one inserts leads."""
    queries = () if callable(work) else work
    return any(isinstance(each, Insert) and each.table is LEADS for each in queries)


class HastyWriter(Writer):
    """Answers when the statements have run, an instant before the commit."""

    async def run(self, work: Any) -> Any:
        """Return what `work` returns; where it stores a lead, before that is durable."""
        if not stores_lead(work):  # an edge reads what else it wrote, and would not start
            return await super().run(work)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def answer_early(connection: sqlite3.Connection) -> None:
            result = execute(connection, [work])[0]
            loop.call_soon_threadsafe(answer.set_result, result)

        committing = asyncio.create_task(super().run(answer_early))
        result = await answer
        committing.add_done_callback(lambda task: task.exception())
        return result


if __name__ == "__main__":
    store_connections.Writer = HastyWriter  # type: ignore[misc]  # planted
    if sys.argv[1:] == ["serve"]:
        sys.exit(main(["serve"]))
    asyncio.run(store_process.main(Path(sys.argv[1])))
