"""Version and probe of a file: whether anything has changed, and whether it works."""

import asyncio
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import uvloop

from edge_api.db.problems import Problem
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from tests.edge.store.samples import clock


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


async def test_a_probe_reports_a_lock(store: SQLiteStore, rival: sqlite3.Connection) -> None:
    """Within a second, also when the writer would wait for longer."""
    rival.execute("BEGIN IMMEDIATE")
    with pytest.raises(Problem) as refusal:
        await store.probe()

    assert refusal.value.message == "The store does not answer; try again later"


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_request_after_a_long_task_gets_the_current_version(
    path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """A request that is read in the same turn, as uvloop does it, gets the current version."""

    async def follow() -> tuple[int, list[int]]:
        store = await open_store(path, clock)
        seen: list[int] = []
        was_read = asyncio.Event()
        loop, (near, far) = asyncio.get_running_loop(), socket.socketpair()

        def read() -> None:
            near.recv(1)
            seen.append(store.version())
            was_read.set()

        loop.add_reader(near, read)
        try:
            before = store.version()
            change_elsewhere(path)
            far.send(b"x")
            await asyncio.wait_for(was_read.wait(), 10)
        finally:
            loop.remove_reader(near)
            near.close()
            far.close()
            await store.close()
        return before, seen

    with asyncio.Runner(loop_factory=new_loop) as runner:
        before, seen = runner.run(follow())

    assert before not in seen


def change_elsewhere(path: Path) -> None:
    """Commit a change as another process would, in the middle of a task."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE email_send_state SET batch_size = 20")
