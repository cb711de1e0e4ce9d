"""Checks and migration of a PostgreSQL store at the start."""

import re
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from edge_api.db.errors import StoreRefusal, missing_store, refuse_newer
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.postgres.connection import (
    CONNECT_SECONDS,
    SCHEMA,
    Connection,
    PostgresConnection,
    connect,
    milliseconds,
)
from edge_api.db.postgres.errors import EngineError, sqlstate_of
from edge_api.db.postgres.writer import WRITE_LOCK

MIN_VERSION: Final = 13
"""The first PostgreSQL with `pg_current_snapshot`, by which changes are noticed."""
MIGRATION_SECONDS: Final = 60.0
"""How long an edge that starts waits for others that write or migrate."""

_STEPS: Final = """
CREATE TABLE IF NOT EXISTS schema_steps (
    number bigint NOT NULL PRIMARY KEY, taken_at text COLLATE "C" NOT NULL
)
"""


async def migrate(url: str, now: str, *, create: bool) -> None:
    """Check and migrate the database at `now`; `create` allows a new store. Raises StoreRefusal."""
    settings = {"lock_timeout": milliseconds(MIGRATION_SECONDS)}
    try:
        session = await connect(url, settings, None)
        try:
            await _check(session, url, create=create)
            await _apply_migrations(session, now)
        finally:
            await session.close(timeout=CONNECT_SECONDS)
    except (*EngineError, ValueError) as error:
        raise store_refusal(error, url) from None


async def schema_version(connection: Connection) -> int:
    """Return the number of migrations that the store has. Raises EngineError."""
    there = await connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.schema_steps")
    if there is None:
        return 0
    version = await connection.fetchval("SELECT max(number) FROM schema_steps")
    return int(version or 0)


async def _check(session: PostgresConnection, url: str, *, create: bool) -> None:
    number, encoding, mode = [
        await session.fetchval("SELECT current_setting($1)", name)
        for name in ("server_version_num", "server_encoding", "transaction_read_only")
    ]
    check_server(int(number), encoding, is_read_only=mode == "on")
    version = await schema_version(session)
    refuse_newer(version, describe_url(url))
    if not version:
        await _check_schema(session, url, create=create)


async def _check_schema(session: PostgresConnection, url: str, *, create: bool) -> None:
    if not create:
        raise missing_store(f"in {describe_url(url)}")
    foreign_tables = await session.fetchval(
        "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)", SCHEMA
    )
    # Another edge may have made the schema meanwhile.
    if foreign_tables and not await schema_version(session):
        raise StoreRefusal(
            f"the schema {SCHEMA} of {describe_url(url)} belongs to another program: "
            "set DATABASE_URL to another database"
        )


def check_server(number: int, encoding: str, *, is_read_only: bool) -> None:
    """Raise StoreRefusal for a server that is too old, not in UTF-8, or only read from."""
    if number < MIN_VERSION * 10_000:
        version = f"{number // 10_000}.{number % 10_000}"
        raise StoreRefusal(f"PostgreSQL {version} is too old: install {MIN_VERSION} or later")
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
    """Apply all missing migrations or none; of several edges one applies them."""
    if await schema_version(session) == len(MIGRATIONS):
        return
    async with session.transaction():
        await session.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
        # Its right to be made is looked at even where it is there, made by somebody with more.
        if await session.fetchval("SELECT to_regnamespace($1)", SCHEMA) is None:
            await session.execute(f"CREATE SCHEMA {SCHEMA}")
        await session.execute(_STEPS)
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
    return StoreRefusal(f"{name} cannot be reached: start the server, or correct DATABASE_URL")


_PLAIN: Final = re.compile(r"[\w.:/\[\]-]*")


def describe_url(url: str) -> str:
    """Return host and database of a URL, without user and password.

    A password with characters that are not escaped can end up in any part of the URL, so that what
    does not look like a host and a name is left out.
    """
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or 'local'}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "the database"
    name = f"{host}{parts.path}"
    if "@" in f"{parts.path}{parts.query}{parts.fragment}" or not _PLAIN.fullmatch(name):
        return "the database"
    return f"the database {name}"
