"""One connection to a PostgreSQL database: how it is opened, and what holds for its session.

It knows nothing of tables.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

SCHEMA: Final = "fore_edge"
"""The schema in which everything of ours stands."""

CONNECT_SECONDS: Final = 8.0
"""How long opening a connection may take: 5 ms at rest, and seconds where ten want each core."""
MARGIN_SECONDS: Final = 1.0
"""How much longer than the server's own limit an answer is waited for: the server's way to end a
statement leaves the connection usable, and says why."""

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
"""What holds in each session."""

# In quotation marks: the classes take parameters in the eyes of type checkers alone.
Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connection: TypeAlias = "Session | PoolConnectionProxy[asyncpg.Record]"
"""A session, of a pool or not."""


class PooledSession(asyncpg.Connection):
    """A session that is given back to its pool without a trip to the server.

    What a read sets it sets for its transaction alone, so that nothing has to be reset.
    """

    def get_reset_query(self) -> str:
        """Return the statements that reset a session: none."""
        return ""


async def connect(url: str, settings: Mapping[str, str], seconds: float | None) -> Session:
    """Open a session; an answer is waited for `seconds` at the most.

    Raises what `faults.EngineError` names, and ValueError for a URL that cannot be read.
    """
    return await asyncpg.connect(
        url,
        timeout=CONNECT_SECONDS,
        command_timeout=seconds,
        server_settings={**SETTINGS, **settings},
    )


def milliseconds(seconds: float) -> str:
    """Return a time as PostgreSQL's settings have it; 0 would be no limit at all."""
    return str(max(1, round(seconds * 1000)))
