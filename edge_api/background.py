"""Background jobs: following builds, deleting expired rows, daily verification."""

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from watchfiles import awatch

from edge_api.admin.privacy import Retention
from edge_api.auth.actor import Clock
from edge_api.auth.tokens import SecretBox, SigningKeys
from edge_api.backup import verify as verification
from edge_api.backup.replica import Replication
from edge_api.backup.verify import (
    DEEP_HINT,
    RETRY_SECONDS,
    Verification,
    clear_scratch,
    parts_due,
    read_result,
)
from edge_api.db.internal_tables import (
    ACCESS_REQUESTS,
    AUTHORIZATION_CODES,
    DESK_LINKS,
    DESK_SESSIONS,
    ERASED_ROWS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
    WEBHOOK_ENDPOINTS,
)
from edge_api.db.problems import Problem, is_unavailable
from edge_api.db.query import Delete, Filter, Order, Read, Store, read_all
from edge_api.db.table import Table
from edge_api.db.tables import IDEMPOTENCY_KEYS
from edge_api.db.types import format_instant
from edge_api.health import Check, HealthCheck
from edge_api.journal.builds import BuildManager
from edge_api.journal.remote_builds import RemoteBuilds
from edge_api.newsletter.subscribers import Subscribers
from edge_api.oauth.authlib_server import REFRESH_TOKEN_LIFETIME
from edge_api.oauth.server import OAuthServer
from edge_api.operation.model import Service
from edge_api.schema.environment import EDGE
from edge_api.settings import Settings
from edge_api.stats.counter import FLUSH_SECONDS, Stats

VERIFY_SECONDS: Final = 60.0
"""The interval of checks whether a verification is due; the first comes after one interval."""
UNVERIFIED_WARN_SECONDS: Final = 3600.0
"""The time that an edge may serve without any result before readiness warns."""
PAUSE_FACTOR: Final = 10
"""After a verification that took a second, the next one waits for at least so many seconds."""

_log = logging.getLogger(__name__)


class DailyVerification:
    """Starts a verification when one is due, and reports the results to readiness."""

    def __init__(self, settings: Settings, replication: Replication | None = None) -> None:
        self._settings = settings
        self._replication = replication
        self._began = time.monotonic()
        self._not_before = 0.0

    @property
    def checks(self) -> Mapping[str, HealthCheck]:
        """The health checks for readiness."""
        replica = {"replica": self.check_replica} if self._settings.litestream_replica else {}
        copies = {part: partial(self.check_copy, part) for part in ("backup", "archive")}
        return {**replica, **copies}

    async def verify_due(self) -> None:
        """Verify what is due, in a process that ends with this one."""
        # A killed verification may have left large files.
        await asyncio.to_thread(clear_scratch, self._settings)
        due = parts_due(self._settings)
        if not due or time.monotonic() < self._not_before:
            return
        before, began = {part: self._read_error(part) for part in due}, time.monotonic()
        if status := await self._run(due):
            _log.warning("a verification ended without a result, with status %d", status)
        ended = time.monotonic()
        # Even if there is no result. A replica that takes long to fetch is fetched more rarely.
        self._not_before = ended + max(RETRY_SECONDS, PAUSE_FACTOR * (ended - began))
        for part in due:
            if (error := self._read_error(part)) and error != before[part]:
                _log.warning("%s (%s)", *error)

    def _read_error(self, part: str) -> tuple[str, str] | None:
        result = read_result(self._settings, part)
        return (result.public_error, result.detail) if result and result.public_error else None

    async def _run(self, parts: Sequence[str]) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            verification.__name__,
            *parts,
            stdin=DEVNULL,
            stdout=DEVNULL,
            env={
                **os.environ,
                "DATABASE_URL": self._settings.database_url,
                "LITESTREAM_REPLICA": self._settings.litestream_replica or "",
            },
            start_new_session=True,  # so that it can be killed with its children
        )
        try:
            return await process.wait()
        finally:
            if process.returncode != 0:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                await asyncio.to_thread(clear_scratch, self._settings)

    async def check_replica(self) -> Check:
        """Return a check of the replica's lag and of its last verification."""
        lag = await self._replication.check() if self._replication else Check("pass")
        result = read_result(self._settings, "replica")
        if result is None:
            is_late = time.monotonic() - self._began > UNVERIFIED_WARN_SECONDS
            error = "the replica has not been verified yet" if is_late else ""
        else:
            error = result.find_error("replica", self._settings)
        return _make_check(result, lag.message, error)

    async def check_copy(self, part: str) -> Check | None:
        """Return a check of the newest backup or archive; `None` without one.

        There should be an archive where BACKUP_RECIPIENT is set.
        """
        if result := read_result(self._settings, part):
            return _make_check(result, "", result.find_error(part, self._settings))
        is_late = time.monotonic() - self._began > UNVERIFIED_WARN_SECONDS
        is_missing = part == "archive" and is_late and self._settings.backup_recipient
        return Check("warn", "there is no archive of the journal yet") if is_missing else None


