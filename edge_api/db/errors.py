"""Store health, and the problems that engine errors become."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Final

from edge_api.db.migrations import MIGRATIONS
from edge_api.db.problems import CANCELED, OUTCOME_UNKNOWN, Problem, is_unavailable
from edge_api.db.table import Table
from edge_api.schema.environment import EDGE

PROBE_CACHE_SECONDS: Final = 2.0  # how long the result of a probe is reused
RECOVERY_POLL_SECONDS: Final = 1.0  # the interval of probes of an unavailable store

_log = logging.getLogger(__name__)


class RecoveringStore(ABC):
    """The common part of the stores of both engines: probes, the log of outages, and closing."""

    def __init__(self) -> None:
        self._probing: asyncio.Task[str] | None = None
        self._stale_at = 0.0
        self._outage: asyncio.Task[None] | None = None
        self._failed = 0
        self._closing: asyncio.Task[None] | None = None

    @abstractmethod
    async def _check(self) -> None:
        """Return when the store has been read and could be written now. Raises Problem."""

    @abstractmethod
    async def _end(self) -> None:
        """Finish the work in progress and close every connection, within seconds."""

    async def probe(self) -> None:
        """Return when the store works, by a probe of the last two seconds. Raises Problem."""
        if self._probing is None or (self._probing.done() and time.monotonic() > self._stale_at):
            self._probing = asyncio.create_task(self._find_error())
            self._stale_at = time.monotonic() + PROBE_CACHE_SECONDS
        error = await asyncio.shield(self._probing)
        if error:
            raise unavailable(error)

    async def _find_error(self) -> str:
        """Return the error message, or an empty text."""
        try:
            async with asyncio.timeout(1.0):
                await self._check()
        except TimeoutError:
            return "The store does not answer"
        except Problem as problem:
            return problem.message.removesuffix(RETRY_SUFFIX)
        return ""

    async def close(self) -> None:
        """Finish the work in progress and close every connection, within seconds."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
            if self._outage is not None:
                self._outage.cancel()
        await asyncio.shield(self._closing)

    def refuse_closed(self) -> None:
        """Raise Problem `unavailable` once it is closed."""
        if self._closing:
            raise unavailable("The store is closed")

    def record_failure(self, error: Exception, reason: object) -> None:
        """Count an attempt that failed with `unavailable`; log `reason` if it is the first.

        Nothing else logs an outage. A read that took too long does not count: its client gets an
        error, which is logged elsewhere.
        """
        if self._closing or not is_unavailable(error):
            return
        if self._outage is None:
            self._failed = 1
            _log.warning("the store is unavailable: %s", str(reason) or type(reason).__name__)
            # An empty context: the line belongs to no request id.
            self._outage = asyncio.create_task(self._await_return(), context=Context())
        elif asyncio.current_task() is not self._outage:  # a probe of its own is no attempt
            self._failed += 1

    async def _await_return(self) -> None:
        """Log that the store is back once a probe succeeds and no attempt fails meanwhile."""
        began, failed = time.monotonic(), -1
        while failed != self._failed:
            failed = self._failed
            await asyncio.sleep(RECOVERY_POLL_SECONDS)
            try:
                await self._check()
            except Exception:  # noqa: BLE001  whatever it is, the store is not back
                failed = -1
        self._outage = None
        away, failed = time.monotonic() - began, self._failed
        _log.warning("the store is available again after %.1f s; %d attempts failed", away, failed)


_RETRY: Mapping[str, str] = {"Retry-After": "2"}
"""In seconds: a lock is gone by then, or a person has to act anyway."""


RETRY_SUFFIX: Final = "; try again later"


def unavailable(message: str) -> Problem:
    """Return the problem of a store that cannot do its work now."""
    return Problem("unavailable", f"{message}{RETRY_SUFFIX}", headers=_RETRY)


def outcome_unknown(message: str) -> Problem:
    """Return the problem of a write of which nobody knows whether it is stored."""
    return Problem(
        "unavailable",
        f"{message}, and it is not known whether this was stored; "
        "send it again with the same Idempotency-Key",
        sqlstate=OUTCOME_UNKNOWN,
        headers=_RETRY,
    )


def query_timeout() -> Problem:
    """Return the problem of a read that was ended because it took too long."""
    return Problem(
        "unavailable",
        "The query took too long; narrow it, or sort by a column with an index",
        sqlstate=CANCELED,
        headers=_RETRY,
    )


def constraint_violation(table: Table, columns: Sequence[str], sqlstate: str) -> Problem:
    """Return the problem of a row that violates a constraint, with PostgreSQL's code."""
    return Problem(
        "invalid", f"{_names(table, columns)}: breaks a rule of {table.name}", sqlstate=sqlstate
    )


def unique_violation(table: Table, columns: Sequence[str], values: str | None) -> Problem:
    """Return the problem of values that exist already, separated by commas, if they are known."""
    names = _names(table, columns)
    found = "" if values is None else f"=({values})"
    return Problem(
        "conflict",
        f"{names}: a row with this value exists already",
        details=f"Key ({names}){found} already exists.",
    )


def _names(table: Table, columns: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(columns)) or table.name


class StoreRefusal(Exception):  # noqa: N818  it refuses; nothing is broken in the code
    """The store cannot be used as it is; the message is one sentence with the fix."""


def refuse_newer(version: int, store: str) -> None:
    """Refuse a store that a later version of the edge has made. Raises StoreRefusal."""
    if version > len(MIGRATIONS):
        raise StoreRefusal(
            f"{store} has schema version {version} and this edge knows {len(MIGRATIONS)}: "
            "start the version that made it, or a later one"
        )


class OlderSchema(StoreRefusal):
    """The store lacks migrations, which this command does not apply."""

    def __init__(self, version: int, store: str, backup: str) -> None:
        super().__init__(
            f"{store}: the store has schema {version} and this version needs {len(MIGRATIONS)}: "
            f"run {EDGE} upgrade, {backup}"
        )


def missing_store(where: str) -> StoreRefusal:
    """Return the refusal for a missing store: `at` a path, `in` a database."""
    return StoreRefusal(f"there is no store {where}: serve, migrate or keys issue makes one")
