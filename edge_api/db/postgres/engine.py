"""The engine for many edges: a store in a PostgreSQL database, which reconnects by itself."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlsplit

import asyncpg

from edge_api.db.errors import (
    MissingStore,
    OlderSchema,
    RecoveringStore,
    StoreRefusal,
    refuse_newer,
    unavailable,
)
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.postgres.connection import (
    CONNECT_SECONDS,
    MARGIN_SECONDS,
    SCHEMA,
    Connection,
    EngineError,
    PostgresConnection,
    connect,
    milliseconds,
    postgresql_problem,
    split_hosts,
    sqlstate_of,
)
from edge_api.db.postgres.store_connections import WRITE_LOCK, Location, Readers, Writer
from edge_api.db.problems import Problem
from edge_api.db.query import Query, QueryResult, Read
from edge_api.db.tables import TABLES
from edge_api.db.types import format_instant

MIN_VERSION: Final = 13
"""The first PostgreSQL with `pg_current_snapshot`, by which changes are noticed."""


async def migrate(url: str, now: str, *, create: bool, migrates: bool = True) -> None:
    """Check the database and migrate it, recording `now`; `create` allows a new store.

    Without `migrates` an older store is refused. Raises StoreRefusal.
    """
    try:
        # An edge that starts waits a minute for others that write or migrate.
        session = await connect(url, {"lock_timeout": milliseconds(60.0)}, None)
        try:
            version = await _check(session, url, create=create)
            if not migrates and 0 < version < len(MIGRATIONS):
                raise OlderSchema(version, describe_url(url), "once there is a backup (pg_dump)")
            await _apply_migrations(session, now)
        finally:
            await session.close(timeout=CONNECT_SECONDS)
    except (*EngineError, ValueError) as error:
        raise store_refusal(error, url) from None


async def schema_version(connection: Connection) -> int:
    """Return the number of migrations that the store has. Raises EngineError."""
    table = await connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.schema_steps")
    if table is None:
        return 0
    return int(await connection.fetchval("SELECT max(number) FROM schema_steps") or 0)


async def _check(session: PostgresConnection, url: str, *, create: bool) -> int:
    """Check server and database; return the number of migrations that the store has.

    Raises StoreRefusal.
    """
    number, encoding, mode = [
        await session.fetchval("SELECT current_setting($1)", name)
        for name in ("server_version_num", "server_encoding", "transaction_read_only")
    ]
    check_server(int(number), encoding, is_read_only=mode == "on")
    version = await schema_version(session)
    refuse_newer(version, describe_url(url))
    if version:
        return version
    if not create:
        raise MissingStore(f"in {describe_url(url)}")
    other_tables = await session.fetchval(
        "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)", SCHEMA
    )
    # Another edge may have made the schema meanwhile.
    if other_tables and not await schema_version(session):
        raise StoreRefusal(
            f"the schema {SCHEMA} of {describe_url(url)} belongs to another program: "
            "set DATABASE_URL to another database"
        )
    return version


def check_server(number: int, encoding: str, *, is_read_only: bool) -> None:
    """Raise StoreRefusal for a server that is too old, not in UTF-8, or read-only."""
    if number < MIN_VERSION * 10_000:
        raise StoreRefusal(
            f"PostgreSQL {number // 10_000}.{number % 10_000} is too old: "
            f"install {MIN_VERSION} or later"
        )
    if encoding != "UTF8":
        raise StoreRefusal(
            f"the database has the encoding {encoding}: "
            "make one with ENCODING 'UTF8' TEMPLATE template0, and set DATABASE_URL to it"
        )
    if is_read_only:
        raise StoreRefusal(
            "the database can only be read, as on a standby: set DATABASE_URL to the primary server"
        )


async def _apply_migrations(session: PostgresConnection, now: str) -> None:
    """Apply all missing migrations or none; one of several edges that start at once does so."""
    if await schema_version(session) == len(MIGRATIONS):
        return
    async with session.transaction():
        await session.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
        # IF NOT EXISTS would need the right to create a schema even where it exists.
        if await session.fetchval("SELECT to_regnamespace($1)", SCHEMA) is None:
            await session.execute(f"CREATE SCHEMA {SCHEMA}")
        await session.execute(
            "CREATE TABLE IF NOT EXISTS schema_steps ("
            'number bigint NOT NULL PRIMARY KEY, taken_at text COLLATE "C" NOT NULL)'
        )
        await session.fetchval("SELECT set_config($1, $2, true)", f"{SCHEMA}.now", now)
        for number in range(await schema_version(session), len(MIGRATIONS)):
            for statement in MIGRATIONS[number].postgresql:
                await session.execute(statement)
            await session.execute("INSERT INTO schema_steps VALUES ($1, $2)", number + 1, now)


_REASONS: Final = {
    "28P01": "refuses the password: correct it in DATABASE_URL",
    "28": "does not let this user in: correct the user in DATABASE_URL, or pg_hba.conf",
    "3D": "is not there: make it with createdb, or correct DATABASE_URL",
    "42501": (
        "does not let this user make a schema: "
        "GRANT CREATE ON DATABASE to it, or let the owner start the edge once"
    ),
    "53300": "has no connection left: raise max_connections, or end others",
    "55P03": "is locked by another edge that brings it forward: wait until it is done",
    "57P03": "starts up or shuts down: try again",
    "0A": "is behind a pooler that lacks what is needed: connect to the server itself",
    "26": "is behind a pooler without prepared statements: connect to the server itself",
    "42P05": "is behind a pooler without prepared statements: connect to the server itself",
}
"""Refusals by SQLSTATE or its class; each follows the name of the database."""


def store_refusal(error: Exception, url: str) -> StoreRefusal:
    """Return the refusal for an engine's error at the start."""
    name = describe_url(url)
    if "startup parameter" in str(error):
        return StoreRefusal(
            f"{name} is behind a pooler that takes no settings: connect to the server itself"
        )
    if isinstance(error, asyncpg.PostgresError):
        code = sqlstate_of(error)
        reason = _REASONS.get(code) or _REASONS.get(code[:2]) or f"cannot be used ({code})"
        return StoreRefusal(f"{name} {reason}")
    if isinstance(error, ValueError):
        return StoreRefusal(
            "DATABASE_URL cannot be read: write postgresql://user:password@host:port/database, "
            "with %40 for @ and so on in the password"
        )
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return StoreRefusal(f"{name} takes no writes on any of its hosts: promote one of them")
    return StoreRefusal(f"{name} cannot be reached: start the server, or correct DATABASE_URL")