def _make_check(result: Verification | None, lag: str, error: str) -> Check:
    facts: dict[str, Any] = {"verified": result is not None and not error}
    if result and result.subject:
        facts["verified_at"] = result.at
        facts.update({"made_at": result.made_at} if result.made_at else {})
    message = "; ".join(filter(None, (lag, error and f"{error}; {DEEP_HINT}")))
    return Check("warn" if message else "pass", message, facts)


WRONG_SECRET: Final = (
    "the secret key is not the one that this store was used with: put that one back (SECRET_KEY, "
    "or the file edge.key, which a backup has beside it); to go on with the new one, run "
    f"{EDGE} signing-keys rotate, and webhooks rotate for each endpoint"
)


async def check_secret(store: Store, keys: SigningKeys, box: SecretBox) -> Check | None:
    """Warn if the secret key cannot decrypt the store's secrets; `box` has those of webhooks."""
    first = Read(WEBHOOK_ENDPOINTS, ("id", "secret"), order=(Order("id"),), limit=1)
    try:
        is_foreign = await keys.is_foreign()
        if is_foreign is None:
            for row in (await store.run(first))[0].rows:
                box.decrypt(row["secret"])
    except Problem:
        return None  # the health check of the store reports it
    except ValueError:
        is_foreign = True
    return Check("warn", WRONG_SECRET) if is_foreign else None


async def check_remote(remote: RemoteBuilds) -> Check:
    """Return a warning while the newest build cannot be fetched; the last one is served."""
    return Check("warn" if remote.error else "pass", remote.error)


REFRESH_SECONDS: Final = 0.5
"""The interval of checks for a new build where no event of the file system tells of it."""
WATCHER_POLL_SECONDS: Final = 10.0
"""The interval of checks of the watcher's heartbeat and the installed code."""
EXCHANGE_SECONDS: Final = 0.5
"""The interval at which edges on one store exchange the rate-limit hits that each has counted."""
DELETE_EXPIRED_SECONDS: Final = 60.0  # the interval at which expired rows are deleted
SWEEP_SECONDS: Final = 3600.0  # the interval at which old and unused rows are deleted
FULL_GC_SECONDS: Final = 86400.0
"""The interval of full garbage collections, for the cycles that replaced builds have left."""

Loop = Callable[[], Coroutine[None, None, None]]
"""Runs until it is cancelled."""
GcFreeze = Callable[..., None]
"""Freezes the objects for the garbage collector; `full=False` first collects new ones only."""


