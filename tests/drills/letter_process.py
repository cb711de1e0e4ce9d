"""Processes that queue and send letters as an edge does: one is forked for each line that is read.

Leases carry the line, a number, so that a drill can let those of a dead process end. Forking saves
the start of an interpreter for each of hundreds of lives.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from secrets import token_hex

from edge_api import outbox
from edge_api.auth.actor import system_clock
from edge_api.backup.files import secret_key
from edge_api.db.problems import Problem
from edge_api.mail.dispatcher import make_mail_service
from edge_api.newsletter import sending
from edge_api.newsletter.mailings import Mailings
from edge_api.open_store import command_store
from edge_api.settings import read_settings


async def work() -> None:
    """Queue and send, until the end of the process."""
    settings = read_settings(os.environ, dotenv=None)
    async with command_store(settings, create=True) as store:
        letters = sending.Letters(settings, store, system_clock)
        secret = secret_key(settings)
        mailing = make_mail_service(settings, store, system_clock, secret, letters=letters.prepare)
        mailings = Mailings(settings, store, system_clock, mailing.outbox)
        running = asyncio.create_task(mailing.dispatcher.run())
        print("ready", os.getpid(), flush=True)  # noqa: T201
        while not running.done():
            with suppress(Problem):
                await letters.queue(mailings)
            mailing.dispatcher.wake()
            await asyncio.sleep(0.05)


def make_lease(life: str, size: int) -> str:
    """Return a lease of one life."""
    return f"{life}:{token_hex(size)}"


def main() -> None:
    """Fork a process for each line."""
    # Few are queued at a time, so that kills fall between many transactions.
    sending.AHEAD_SECONDS = 1  # type: ignore[misc]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            vars(outbox)["token_hex"] = partial(make_lease, line.strip())
            asyncio.run(work())
            return


if __name__ == "__main__":
    main()
