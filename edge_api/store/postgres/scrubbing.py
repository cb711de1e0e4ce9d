"""Taking what was deleted out of a database's files."""

from typing import Final

import asyncpg

from edge_api.schema.tables import TABLES
from edge_api.store.postgres.connection import connect, milliseconds

_IS_CLEAN: Final = """
SELECT NOT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND age(backend_xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid)
)
"""
"""Whether nobody looks at an older state: rows that one may still see are left alone by VACUUM."""


LOCK_SECONDS: Final = 2.0
"""How long a table that somebody uses is waited for, and with it everybody who comes after us. The
server ends a VACUUM of its own that is in the way after one second."""


async def scrub_tables(url: str, *, whole: bool) -> bool:
    """Give the room of deleted rows to others; tell whether nobody stood in the way.

    `whole` writes each table anew, and locks it meanwhile; it does nothing while somebody looks at
    an older state, a dump say. Raises EngineError.
    """
    session = await connect(url, {"lock_timeout": milliseconds(LOCK_SECONDS)}, None)
    try:
        is_clean = bool(await session.fetchval(_IS_CLEAN))
        if is_clean or not whole:
            words = "VACUUM (FULL)" if whole else "VACUUM"
            await session.execute(f"{words} {', '.join(TABLES)}")
    except asyncpg.LockNotAvailableError:
        return False
    else:
        return is_clean
    finally:
        session.terminate()
