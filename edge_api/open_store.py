"""The store that DATABASE_URL names. PostgreSQL's engine is imported only where it is used."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from edge_api.auth.actor import Clock, system_clock
from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.sqlite import engine as sqlite
from edge_api.db.sqlite.processes import replica_has_state
from edge_api.schema.environment import EDGE, sqlite_file
from edge_api.settings import Settings

if TYPE_CHECKING:
    from edge_api.db.postgres.rate_limits import PostgresLimits


async def open_store(  # noqa: PLR0913  each is a choice of its own
    url: str,
    clock: Clock,
    *,
    exclusive: bool = False,
    create: bool = True,
    migrates: bool = False,
    replicated: bool = False,
) -> Store:
    """Open the store at `url` at the latest schema; the caller closes it. Raises StoreRefusal.

    `exclusive` locks a SQLite file for this process; with `replicated` the
    replicator, not this process, checkpoints its log. Without `create` a missing store is refused,
    without `migrates` one with an older schema.
    """
    path = sqlite_file(url)
    if path is None:
        from edge_api.db.postgres import engine as postgres  # noqa: PLC0415

        return await postgres.open_store(url, clock, create=create, migrates=migrates)
    return await sqlite.open_store(
        path,
        clock,
        exclusive=exclusive,
        create=create,
        migrates=migrates,
        replicated=replicated,
    )


@asynccontextmanager
async def open_rate_limits(
    settings: Settings, secret: bytes, store: Store
) -> AsyncIterator["PostgresLimits | None"]:
    """Open the shared rate limits in PostgreSQL; `None` for SQLite. Raises StoreRefusal."""
    if settings.database_path is not None:
        yield None
        return
    from edge_api.db.postgres.engine import PostgresStore  # noqa: PLC0415
    from edge_api.db.postgres.rate_limits import open_limits  # noqa: PLC0415

    assert isinstance(store, PostgresStore)  # noqa: S101  `open_store` has read the same setting
    limits = await open_limits(settings.database_url, secret, store.record_failure)
    store.location.on_move.append(limits.reopen)
    try:
        yield limits
    finally:
        await limits.close()


def refuse_unrestored_store(settings: Settings) -> None:
    """Raise StoreRefusal if the store is missing but its replica is not, or is unreachable."""
    path, replica = settings.database_path, settings.litestream_replica
    if not (path and replica) or (path.exists() and path.stat().st_size):
        return
    if replica_has_state(path.resolve(), replica):
        raise StoreRefusal(
            f"{path} is {'empty' if path.exists() else 'missing'}, and LITESTREAM_REPLICA holds a "
            f"store: restore it with {EDGE} restore --from-replica --force; to begin anew, set "
            "LITESTREAM_REPLICA to an empty place"
        )


@asynccontextmanager
async def command_store(
    settings: Settings, *, create: bool = False, migrates: bool = False
) -> AsyncIterator[Store]:
    """Open the store for a command, and close it afterwards. Raises StoreRefusal.

    Without `migrates` a store with an older schema is refused, since a backup has to precede its
    migration.
    """
    if create:
        refuse_unrestored_store(settings)
    store = await open_store(settings.database_url, system_clock, create=create, migrates=migrates)
    try:
        yield store
    finally:
        await store.close()


def require_sqlite_path(settings: Settings, command: str) -> Path:
    """Return the path of the SQLite file. Raises Problem `invalid` for PostgreSQL."""
    if path := settings.database_path:
        return path
    tool = "pg_restore" if command == "restore" else "pg_dump --format=custom"
    raise Problem(
        "invalid",
        f"{command} is for stores in a SQLite file; for PostgreSQL use {command} --all, {tool}, or "
        "the backups of your provider",
    )
