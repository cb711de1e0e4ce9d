"""What an edge does without a request: it follows the builds, writes down uses, and clears away."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from edge_api.api.service import Service
from edge_api.domain.edition import Shelf
from edge_api.domain.retention import Retention
from edge_api.schema.problems import Problem, is_unavailable

REFRESH_SECONDS: Final = 0.5
"""How often the edge looks whether another build is current; it follows one within a second."""
LOOK_SECONDS: Final = 10.0
"""How often the edge looks at the watcher's heartbeat and at the installed code."""
EXCHANGE_SECONDS: Final = 0.5
"""How often edges on one store tell one another what each has counted by itself."""
HOUSEKEEPING_SECONDS: Final = 5.0
"""How often uses of credentials are written down."""
FORGETTING_SECONDS: Final = 60.0
"""How often what has expired is deleted."""
SWEEPING_SECONDS: Final = 3600.0
"""How often it is looked whether anything old is left that nobody uses."""

Loop = Callable[[], Coroutine[None, None, None]]
"""Runs until it is cancelled."""
Settle = Callable[[], None]
"""Is told that what there is now is there to stay."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def housekeeping(
    service: Service, loops: Sequence[Loop], settled: Settle
) -> AsyncIterator[None]:
    """Keep house, and run the loops of others, until the service ends."""
    retention = Retention(service.store, service.clock, service.settings)
    tasks = [
        *(asyncio.create_task(loop()) for loop in loops),
        _start(REFRESH_SECONDS, partial(_follow, service.shelf, settled)),
        _start(HOUSEKEEPING_SECONDS, service.access.flush),
        _start(FORGETTING_SECONDS, service.leads.forget_expired),
        _start(FORGETTING_SECONDS, service.access_requests.forget_expired),
        _start(FORGETTING_SECONDS, service.oauth.keep_house),
        _start(SWEEPING_SECONDS, service.oauth.sweep),
        _start(SWEEPING_SECONDS, retention.apply),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()  # all at once: some finish what is under way first
        await asyncio.gather(*tasks, return_exceptions=True)


async def every(seconds: float, work: Callable[[], Awaitable[object]]) -> None:
    """Do `work` again and again; a failure is logged and tried again.

    That the store is away is logged by the store itself.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Problem as problem:
            if not is_unavailable(problem):
                name = getattr(work, "__qualname__", work)
                _log.warning("background work waits: %s: %s", name, problem.sentence)
        except Exception:  # noqa: BLE001  the next turn may succeed
            _log.exception("background work failed; it is tried again")


def _start(seconds: float, work: Callable[[], Awaitable[object]]) -> asyncio.Task[None]:
    return asyncio.create_task(every(seconds, work))


async def _follow(shelf: Shelf, settled: Settle) -> None:
    """Take in another build, if there is one."""
    before = shelf.current
    await shelf.refresh()
    if shelf.current is not before:
        settled()
