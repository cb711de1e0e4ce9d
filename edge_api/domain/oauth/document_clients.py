"""Clients that a document describes, as they were last seen: looked at again when that is old.

Whoever asks for a consent page makes this service fetch an address, so it does that seldom: one
request an address at a time, few in all, and after a failure not again for a while.
"""

import asyncio
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from edge_api.domain.actor import SERVICE, Clock
from edge_api.domain.oauth.client_rows import ClientRows
from edge_api.domain.oauth.documents import STALE_FOR, Fetch, Unreachable, fetch_client
from edge_api.schema.kinds import spell_instant
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row

FETCHES_MOST: Final = 8
"""At the same time."""
FAILED_FOR: Final = timedelta(seconds=30)
"""How long a failure is told again without another look."""
FAILURES_MOST: Final = 1000
"""How many are remembered, the newest ones."""


class DocumentClients:
    """The clients of one store that documents describe."""

    def __init__(
        self, rows: ClientRows, clock: Clock, fetch: Fetch, schemes: tuple[str, ...]
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._fetch = fetch
        self._schemes = schemes
        self._running: dict[str, asyncio.Task[Row]] = {}
        self._failures: OrderedDict[str, tuple[datetime, Problem]] = OrderedDict()
        self._places = asyncio.Semaphore(FETCHES_MOST)

    async def find(self, url: str, known: Row | None) -> Row:
        """Return the client as its document has it, or has had it lately.

        A document that is away is believed for a while as it was; a faulty one is not. Raises
        Problem `invalid` that says what is wrong with it.
        """
        if known is not None and _is_fresh(known, self._clock()):
            return known
        try:
            return await self._look(url, known)
        except Unreachable:
            if known is not None and _is_fresh(known, self._clock() - STALE_FOR):
                return known
            raise

    async def _look(self, url: str, known: Row | None) -> Row:
        """Fetch a document, or wait for the request that is fetching it. Raises Problem."""
        failed_at, problem = self._failures.get(url, (None, None))
        if problem is not None and failed_at is not None and self._clock() < failed_at + FAILED_FOR:
            raise problem.with_traceback(None)
        task = self._running.get(url)
        if task is None:
            task = self._running[url] = asyncio.create_task(self._take(url, known))
            task.add_done_callback(lambda done: self._note(url, done))
        return await asyncio.shield(task)  # who waits may go away, others still wait

    async def _take(self, url: str, known: Row | None) -> Row:
        async with self._places:
            given = await fetch_client(self._fetch, url, self._schemes, self._clock())
        if known is None:
            return await self._rows.add_stranger(given)
        values = {name: given[name] for name in given if name != "id"}
        await self._rows.change(url, "update", values, SERVICE)
        return {**known, **given}

    def _note(self, url: str, task: asyncio.Task[Row]) -> None:
        """Remember how it ended, if it did not go well."""
        del self._running[url]
        fault = None if task.cancelled() else task.exception()
        self._failures.pop(url, None)
        if isinstance(fault, Problem) and fault.code == "invalid":
            self._failures[url] = self._clock(), fault
        if len(self._failures) > FAILURES_MOST:
            self._failures.popitem(last=False)


def _is_fresh(row: Row, now: datetime) -> bool:
    return (row["fresh_until"] or "") > spell_instant(now)
