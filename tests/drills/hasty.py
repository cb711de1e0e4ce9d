"""The planted fault that the crash drill is there to catch: a writer that answers too early.

`python -m tests.drills.hasty PATH` is the store's process with it, `... hasty serve` the edge.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path

from edge_api.__main__ import main
from edge_api.db.sqlite import session
from edge_api.db.sqlite.writer import T, Work, Writer
from tests.drills import store_process


class HastyWriter(Writer):
    """Answers when the statements have run, an instant before the commit."""

    async def run(self, work: Work[T]) -> T:
        """Return what `work` returns, which nothing has made durable yet."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def answer_early(connection: sqlite3.Connection) -> None:
            loop.call_soon_threadsafe(answer.set_result, work(connection))

        committing = asyncio.create_task(super().run(answer_early))
        result = await answer
        committing.add_done_callback(lambda task: task.exception())
        return result


if __name__ == "__main__":
    session.Writer = HastyWriter  # type: ignore[attr-defined]  # planted
    if sys.argv[1:] == ["serve"]:
        sys.exit(main(["serve"]))
    asyncio.run(store_process.main(Path(sys.argv[1])))
