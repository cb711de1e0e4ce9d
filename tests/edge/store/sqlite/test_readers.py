"""Connections that only read, on a file."""

import sqlite3

import pytest

from edge_api.db.sqlite import SQLiteStore


async def test_a_reader_cannot_write(store: SQLiteStore) -> None:
    """A plan that got to a reader by mistake would be refused by the engine."""
    reader = store._connections._readers._fast[0]  # noqa: SLF001  what no plan can reach
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await reader._connection.execute_fetchall("DELETE FROM leads")  # noqa: SLF001
