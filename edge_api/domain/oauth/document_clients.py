"""Clients that a document describes, as they were last seen: looked at again when that is old.

Whoever asks for a consent page makes this service fetch an address, so it does that seldom: one
request an address at a time, few in all, and after a failure not again for a while.
"""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from edge_api.domain.actor import SERVICE, Clock
from edge_api.domain.kept import SharedWork, SizedCache
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
        self._fetches: SharedWork[Row] = SharedWork()
        self._failures: SizedCache[tuple[datetime, Problem]] = SizedCache(FAILURES_MOST)
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
        failed = self._failures.get(url)
        if failed is not None and self._clock() < failed[0] + FAILED_FOR:
            raise failed[1].with_traceback(None)
        return await self._fetches.do(url, partial(self._take, url, known))

    async def _take(self, url: str, known: Row | None) -> Row:
        """Fetch a document and store its client; remember what is wrong with it."""
        try:
            async with self._places:
                given = await fetch_client(self._fetch, url, self._schemes, self._clock())
            if known is None:
                return await self._rows.add_stranger(given)
            values = {name: given[name] for name in given if name != "id"}
            await self._rows.change(url, "update", values, SERVICE)
        except Problem as problem:
            if problem.code == "invalid":
                self._failures.keep(url, (self._clock(), problem), 1)
            raise
        return {**known, **given}


def _is_fresh(row: Row, now: datetime) -> bool:
    return (row["fresh_until"] or "") > spell_instant(now)
