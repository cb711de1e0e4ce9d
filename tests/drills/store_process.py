"""The store in a process that the crash drill kills: it keeps ids that come in by the line.

Each becomes a lead and an audit entry in one transaction, and is said back when both are stored.
"""

import asyncio
import os
import sys
from asyncio import StreamReader, StreamReaderProtocol
from datetime import UTC, datetime
from pathlib import Path

from edge_api.db.query import Insert, RowCount
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.tables import AUDIT_LOG, LEADS

NOW = "2026-01-31T08:05:09.000000Z"
GIVEN = {"name": "A", "email": "a@b.example", "budget_tier": "s", "message": "m" * 500}
ENTRY = {"actor": "a", "verb": "drill", "table_name": "leads", "columns": "", "rows": 0}


async def main(path: Path) -> None:
    """Open the store and keep what comes in, until killed."""
    store = await open_store(path, lambda: datetime.now(UTC), exclusive=True)
    lines = StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: StreamReaderProtocol(lines), sys.stdin
    )
    os.write(1, b"ready\n")
    async with asyncio.TaskGroup() as writers:
        while line := await lines.readline():
            writers.create_task(keep(store, line.decode().strip()))
    await store.close()


async def keep(store: SQLiteStore, row: str) -> None:
    """Store a lead and its audit entry, and say so."""
    lead = LEADS.new_row({**GIVEN, "id": row}, NOW, str)
    entry = {**AUDIT_LOG.new_row({**ENTRY, "id": row}, NOW, str), "rows": RowCount(0)}
    await store.run(Insert(LEADS, [lead]), Insert(AUDIT_LOG, [entry]))
    os.write(1, f"{row}\n".encode())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