def describe_url(url: str) -> str:
    """Return host and database of a URL, without user and password.

    With unescaped characters a part of the password can end up anywhere in the URL, so text that
    does not look like a host and a name is left out.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2] or "local"
    except ValueError:
        return "the database"
    name = f"{host}{parts.path}"
    rest = f"{parts.path}{parts.query}{parts.fragment}"
    is_plain = "@" not in rest and re.fullmatch(r"[\w.,:/\[\]-]*", name)
    return f"the database {name}" if is_plain else "the database"


T = TypeVar("T")

TABLE_LOCK_SECONDS: Final = 2.0
"""The wait for a table's lock; an autovacuum that has it is canceled after one second."""
POLL_SECONDS: Final = 0.5  # the interval between polls
STALE_SECONDS: Final = 1.5
"""The age at which a polled version is outdated: other edges' changes show in two seconds."""


async def open_store(
    url: str, clock: Callable[[], datetime], *, create: bool = True, migrates: bool = True
) -> "PostgresStore":
    """Open the store in the database at `url` (as libpq and asyncpg take it) at the latest schema.

    Without `create` a missing store is refused, without `migrates` an older one. Raises
    StoreRefusal.
    """
    await migrate(url, format_instant(clock()), create=create, migrates=migrates)
    async with AsyncExitStack() as stack:
        try:
            location, readers = Location(url), Readers(url)
            await readers.reopen()
            stack.push_async_callback(readers.close)
            writer, poller = Writer(location), VersionPoller(location)
            stack.push_async_callback(writer.close)
            location.on_move += [readers.reopen, writer.drop, poller.drop]
            await writer.connect()
            await poller.start()
        except EngineError as error:
            raise store_refusal(error, url) from None
        stack.pop_all()
        return PostgresStore(url, readers, writer, poller, location)


