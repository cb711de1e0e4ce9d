"""Litestream beside a serving edge: started with it, again when it dies, and ended with it."""

import asyncio
import json
import logging
import os
import time
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from edge_api.commands.replica import (
    command,
    configuration,
    environment,
    find_program,
    piped,
    require_short,
)
from edge_api.domain.health import Check
from edge_api.settings import Settings
from edge_api.store.faults import StoreRefusal
from edge_api.store.sqlite.claim import is_claimed
from edge_api.store.sqlite.replicator import (
    END_SECONDS,
    ReplicatorError,
    claim_replicator,
    socket_of,
    sync_replica,
)

LOOK_SECONDS: Final = 5.0
"""Between two looks whether the replica has everything."""
CATCH_UP_SECONDS: Final = 15.0
"""How long a last process may take for what no other has brought to the replica."""
CATCH_UP_PAUSE: Final = 0.5
"""Between two looks, in seconds, whether it is done."""
LAST_END_SECONDS: Final = 5.0
"""How long it may take to end: it has had its time."""
PATIENCE_SECONDS: Final = 10.0
"""How long the replica may take for what is new."""
LAG_SECONDS: Final = 60.0
"""How far the replica may be behind before somebody is told."""
RESTART_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""The waits before a process that has died is started again; the last of them for ever."""

_PAUSED: Final = (
    "the process that replicates the store was stopped to cut the log; it is started again"
)
_log = logging.getLogger(__name__)


def make_replication(settings: Settings) -> "Replication | None":
    """Return what replicates the store, where the settings ask for it. Raises StoreRefusal."""
    if settings.litestream_replica is None:
        return None
    return Replication(_store_of(settings), settings.litestream_replica, find_program())


def _store_of(settings: Settings) -> Path:
    """Return the store as Litestream is to know it. Raises StoreRefusal where that cannot be."""
    if settings.database_path is None:
        raise StoreRefusal(
            "LITESTREAM_REPLICA is for a store in a SQLite file: unset it beside PostgreSQL"
        )
    store = settings.database_path.resolve()
    require_short(store)
    return store


def find_lag(settings: Settings) -> Iterator[str]:
    """Look from outside whether the store that an edge serves is replicated; say what is wrong."""
    if settings.litestream_replica is None:
        return
    try:
        store = _store_of(settings)
        find_program()
        if is_claimed(store):
            sync_replica(store, PATIENCE_SECONDS)
    except StoreRefusal as refusal:
        yield str(refusal)
    except ReplicatorError as error:
        if socket_of(store).exists():
            yield f"LITESTREAM_REPLICA: the replica lacks what was committed last ({error})"
        else:
            yield "LITESTREAM_REPLICA: the store is served and not replicated: start the edge again"


class Replication:
    """One process of Litestream after the other, and how far its replica is."""

    def __init__(self, store: Path, replica: str, program: str) -> None:
        self._store = store
        self._replica = replica
        self._program = program
        self._process: Process | None = None
        self._is_paused = False
        """The last process was told to end; the next one takes over."""
        self._whole_at = time.monotonic()
        """When the replica had everything, or the replication began."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Replicate from now on; the store is open, and claimed for this process."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Bring the last commits to the replica, and end, within a minute wherever that is."""
        if self._task is None:
            return
        is_whole = self._process is not None and await self._sync()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if not is_whole:
            with suppress(StoreRefusal, OSError):  # a TimeoutError is one
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    await self._catch_up()

    async def _sync(self) -> bool:
        """Tell whether the replica has all that was committed."""
        try:
            await asyncio.to_thread(sync_replica, self._store, PATIENCE_SECONDS)
        except ReplicatorError:
            return False
        return True

    async def _catch_up(self) -> None:
        """Bring to the replica what was committed while no process ran. Raises as `_replicate`."""
        lock = await claim_replicator(self._store)
        try:
            process = await self._start(lock)
        finally:
            os.close(lock)
        telling = asyncio.create_task(_pass_on(process))
        try:
            while True:
                if telling.done() or await self._sync():
                    break
                await asyncio.sleep(CATCH_UP_PAUSE)
        finally:
            await _end(process, LAST_END_SECONDS)
            await telling

    async def _run(self) -> None:
        """Replicate until cancelled: one process after the other."""
        deaths = 0
        while True:
            began, is_paused = time.monotonic(), False
            try:
                is_paused = await self._replicate()
            except (StoreRefusal, OSError) as error:
                _log.warning("the store cannot be replicated: %s", error)
            except Exception:  # noqa: BLE001  the next process may do better
                _log.exception("the store cannot be replicated")
            if is_paused or time.monotonic() - began > LAG_SECONDS:
                deaths = 0
            self._is_paused = is_paused
            if is_paused:
                _log.info(_PAUSED)
            else:
                _log.warning("the process that replicates the store has ended; it is started again")
            await asyncio.sleep(RESTART_SECONDS[min(deaths, len(RESTART_SECONDS) - 1)])
            deaths += 1

    async def check(self) -> Check:
        """Return how the replication stands, for anybody to read."""
        behind = round(time.monotonic() - self._whole_at)
        if self._process is None and not self._is_paused:
            return Check("warn", "the process that replicates the store does not run")
        if behind > LAG_SECONDS:
            return Check("warn", f"the replica of the store is {behind} seconds behind")
        return Check("pass")

    async def _replicate(self) -> bool:
        """Run one process to its end; return whether it was told to end.

        Raises StoreRefusal and OSError.
        """
        lock = await claim_replicator(self._store)
        try:
            process = await self._start(lock)
        finally:
            os.close(lock)  # the process has it now
        self._process = process
        following = asyncio.create_task(self._follow())
        try:
            await _pass_on(process)
            return process.returncode == 0
        finally:
            self._process = None
            following.cancel()
            await _end(process, END_SECONDS)

    async def _start(self, lock: int) -> Process:
        config = piped(configuration(self._store, self._replica))
        try:
            return await asyncio.create_subprocess_exec(
                *command(self._program, self._store),
                stdin=config,
                stdout=DEVNULL,
                stderr=PIPE,
                env=environment(),
                pass_fds=(lock,),
                start_new_session=True,  # what ends the edge at the terminal must not end it first
            )
        finally:
            os.close(config)

    async def _follow(self) -> None:
        """Look again and again whether the replica has what was committed."""
        trouble = ""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            began = time.monotonic()
            try:
                await asyncio.to_thread(sync_replica, self._store, PATIENCE_SECONDS)
            except ReplicatorError as error:
                if str(error) != trouble:
                    _log.warning("the store is not replicated: %s", error)
                trouble = str(error)
            else:
                self._whole_at, trouble = began, ""


async def _pass_on(process: Process) -> None:
    """Write what the process complains of into the log, until it has ended."""
    assert process.stderr is not None  # noqa: S101  it was asked for
    while line := await _line_of(process.stderr):
        _log.warning("litestream: %s", _words(line))
    await process.wait()


async def _line_of(stream: StreamReader) -> bytes:
    """Return the next line; none at the end. Of one over 64 KiB the stream drops what it has."""
    try:
        return await stream.readline()
    except ValueError:
        return b"a line that is too long to be passed on"


def _words(line: bytes) -> str:
    """Return what a line of the log says, without what a terminal would obey."""
    text = line.decode(errors="replace").strip()
    with suppress(ValueError):
        said = json.loads(text)
        if isinstance(said, dict):
            text = " ".join(str(said[name]) for name in ("msg", "error") if name in said)
    return "".join(character for character in text if character.isprintable())


async def _end(process: Process, seconds: float) -> None:
    """End the process, which brings the last commits to the replica first, if it can in time."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        _log.warning("the last commits did not reach the replica")
        process.kill()
        await process.wait()
