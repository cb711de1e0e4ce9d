"""Connections that only read, on a file."""

import sqlite3

import pytest

from edge_api.db.sqlite.engine import SQLiteStore


async def test_a_reader_cannot_write(store: SQLiteStore) -> None:
    """A plan that got to a reader by mistake would be refused by the engine."""
    readers = store._connections.fast  # noqa: SLF001  what no plan can reach
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await readers.run(lambda connection: connection.execute("DELETE FROM leads"), 10)