@asynccontextmanager
async def background_jobs(
    service: Service, loops: Sequence[Loop], freeze: GcFreeze
) -> AsyncIterator[None]:
    """Run the background jobs, and the given loops, until the service ends."""
    retention = Retention(service.store, service.clock, service.settings)
    store, oauth = service.store, service[OAuthServer]
    jobs: tuple[tuple[float | AsyncIterator[None], str, Callable[[], Awaitable[object]]], ...] = (
        (
            watch_folder(service.settings.build_dir),
            "looking for a new build",
            partial(_refresh_build, service[BuildManager], freeze),
        ),
        (5, "noting when keys were used", service.authenticator.flush),
        (
            DELETE_EXPIRED_SECONDS,
            "deleting expired rows",
            partial(delete_expired, store, service.clock),
        ),
        (FLUSH_SECONDS, "storing the stats", service[Stats].flush),
        (DELETE_EXPIRED_SECONDS, "rotating signing keys", oauth.maintain),
        (SWEEP_SECONDS, "deleting unused grants", oauth.sweep),
        (SWEEP_SECONDS, "deleting what was not confirmed", service[Subscribers].forget_pending),
        (SWEEP_SECONDS, "deleting rows that are old enough", retention.apply),
    )
    works = (*(loop() for loop in loops), *(every(*job) for job in jobs))
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()  # all before waiting, since some finish their current work first
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(Problem):  # the store logs that it is away
            await service[Stats].flush()


EXPIRING_TABLES: Final[Mapping[Table, timedelta]] = {
    IDEMPOTENCY_KEYS: timedelta(0),
    ACCESS_REQUESTS: timedelta(0),
    DESK_SESSIONS: timedelta(0),
    REVOKED_TOKENS: timedelta(0),
    USED_ASSERTIONS: timedelta(0),
    DESK_LINKS: timedelta(0),
    ERASED_ROWS: timedelta(0),
    # Kept as long as the tokens that must be revoked if the code or token is replayed may live.
    AUTHORIZATION_CODES: REFRESH_TOKEN_LIFETIME,
    REFRESH_TOKENS: REFRESH_TOKEN_LIFETIME,
}
"""The tables whose expired rows are deleted, and how long after their expiry."""


async def delete_expired(store: Store, clock: Clock) -> None:
    """Delete expired rows; nothing is written to a table without any. Raises Problem."""
    for table, retention in EXPIRING_TABLES.items():
        expired = (Filter("expires_at", "lte", format_instant(clock() - retention)),)
        if await read_all(store, Read(table, ("id",), expired, limit=1)):
            await store.run(Delete(table, expired))


async def every(
    times: float | AsyncIterator[None], name: str, work: Callable[[], Awaitable[object]]
) -> None:
    """Run `work` at intervals in seconds, or whenever `times` yields.

    Its failures are logged by name, except outages, which the store logs.
    """
    async for _ in times if isinstance(times, AsyncIterator) else _wait_again(times):
        try:
            await work()
        except Problem as problem:
            if not is_unavailable(problem):
                _log.warning("background work waits: %s: %s", name, problem.message)
        except Exception:  # noqa: BLE001  the next turn may succeed
            _log.exception("background work failed, and will be tried again: %s", name)


async def _wait_again(seconds: float) -> AsyncIterator[None]:
    while True:
        await asyncio.sleep(seconds)
        yield


async def watch_folder(folder: Path) -> AsyncGenerator[None, None]:
    """Yield soon after each change of the names in a folder, and every REFRESH_SECONDS.

    A network file system may report no changes, and a system may have no more watches. A watch is
    bound to one folder: what happens in one that takes its place is seen at the next interval.
    """
    while True:
        with suppress(OSError, RuntimeError, ExceptionGroup):
            async for _ in awatch(
                folder,
                watch_filter=None,
                # Changes are collected for 200 ms at most, or until 50 ms pass without one.
                debounce=200,
                step=50,
                rust_timeout=round(1000 * REFRESH_SECONDS),
                yield_on_timeout=True,
                recursive=False,
            ):
                yield
        await asyncio.sleep(REFRESH_SECONDS)
        yield


async def _refresh_build(builds: BuildManager, freeze: GcFreeze) -> None:
    before = builds.current
    await builds.refresh()
    if builds.current is not before:
        freeze(full=False)


def gc_freeze(*, full: bool = True) -> None:
    """Collect garbage, and freeze the rest so that the collector passes over it.

    Under load it would scan all objects about once a second, and block all requests meanwhile.
    Cycles freed later are collected by the next `full` call, which takes some 0.1 s.
    """
    if full:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
