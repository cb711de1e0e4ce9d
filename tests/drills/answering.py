"""An edge without a port that answers leads as it is told, by lines of JSON.

`python -m tests.drills.answering` takes `{"send": lead, "text": text}` and `{"undo": message}` and
says what came of each; `{"drain": ""}` is answered once nothing waits. An answer waits
for a moment here, not for twenty seconds.
"""

import asyncio
import json
import os
import sys
from datetime import timedelta
from typing import Any

from edge_api import outbox
from edge_api.app import assemble
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.problems import Problem
from edge_api.db.query import count_rows, find_row
from edge_api.db.tables import LEADS
from edge_api.desk.sessions import OWNER
from edge_api.mail import answers
from edge_api.operation.model import Service
from edge_api.settings import read_settings

WAIT = timedelta(milliseconds=150)


async def obey(service: Service, order: dict[str, Any]) -> None:
    """Send an answer or take one back, and say so."""
    ours = service[answers.Answers]
    try:
        if "send" in order:
            lead = await find_row(service.store, LEADS, order["send"])
            assert lead is not None
            message = await ours.send(lead, order["text"], "", OWNER)
            said = {"sent": message["id"], "text": order["text"]}
        elif "drain" in order:
            while await count_rows(service.store, EMAIL_OUTBOX):  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.05)
            said = {"drained": ""}
        else:
            await ours.take_back(order["undo"], OWNER)
            said = {"undone": order["undo"]}
    except Problem as problem:
        said = {"refused": problem.code, **order}
    print(json.dumps(said), flush=True)  # noqa: T201  its way to answer


async def main() -> None:
    """Run until the input ends, or the process."""
    async with assemble(read_settings(os.environ), exclusive=True) as assembly:
        print("ready", flush=True)  # noqa: T201  likewise
        tasks = []
        while line := await asyncio.to_thread(sys.stdin.readline):
            tasks.append(asyncio.create_task(obey(assembly.service, json.loads(line))))
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    answers.UNDO_TIME = WAIT  # type: ignore[misc]
    answers.MAX_PER_HOUR = 1_000_000  # type: ignore[misc]
    outbox.POLL_SECONDS = 0.02  # type: ignore[misc]
    asyncio.run(main())
