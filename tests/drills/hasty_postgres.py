"""The planted fault that the drill of restarts is there to catch: an answer before the commit.

`python -m tests.drills.hasty_postgres serve` is an edge on PostgreSQL with it.
"""

import asyncio
import sys
from typing import Any

from edge_api.__main__ import main
from edge_api.db.postgres import engine
from edge_api.db.postgres.connection import Connection, execute
from edge_api.db.postgres.store_connections import Writer
from tests.drills.hasty import stores_lead


class HastyWriter(Writer):
    """Answers when the statements have run, an instant before the commit."""

    async def run(self, work: Any) -> Any:
        """Return what `work` returns; where it stores a lead, before that is durable."""
        if not stores_lead(work):
            return await super().run(work)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def answer_early(connection: Connection) -> Any:
            (result,) = await execute(connection, [work])
            if not answer.done():
                answer.set_result(result)
            return result

        def pass_on(committing: asyncio.Task[Any]) -> None:
            error = committing.exception()
            if error is not None and not answer.done():
                answer.set_exception(error)

        committing = asyncio.create_task(super().run(answer_early))
        committing.add_done_callback(pass_on)
        return await answer


if __name__ == "__main__":
    engine.Writer = HastyWriter  # type: ignore[attr-defined]  # planted
    sys.exit(main(sys.argv[1:]))
