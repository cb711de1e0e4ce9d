"""Probes of a store, and the problems and refusals for errors of its engine."""

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
        self._recovery: asyncio.Task[None] | None = None
        self._failures = 0
        self._closing: asyncio.Task[None] | None = None

    @abstractmethod
    async def _check(self) -> None:
        """Check that the store can be read and written. Raises Problem."""

    @abstractmethod
    async def _end(self) -> None:
        """Finish the work in progress and close every connection, within seconds."""

    async def probe(self) -> None:
        """Check that the store works; reuse a result of the last two seconds. Raises Problem."""
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
            if self._recovery is not None:
                self._recovery.cancel()
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
        if self._recovery is None:
            self._failures = 1
            _log.warning("the store is unavailable: %s", str(reason) or type(reason).__name__)
            # An empty context: the line belongs to no request id.
            self._recovery = asyncio.create_task(self._log_recovery(), context=Context())
        elif asyncio.current_task() is not self._recovery:  # probes of this task do not count
            self._failures += 1

    async def _log_recovery(self) -> None:
        """Log that the store is available once a probe succeeds and no attempt fails meanwhile."""
        began, failed = time.monotonic(), -1
        while failed != self._failures:
            failed = self._failures
            await asyncio.sleep(RECOVERY_POLL_SECONDS)
            try:
                await self._check()
            except Exception:  # noqa: BLE001  after any error the store is unavailable
                failed = -1
        self._recovery = None
        away, failed = time.monotonic() - began, self._failures
        _log.warning("the store is available again after %.1f s; %d attempts failed", away, failed)


_RETRY_HEADERS: Mapping[str, str] = {"Retry-After": "2"}
"""Two seconds: a lock is released by then, and any other cause needs a person."""


RETRY_SUFFIX: Final = "; try again later"


def unavailable(message: str) -> Problem:
    """Return the problem of a store that cannot do its work now."""
    return Problem("unavailable", f"{message}{RETRY_SUFFIX}", headers=_RETRY_HEADERS)


def outcome_unknown(message: str) -> Problem:
    """Return the problem of a write whose outcome is unknown."""
    return Problem(
        "unavailable",
        f"{message}, and it is not known whether this was stored; "
        "send it again with the same Idempotency-Key",
        sqlstate=OUTCOME_UNKNOWN,
        headers=_RETRY_HEADERS,
    )


def query_timeout() -> Problem:
    """Return the problem of a read that was ended because it took too long."""
    return Problem(
        "unavailable",
        "The query took too long; narrow it, or sort by a column with an index",
        sqlstate=CANCELED,
        headers=_RETRY_HEADERS,
    )


def constraint_violation(table: Table, columns: Sequence[str], sqlstate: str) -> Problem:
    """Return the problem of a row that violates a constraint, with PostgreSQL's code."""
    return Problem(
        "invalid", f"{_names(table, columns)}: breaks a rule of {table.name}", sqlstate=sqlstate
    )


def unique_violation(table: Table, columns: Sequence[str], values: str | None) -> Problem:
    """Return the problem of a duplicate; `values` are joined by commas, `None` if unknown."""
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
    """The store lacks migrations, which this command does not apply.

    `backup_hint` is a clause that ends the message: it says how a backup is made first.
    """

    def __init__(self, version: int, store: str, backup_hint: str) -> None:
        super().__init__(
            f"{store}: the store has schema {version} and this version needs {len(MIGRATIONS)}: "
            f"run {EDGE} upgrade, {backup_hint}"
        )


class MissingStore(StoreRefusal):
    """There is no store; `where` is `at PATH` or `in DATABASE`."""

    def __init__(self, where: str) -> None:
        super().__init__(f"there is no store {where}: serve, migrate or keys issue makes one")
