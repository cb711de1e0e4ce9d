"""The outbox of mail and webhooks: rows that wait to be sent, claimed and attempted.

A row is written in the transaction of what it reports. Dispatchers in any process share a table by
claims: a lease is a secret in the row and an instant until which nobody else takes it.
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
from edge_api.db.query import Filter, Query, Store, Update, Where
from edge_api.db.table import Row, Table
from edge_api.db.types import format_instant

T = TypeVar("T")

TICK_SECONDS: Final = 5.0
"""How often an outbox is looked at though nobody said that there is something."""
ENDING_SECONDS: Final = 8.0
"""How long the attempts under way may take when the service ends."""
RENEWAL_SECONDS: Final = 30.0
JITTER: Final = 0.2
"""The share by which a pause grows at most: what failed together is not tried together."""
_BYTES: Final = 16

WAITING: Final = Filter("dead_at", "is", None)
GIVEN_UP: Final = Filter("dead_at", "is", None, negated=True)

_random: Final = SystemRandom()


def due(now: datetime) -> Where:
    """Return the conditions of what may be claimed: its turn has come, or a lease is over."""
    return WAITING, Filter("due_at", "lte", format_instant(now))


def named(row_id: str) -> Where:
    """Return the condition that one row meets."""
    return (Filter("id", "eq", row_id),)


def released_values(table: Table) -> Row:
    """Return the values of a row that nobody holds."""
    return {"lease": None, **({"claims": 0} if "claims" in table.columns else {})}


def failed_values(table: Table, row: Row, again: datetime | None, now: datetime) -> Row:
    """Return the values after an attempt in vain: due again, or given up without `again`."""
    outcome = (
        {"dead_at": format_instant(now)} if again is None else {"due_at": format_instant(again)}
    )
    return {**released_values(table), "attempts": row["attempts"] + 1, **outcome}


def dead_values(table: Table, now: datetime) -> Row:
    """Return the values of a row that nobody attempts any more, until it is queued again."""
    return {**released_values(table), "dead_at": format_instant(now)}


def requeued_values(table: Table, now: datetime) -> Row:
    """Return the values of a row that has not been tried, and is due."""
    return {**released_values(table), "dead_at": None, "attempts": 0, "due_at": format_instant(now)}


def with_jitter(pause: timedelta, least: float = 1.0) -> timedelta:
    """Return a pause that is longer by chance, or shorter, down to `least` of it."""
    return pause * _random.uniform(least, 1 + JITTER)


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
    """The claims of one dispatcher on the rows of one table; a claim lasts for `length`."""

    def __init__(self, store: Store, clock: Clock, table: Table, length: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._table = table
        self._length = length

    async def claim(self, rows: Sequence[Row], now: datetime) -> list[Row]:
        """Claim rows due at `now`; return those that nobody else had, in order. Raises Problem."""
        if not rows:
            return []
        values = {"lease": token_hex(_BYTES), "due_at": self._until(now)}
        counts = sorted({row.get("claims", 0) for row in rows})
        updates = (self._claim(rows, count, values, now) for count in counts)
        outcomes = await self._store.run(*updates)
        ours = {row["id"]: row for outcome in outcomes for row in outcome.rows}
        return [ours[row["id"]] for row in rows if row["id"] in ours]

    def _claim(self, rows: Sequence[Row], count: int, values: Row, now: datetime) -> Update:
        ids = tuple(row["id"] for row in rows if row.get("claims", 0) == count)
        where: Where = (*due(now), Filter("id", "in", ids))
        if "claims" in self._table.columns:
            where += (Filter("claims", "eq", count),)
            values = {**values, "claims": count + 1}
        return Update(self._table, values, where)

    async def hold(self, row: Row, least: timedelta) -> Row | None:
        """Return the row with a lease that lasts for `least`; `None` if lost. Raises Problem."""
        now = self._clock()
        if datetime.fromisoformat(row["due_at"]) - now > least:
            return row
        renewed = {"due_at": self._until(now)}
        is_ours = await run_unless_conflict(self._store, self.change(row, renewed))
        return {**row, **renewed} if is_ours else None

    @asynccontextmanager
    async def keep(self, row: Row) -> AsyncIterator[None]:
        """Renew a lease again and again while an attempt is under way that may take minutes."""
        renewal = asyncio.create_task(self._renew(row))
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.wait({renewal})

    async def _renew(self, row: Row) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            with suppress(Problem):  # if it is another's by now, what is sent is sent
                await self._store.run(self.change(row, {"due_at": self._until(self._clock())}))

    async def give_back(self, rows: Sequence[Row]) -> None:
        """Let others have rows at once of which nothing was sent. Raises Problem."""
        if not rows:
            return
        where = (
            Filter("id", "in", tuple(row["id"] for row in rows)),
            Filter("lease", "in", tuple({row["lease"] for row in rows})),
        )
        values = {**released_values(self._table), "due_at": format_instant(self._clock())}
        await self._store.run(Update(self._table, values, where))

    def change(self, row: Row, values: Row) -> Update:
        """Return the query that changes a row, or nothing of its transaction if it is not ours."""
        return Update(self._table, values, held(row), at_least=1)

    def _until(self, now: datetime) -> str:
        return format_instant(now + self._length)


def held(row: Row) -> Where:
    """Return the conditions under which a row is still ours."""
    return *named(row["id"]), Filter("lease", "eq", row["lease"])


@contextmanager
def log_errors(log: logging.Logger, waits: str, fault: str | None = None) -> Iterator[None]:
    """Log what cuts a turn short, but not outages, which the store logs itself.

    An unforeseen error is logged as `fault`, with its trace; without `fault` neither its words nor
    its trace are, since they may contain an address.
    """
    try:
        yield
    except Problem as problem:
        if not is_unavailable(problem):
            log.warning("%s: %s", waits, problem.message)
    except Exception as error:
        log.exception(fault or f"{waits}: {type(error).__name__}", exc_info=fault is not None)


class Dispatcher(ABC):
    """Attempts what is due, for as long as it runs."""

    beat: datetime | None = None
    """When it last did anything; `None` while it does not run."""
    patience: float = ENDING_SECONDS
    """Seconds for the attempts under way when it ends."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._under_way: set[asyncio.Task[Any]] = set()

    def wake(self) -> None:
        """Have the outbox looked at now."""
        self._woken.set()

    async def run(self) -> None:
        """Dispatch what is due until cancelled, and finish attempts under way."""
        self._ending.clear()
        try:
            while True:
                self._woken.clear()
                self.beat = self._clock()
                if not await asyncio.shield(self._begin(self._take_turn())):
                    await wait_for(self._woken, TICK_SECONDS)
        finally:
            await self._end()

    @abstractmethod
    async def _take_turn(self) -> bool:
        """Attempt what is due; return whether there may be more of it. Nothing is raised."""

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _end(self) -> None:
        """Let attempts under way finish; what is late is due after its lease."""
        self._ending.set()
        under_way = set(self._under_way)
        try:
            if under_way:
                await asyncio.wait(under_way, timeout=self.patience)
        finally:
            self.beat = None
            for task in under_way:
                task.cancel()
            if under_way:
                await asyncio.wait(under_way, timeout=1)


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Return when the event is set, or after so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
