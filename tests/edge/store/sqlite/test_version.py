"""What others ask of a file between its rows: has anything changed, and does it work."""

import asyncio
import sqlite3

import pytest

from edge_api.schema.problems import Problem
from edge_api.store.sqlite import SQLiteStore


async def test_a_write_of_another_process_changes_the_version(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """So a key that a command has revoked is refused by the next request."""
    before = store.version()
    rival.execute("UPDATE email_send_state SET batch_size = 20")
    await asyncio.sleep(0)  # another turn of the loop, as for another request

    assert store.version() != before


async def test_a_version_of_a_locked_store_is_had_at_once(
    store: SQLiteStore, rival: sqlite3.Connection
) -> None:
    """It is asked for on the event loop, which waits for nobody."""
    before = store.version()
    rival.execute("BEGIN IMMEDIATE")
    rival.execute("UPDATE email_send_state SET batch_size = 20")
    await asyncio.sleep(0)
    assert store.version() == before
    rival.execute("COMMIT")
    await asyncio.sleep(0)

    assert store.version() != before


async def test_a_probe_tells_of_a_lock(store: SQLiteStore, rival: sqlite3.Connection) -> None:
    """Within a second, also when the writer would wait for longer."""
    rival.execute("BEGIN IMMEDIATE")
    with pytest.raises(Problem) as refusal:
        await store.probe()

    assert refusal.value.sentence == "The store does not answer; try again later"
