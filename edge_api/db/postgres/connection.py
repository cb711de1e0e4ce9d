"""A connection to a PostgreSQL database, and the settings of its session."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

SCHEMA: Final = "fore_edge"
"""The schema of all our tables."""

CONNECT_SECONDS: Final = 8.0
"""How long opening a connection may take: 5 ms at rest, and seconds where ten want each core."""
MARGIN_SECONDS: Final = 1.0
"""The client's time limit beyond the server's, so that the server can report its timeout."""

SETTINGS: Mapping[str, str] = {
    "application_name": "fore-edge",
    "search_path": SCHEMA,
    # A commit is durable when it returns, whatever the database is set to.
    "synchronous_commit": "on",
    # A statement sees what was committed while it waited for the lock of those who write.
    "default_transaction_isolation": "read committed",
    # Compiling a statement takes longer than any of ours should.
    "jit": "off",
    "client_min_messages": "warning",
    # The server notices within seconds that the machine of a connection is gone.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""The settings of each session."""

# In quotation marks: the classes take parameters in the eyes of type checkers alone.
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
PostgresConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connection: TypeAlias = "PostgresConnection | PoolConnectionProxy[asyncpg.Record]"
"""A session, of a pool or not."""


class PooledSession(asyncpg.Connection):
    """A session that is returned to its pool without a trip to the server: reads set nothing."""

    def get_reset_query(self) -> str:
        """Return the statements that reset a session: none."""
        return ""


async def connect(
    url: str, settings: Mapping[str, str], seconds: float | None
) -> PostgresConnection:
    """Open a session; `seconds` limit each answer. Raises EngineError, and ValueError for a URL."""
    return await asyncpg.connect(
        url,
        timeout=CONNECT_SECONDS,
        command_timeout=seconds,
        server_settings={**SETTINGS, **settings},
    )


async def open_pool(
    url: str, max_size: int, settings: Mapping[str, str], seconds: float | None = None
) -> Pool:
    """Return a pool of `max_size` sessions, opened when needed; `seconds` limit each answer."""
    return await asyncpg.create_pool(
        url,
        min_size=0,  # else a task of the pool's own would try to connect, and log each failure
        max_size=max_size,
        timeout=CONNECT_SECONDS,
        command_timeout=seconds,
        server_settings={**SETTINGS, **settings},
        connection_class=PooledSession,
    )


def milliseconds(seconds: float) -> str:
    """Return a time as PostgreSQL's settings have it; 0 would be no limit at all."""
    return str(max(1, round(seconds * 1000)))
