"""The planted fault that the crash drill is there to catch: a writer that answers too early.

`python -m tests.drills.hasty PATH` is the store's process with it, `... hasty serve` the edge.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any

from edge_api.__main__ import main
from edge_api.db.sqlite import session
from edge_api.db.sqlite.connection import execute
from edge_api.db.sqlite.session import Writer
from tests.drills import store_process


class HastyWriter(Writer):
    """Answers when the statements have run, an instant before the commit."""

    async def run(self, work: Any) -> Any:
        """Return what `work` returns, which nothing has made durable yet."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def answer_early(connection: sqlite3.Connection) -> None:
            result = work(connection) if callable(work) else execute(connection, [work])[0]
            loop.call_soon_threadsafe(answer.set_result, result)

        committing = asyncio.create_task(super().run(answer_early))
        result = await answer
        committing.add_done_callback(lambda task: task.exception())
        return result


if __name__ == "__main__":
    session.Writer = HastyWriter  # type: ignore[misc]  # planted
    if sys.argv[1:] == ["serve"]:
        sys.exit(main(["serve"]))
    asyncio.run(store_process.main(Path(sys.argv[1])))
