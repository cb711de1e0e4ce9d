"""A real store in a file of its own for each test, and a rival that opens the same file."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_api.db.sqlite.engine import SQLiteStore, open_store
from tests.edge.store.samples import clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store of the test lies; there is nothing yet."""
    return tmp_path / "var" / "edge.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStore]:
    """Return an open store."""
    opened = await open_store(path, clock)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def rival(store: SQLiteStore, path: Path) -> Iterator[sqlite3.Connection]:  # noqa: ARG001  opened first
    """Return a connection of somebody else to the file of the open store."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as connection:
        yield connection
