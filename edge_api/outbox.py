"""The outbox of mail and webhooks: rows that wait to be sent, claimed and attempted.

A row is written in the transaction of the change that it reports. Dispatchers in several processes
share a table by claiming rows: a lease is a random token in the row, and an instant until which no
other dispatcher claims the row.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime, timedelta
from random import SystemRandom
from secrets import token_hex
from typing import Any, Final, TypeVar

from edge_api.auth.actor import Clock
from edge_api.db.problems import Problem, is_unavailable
from edge_api.db.query import Filter, Query, Store, Update, Where, where_id
from edge_api.db.table import Row, Table
from edge_api.db.types import format_instant

T = TypeVar("T")

POLL_SECONDS: Final = 5.0
RENEWAL_SECONDS: Final = 30.0
JITTER: Final = 0.2
"""The largest fraction by which a pause is lengthened, so that retries do not coincide."""

WAITING: Final = Filter("dead_at", "is", None)
UNCLAIMED: Final = WAITING, Filter("lease", "is", None)
GIVEN_UP: Final = Filter("dead_at", "is", None, negated=True)


def where_due(now: datetime) -> Where:
    """Return the conditions of rows that may be claimed: they are due, or their lease is over."""
    return WAITING, Filter("due_at", "lte", format_instant(now))


def released_values(table: Table) -> Row:
    """Return the values of a row without a lease."""
    return {"lease": None, **({"claims": 0} if "claims" in table.columns else {})}


def failed_values(table: Table, row: Row, retry_at: datetime | None, now: datetime) -> Row:
    """Return the values after a failed attempt: due at `retry_at`, or dead without it."""
    outcome = {"due_at": format_instant(retry_at)} if retry_at else {"dead_at": format_instant(now)}
    return {**released_values(table), "attempts": row["attempts"] + 1, **outcome}


def dead_values(table: Table, now: datetime) -> Row:
    """Return the values of a dead row, which is not attempted until it is queued again."""
    return {**released_values(table), "dead_at": format_instant(now)}


def requeued_values(table: Table, now: datetime) -> Row:
    """Return the values of a row without attempts that is due now."""
    return {**released_values(table), "dead_at": None, "attempts": 0, "due_at": format_instant(now)}


def with_jitter(pause: timedelta, minimum: float = 1.0) -> timedelta:
    """Return the pause times a random factor from `minimum` to 1 + JITTER."""
    return pause * SystemRandom().uniform(minimum, 1 + JITTER)


async def run_unless_conflict(store: Store, *queries: Query) -> bool:
    """Execute queries; return whether there was no conflict. Raises any other Problem."""
    try:
        await store.run(*queries)
    except Problem as problem:
        if problem.code != "conflict":
            raise
        return False
    return True


class Leases:
    """The leases of one dispatcher on the rows of one table; each lasts for `duration`."""

    def __init__(self, store: Store, clock: Clock, table: Table, duration: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._table = table
        self._duration = duration

    async def claim(self, rows: Sequence[Row], now: datetime) -> list[Row]:
        """Claim rows due at `now`; return those that nobody else has, in order. Raises Problem."""
        if not rows:
            return []
        values = {"lease": token_hex(16), "due_at": self._lease_end(now)}
        counts = sorted({row.get("claims", 0) for row in rows})
        results = await self._store.run(
            *(self._claim(rows, count, values, now) for count in counts)
        )
        ours = {row["id"]: row for result in results for row in result.rows}
        return [ours[row["id"]] for row in rows if row["id"] in ours]

    def _claim(self, rows: Sequence[Row], count: int, values: Row, now: datetime) -> Update:
        ids = tuple(row["id"] for row in rows if row.get("claims", 0) == count)
        where: Where = (*where_due(now), Filter("id", "in", ids))
        if "claims" in self._table.columns:
            where += (Filter("claims", "eq", count),)
            values = {**values, "claims": count + 1}
        return Update(self._table, values, where)

    async def ensure_lease(self, row: Row, minimum: timedelta) -> Row | None:
        """Return the row with `minimum` or more of its lease left; `None` if it is lost.

        Raises Problem.
        """
        now = self._clock()
        if datetime.fromisoformat(row["due_at"]) - now > minimum:
            return row
        renewed = {"due_at": self._lease_end(now)}
        is_ours = await run_unless_conflict(self._store, self.update(row, renewed))
        return {**row, **renewed} if is_ours else None

    @asynccontextmanager
    async def renewing(self, row: Row) -> AsyncIterator[None]:
        """Renew a lease periodically during an attempt, which may take minutes."""
        renewal = asyncio.create_task(self._renew(row))
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.wait({renewal})

    async def _renew(self, row: Row) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            with suppress(Problem):  # the attempt continues, even if the lease is lost
                await self._store.run(self.update(row, {"due_at": self._lease_end(self._clock())}))

    async def release(self, rows: Sequence[Row]) -> None:
        """Release the leases of rows that were not attempted. Raises Problem."""
        if not rows:
            return
        where = (
            Filter("id", "in", tuple(row["id"] for row in rows)),
            Filter("lease", "in", tuple({row["lease"] for row in rows})),
        )
        values = {**released_values(self._table), "due_at": format_instant(self._clock())}
        await self._store.run(Update(self._table, values, where))

    def update(self, row: Row, values: Row) -> Update:
        """Return the update of a row; without our lease its transaction conflicts."""
        return Update(self._table, values, where_leased(row), at_least=1)

    def _lease_end(self, now: datetime) -> str:
        return format_instant(now + self._duration)


def where_leased(row: Row) -> Where:
    """Return the conditions of a row on which we still have the lease."""
    return *where_id(row["id"]), Filter("lease", "eq", row["lease"])


@contextmanager
def log_errors(log: logging.Logger, message: str, failure: str | None = None) -> Iterator[None]:
    """Log an error of the block, but not outages, which the store logs itself.

    Another exception is logged as `failure` with its traceback, or without `failure` by its type
    alone: message and traceback may contain an address.
    """
    try:
        yield
    except Problem as problem:
        if not is_unavailable(problem):
            log.warning("%s: %s", message, problem.message)
    except Exception as error:
        log.exception(failure or f"{message}: {type(error).__name__}", exc_info=failure is not None)


class OutboxDispatcher(ABC):
    """Attempts the rows that are due, for as long as it runs."""

    active_at: datetime | None = None
    """The time of its last activity; `None` while it does not run."""
    shutdown_timeout: float = 8.0
    """Seconds that attempts in progress may still take when the dispatcher is stopped."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._wake_event = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    def wake(self) -> None:
        """Poll the outbox now."""
        self._wake_event.set()

    async def run(self) -> None:
        """Dispatch rows that are due until cancelled, and finish the attempts in progress."""
        self._stopping.clear()
        try:
            while True:
                self._wake_event.clear()
                self.active_at = self._clock()
                if not await asyncio.shield(self._start_task(self._dispatch_due())):
                    await wait_for(self._wake_event, POLL_SECONDS)
        finally:
            await self._shut_down()

    @abstractmethod
    async def _dispatch_due(self) -> bool:
        """Attempt the rows that are due; return whether there may be more. Raises nothing."""

    def _start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _shut_down(self) -> None:
        """Let attempts in progress finish; rows of cancelled ones are due after their lease."""
        self._stopping.set()
        tasks = set(self._tasks)
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self.shutdown_timeout)
        finally:
            self.active_at = None
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=1)


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most for `seconds`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