class VersionPoller:
    """Polls twice a second, on a connection of its own, whether rows have changed.

    Its version is new after each change: by this edge before the caller is answered, by another
    edge within two seconds.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._session: PostgresConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._number = 0
        self._snapshot = ""
        self._checked_at = 0.0

    def version(self) -> int:
        """Return the version; a new one at each call while the server cannot be polled."""
        if time.monotonic() > self._checked_at + STALE_SECONDS:
            self._number += 1
        return self._number

    def note_change(self) -> None:
        """Make the version new after a change by this edge."""
        self._number += 1

    async def start(self) -> None:
        """Poll for the first time, and go on until closed. Raises EngineError."""
        await self._check()
        self._task = asyncio.create_task(self._poll())

    async def close(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self.drop()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(*EngineError):
                await self._check()

    async def _check(self) -> None:
        try:
            if self._session is None or self._session.is_closed():
                limit = {"statement_timeout": milliseconds(STALE_SECONDS)}
                seconds = STALE_SECONDS + MARGIN_SECONDS
                self._session, _ = await self._location.connect(limit, seconds)
            at = time.monotonic()
            # A snapshot says which transactions are visible: while it is equal, so are all rows.
            snapshot = await self._session.fetchval("SELECT pg_current_snapshot()::text")
        except EngineError:
            await self.drop()
            raise
        if snapshot != self._snapshot:
            self._snapshot = snapshot
            self._number += 1
        # The snapshot may be as old as its request.
        self._checked_at = at

    async def drop(self) -> None:
        """Give up the session."""
        if self._session is not None:
            self._session.terminate()
        # Another server may have the same snapshot of other rows.
        self._session, self._snapshot = None, ""


class PostgresStore(RecoveringStore):
    """A `Store` in one database. Each of its parts connects again after its connection is lost."""

    version_is_exact = False

    def __init__(
        self,
        url: str,
        readers: Readers,
        writer: Writer,
        poller: VersionPoller,
        location: Location,
    ) -> None:
        super().__init__()
        self._url = url
        self.location = location
        self._readers = readers
        self._writer = writer
        self._poller = poller

    async def run(self, *queries: Query) -> list[QueryResult]:
        """Execute all queries in one transaction and return a result for each.

        Raises Problem as `Store.run` does; its sqlstate is OUTCOME_UNKNOWN if the server went away
        in the middle of a commit and nothing shows whether the change is stored.
        """
        self.refuse_closed()
        if not queries:
            return []
        reads = [query for query in queries if isinstance(query, Read)]
        if len(reads) == len(queries):
            return await self._translate_errors(self._readers.run(reads))
        results: list[QueryResult] = await self._translate_errors(self._writer.run(queries))
        self._poller.note_change()  # a write that only seemed to fail is found by polling
        return results

    def version(self) -> int:
        """Return a number that changes within two seconds of any write. Raises Problem."""
        self.refuse_closed()
        return self._poller.version()

    async def scrub(self, *, full: bool = False) -> bool:
        """Vacuum the tables, so that deleted rows leave their files; `full` rewrites the tables.

        The server's log, replicas and backups are left to its operator. Raises Problem.
        """
        self.refuse_closed()
        return await self._translate_errors(scrub_tables(self._url, full=full))

    async def _end(self) -> None:
        await self._poller.close()
        await asyncio.gather(self._readers.close(), self._writer.close())

    async def _check(self) -> None:
        """Check that the store can be written: take the write lock, and commit after a failure."""
        self.refuse_closed()
        await self._translate_errors(
            self._writer.run(partial(_check_writable, commits=self._writer.last_commit_failed))
        )

    async def _translate_errors(self, awaitable: Awaitable[T]) -> T:
        try:
            return await awaitable
        except Problem as problem:
            self.record_failure(problem, problem)
            raise
        except EngineError as error:
            translated = postgresql_problem(error)
            self.record_failure(translated, error)
            raise translated from error


async def _check_writable(connection: Connection, *, commits: bool) -> None:
    version = await schema_version(connection)
    if version != len(MIGRATIONS):
        raise unavailable(f"The store has schema version {version}, not {len(MIGRATIONS)}")
    if await connection.fetchval("SELECT current_setting('transaction_read_only')::bool"):
        # An error of the engine's: the writer looks for another server.
        raise asyncpg.ReadOnlySQLTransactionError
    if commits:
        await connection.execute("UPDATE schema_steps SET taken_at = taken_at WHERE number = 1")


async def find_weak_replication(url: str) -> str:
    """Return why a takeover by another host of the URL can lose commits, or why commits wait.

    The text is empty if neither is so, or there is one host. Raises StoreRefusal.
    """
    if len(split_hosts(url)) == 1:
        return ""
    try:
        session = await connect(url, {}, CONNECT_SECONDS)
        ((names, is_confirmed),) = await session.fetch(
            # Without the right to see `sync_state`, it is NULL: assume that the standby is
            # synchronous.
            "SELECT current_setting('synchronous_standby_names'), EXISTS (SELECT "
            "FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))"
        )
        session.terminate()
    except EngineError as error:
        raise store_refusal(error, url) from None
    if not names:
        return (
            "DATABASE_URL has several hosts, but synchronous_standby_names is empty: what was "
            "acknowledged can be lost when another one takes over; set it on the server"
        )
    return "" if is_confirmed else "no synchronous standby is connected, so no write ends: start it"


async def scrub_tables(url: str, *, full: bool) -> bool:
    """Vacuum the tables; return whether no reader prevented it. Raises EngineError.

    `full` rewrites each table under a lock, and does nothing while somebody reads an older state.
    """
    session = await connect(url, {"lock_timeout": milliseconds(TABLE_LOCK_SECONDS)}, None)
    try:
        # Clean: no transaction reads an older state, whose rows VACUUM would keep.
        is_clean = bool(
            await session.fetchval(
                "SELECT NOT EXISTS (SELECT FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND age(backend_xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid))"
            )
        )
        if is_clean or not full:
            await session.execute(f"VACUUM {'(FULL) ' if full else ''}{', '.join(TABLES)}")
    except asyncpg.LockNotAvailableError:
        return False
    else:
        return is_clean
    finally:
        session.terminate()
