"""The memory of an open store is bounded, however large its file is."""

import asyncio
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from edge_api.db.query import Filter, Read
from edge_api.db.sqlite.connection import connect
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.tables import LEADS
from tests.edge.store.samples import clock, make_lead

pytestmark = pytest.mark.size("test")

ROWS = 20_000
LONGEST_GROWTH = 24
"""MiB. The pages of the store below are 50 MiB, of which each of four readers could keep a part."""


async def test_connections_keep_few_pages_of_a_large_store(path: Path) -> None:
    """All four readers scan a store of 50 MiB, in a process of its own, and stay small."""
    await (await open_store(path, clock)).close()
    assert fill(path) > 2 * LONGEST_GROWTH * 2**20

    arguments = (sys.executable, "-m", "tests.edge.store.sqlite.test_page_caches", str(path))
    ended = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, check=True)
    assert int(ended.stdout) < LONGEST_GROWTH


def fill(path: Path) -> int:
    """Store leads with the longest message that is allowed; return the bytes of the file."""
    row = make_lead(message="m" * 2000)
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    with closing(connect(path, writes=True)) as connection, connection:
        connection.executemany(
            f"INSERT INTO leads ({names}) VALUES ({marks})",  # noqa: S608  declared names
            (tuple({**row, "id": str(UUID(int=number))}.values()) for number in range(ROWS)),
        )
    return path.stat().st_size


async def measure(path: Path) -> int:
    """Return by how many MiB this process grows while each reader scans the whole store."""
    store = await open_store(path, clock)
    try:
        before = psutil.Process().memory_full_info().uss
        await asyncio.gather(*(scan(store, seconds) for seconds in (None, None, 60.0, 60.0)))
        return int((psutil.Process().memory_full_info().uss - before) / 2**20)
    finally:
        await store.close()


async def scan(store: SQLiteStore, seconds: float | None) -> None:
    """Read every row once, and find none."""
    where = (Filter("message", "like", "no message%"),)
    (result,) = await store.run(Read(LEADS, where=where, timeout=seconds))
    assert result.rows == []


if __name__ == "__main__":
    sys.stdout.write(str(asyncio.run(measure(Path(sys.argv[1])))))
