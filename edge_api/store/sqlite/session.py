"""The connections of an open store: one that writes, some that read, one that watches for changes.

A session serves one file. When that file is replaced, another session has to take its place.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Final

from edge_api.schema.history import HISTORY
from edge_api.store.faults import unavailable
from edge_api.store.plan import Outcome, Plan, Read
from edge_api.store.sqlite.connection import Connection, checkpoint_commits, connect
from edge_api.store.sqlite.execution import carry_out
from edge_api.store.sqlite.opening import schema_version, start_log
from edge_api.store.sqlite.place import Place
from edge_api.store.sqlite.readers import PATIENT, QUICK, Reader, Readers
from edge_api.store.sqlite.writer import Writer

CLOSE_SECONDS: Final = 5.0
"""How long closing the readers, and then the writer, may take."""
SPACE_LEAST: Final = 1024 * 1024
"""Bytes of the disk below which no lead may find room any more."""


class Session:
    """What is open while a store is in use."""

    def __init__(self, writer: Writer, readers: Readers, watcher: sqlite3.Connection) -> None:
        self._writer = writer
        self._readers = readers
        self._watcher = watcher
        self.is_open = True
        self._version: int | None = None
        self._was_in_task = False
        """Whether a task was the first to be told the version."""

    async def run(self, plans: Sequence[Plan]) -> list[Outcome]:
        """Carry out the plans in one transaction; those that only read go to a reader.

        Raises Problem, sqlite3.Error and Displaced.
        """
        reads = [plan for plan in plans if isinstance(plan, Read)]
        if len(reads) == len(plans):
            return await self._readers.run(reads)
        return await self._writer.run(partial(carry_out, plans=plans))

    def version(self) -> int:
        """Return SQLite's count of the commits of others than the watcher.

        Asking takes file locks (4 to 15 microseconds), so all who ask in one turn of the event
        loop share an answer: their requests had begun to arrive before the turn began, so none
        of them can follow a change that this misses. What was told a task is not told whoever
        reads from a socket: uvloop lets those come before what was called soon, though a long
        task may stand between.
        """
        in_task = asyncio.current_task() is not None
        if self._version is None or (self._was_in_task and not in_task):
            (self._version,) = self._watcher.execute("PRAGMA data_version").fetchone()
            self._was_in_task = in_task
            asyncio.get_running_loop().call_soon(self._forget_version)
        return self._version

    def _forget_version(self) -> None:
        self._version = None

    async def scrub(self, *, whole: bool) -> bool:
        """Take what was deleted out of the log too, where nobody reads it; tell whether so."""
        return await self._writer.empty_log(rewrites=whole)

    @property
    def place(self) -> Place:
        """Where the files lie that are open."""
        return self._writer.place

    @property
    def log_bytes(self) -> int:
        """The size of the log after the last commit, where an edge is replicated; else 0."""
        return self._writer.log_bytes

    async def probe(self) -> None:
        """Return when the store could be written.

        The write lock shows that, and is shared with those who write at this moment. After a
        group was lost only a real commit shows it: a disk that is full gives out locks.
        """
        await self._writer.run(partial(_look, rewrites=self._writer.failed))

    async def close(self, *, cuts_log: bool = False) -> None:
        """Finish what is under way and close every connection, whatever the disk does.

        `cuts_log` brings the log into the file, wherever that has gone. Without it SQLite does so
        when nobody else has the file open.
        """
        if not self.is_open:
            return
        self.is_open = False
        self._watcher.close()
        with suppress(TimeoutError, sqlite3.Error):
            await asyncio.wait_for(self._readers.close(), CLOSE_SECONDS)
        with suppress(TimeoutError, sqlite3.Error):
            await asyncio.wait_for(self._writer.close(cuts_log=cuts_log), CLOSE_SECONDS)


def _look(connection: sqlite3.Connection, *, rewrites: bool) -> None:
    version = schema_version(connection)
    if version != len(HISTORY):
        raise unavailable(f"The store has schema version {version}, not {len(HISTORY)}")
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    if disk_usage(file).free < SPACE_LEAST:
        raise unavailable("The disk of the store is full")
    if rewrites:
        connection.execute(f"PRAGMA user_version = {version}")


async def open_session(path: Path, *, alone: bool, replicated: bool) -> Session:
    """Open a store that is known to be sound; `alone` for the one edge that serves it.

    Only the commits of an edge whose store nobody replicates checkpoint the log.

    Raises sqlite3.Error, Displaced, and StoreRefusal where write-ahead logging does not work.
    """
    async with AsyncExitStack() as stack:

        async def reader() -> Reader:
            reader = await Reader.open(path, place)
            stack.push_async_callback(reader.close)
            return reader

        watcher = await asyncio.to_thread(connect, path, writes=False, wait=0)
        stack.callback(watcher.close)
        writing = await Connection.open(partial(connect, path, writes=True))
        stack.push_async_callback(writing.close)
        await writing.call(start_log)
        if alone and not replicated:
            await writing.call(checkpoint_commits)
        place = Place(path)
        quick = [await reader() for _ in range(QUICK)]
        patient = [await reader() for _ in range(PATIENT)]
        writer = Writer(writing, place, measures_log=alone and replicated)
        stack.pop_all()
        return Session(writer, Readers(quick, patient), watcher)
