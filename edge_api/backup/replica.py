"""Litestream beside a serving edge: its program, its process, and what it restores."""

import asyncio
import json
import logging
import os
import re
import shutil
import time
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL
from typing import Final

from click import BadParameter

from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.sqlite.processes import (
    LITESTREAM_OPTIONS,
    MAX_SOCKET_PATH_BYTES,
    STOP_SECONDS,
    ReplicatorError,
    find_litestream,
    litestream_configuration,
    litestream_environment,
    litestream_state_path,
    lock_replicator,
    replica_has_state,
    replicator_lock_path,
    replicator_socket_path,
    run_litestream,
    sync_replica,
)
from edge_api.health import Check
from edge_api.open_store import require_sqlite_path
from edge_api.schema.heartbeat import find_edge
from edge_api.settings import Settings


def fetch_replica(settings: Settings, target: Path, at: datetime | None) -> None:
    """Restore the latest state of the replica, or that of the instant `at`, to the file `target`.

    Raises Problem and StoreRefusal.
    """
    if settings.litestream_replica is None:
        raise Problem("invalid", "--from-replica needs LITESTREAM_REPLICA, which says where it is")
    _restore(settings, target, ("-timestamp", f"{at:%Y-%m-%dT%H:%M:%S.%f}Z") if at else ())


def fetch_latest(settings: Settings, target: Path) -> int:
    """Restore and check the latest state, to the file `target`; return its last transaction.

    Raises StoreRefusal, also if SQLite's `integrity_check` finds damage.
    """
    printed = _restore(settings, target, ("-json", "-integrity-check", "full"))
    return int(json.loads(printed)["txid"], 16)


def _restore(settings: Settings, target: Path, options: Sequence[str]) -> str:
    store = require_sqlite_path(settings, "restore").resolve()
    printed = run_litestream(
        store,
        str(settings.litestream_replica),
        "restored",
        "restore",
        *options,
        "-o",
        str(target),
    )
    target.chmod(0o600)
    return printed


def parse_zoned_instant(text: str) -> datetime:
    """Return the instant of an option, which must have a zone, in UTC. Raises BadParameter."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = datetime.min  # noqa: DTZ901  without a zone, so refused below
    if instant.tzinfo is None:
        raise BadParameter(f"{text!r} is no instant like 2026-01-31T08:05:09Z")
    return instant.astimezone(UTC)


CATCH_UP_SECONDS: Final = 15.0  # the time for a last process to replicate what is missing
CATCH_UP_STOP_SECONDS: Final = 5.0  # the time for that process to end
SYNC_TIMEOUT_SECONDS: Final = 10.0  # the time for new commits to reach the replica
MAX_LAG_SECONDS: Final = 60.0  # the time that the replica may be behind
RESTART_DELAYS: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""The pauses before a process is started again; the last one repeats."""
_START_SCRIPT: Final = r"""
umask 077
edge=$1 note='echo $$ >"$0"; exec "$@"'
shift
if setpriv --pdeathsig TERM true 2>/dev/null; then
    exec setpriv --pdeathsig TERM /bin/sh -c '
        end() { trap : TERM; asked=yes; [ -z "$child" ] || kill "$child"; }
        asked= child= note=$1
        trap end TERM
        exec 3<&0
        [ "$PPID" = "$2" ] || exit
        shift 2
        setpriv --pdeathsig TERM /bin/sh -c "$note" "$0" "$@" <&3 3<&- &
        child=$!
        [ -z "$asked" ] || kill "$child"
        while wait "$child"; status=$?; kill -0 "$child" 2>/dev/null; do :; done
        exit "$status"' "$0" "$note" "$edge" "$@"
fi
exec /bin/sh -c "$note" "$0" "$@"
"""
"""The shell script that stores its process id and runs Litestream, which ends if the edge dies.

`setpriv` has Linux send a signal then, but one for each thread of the edge, and at a second signal
Litestream stops without a last sync: a shell between them passes on a single one. That shell exits
if the edge is not its parent, since the edge died before this was set up. Without such a `setpriv`,
as on macOS, Litestream runs on until the next edge, or a restore, ends it by the stored process id.
"""

_log = logging.getLogger(__name__)


def make_replication(settings: Settings) -> "Replication | None":
    """Return the replication of the store, if the settings have one. Raises StoreRefusal."""
    if settings.litestream_replica is None:
        return None
    return Replication(_replicable_store(settings), settings.litestream_replica, find_litestream())


def _replicable_store(settings: Settings) -> Path:
    """Return the absolute path of the store. Raises StoreRefusal if it cannot be replicated."""
    if settings.database_path is None:
        raise StoreRefusal(
            "LITESTREAM_REPLICA is for a store in a SQLite file: unset it beside PostgreSQL"
        )
    store = settings.database_path.resolve()
    if len(os.fsencode(replicator_socket_path(store))) > MAX_SOCKET_PATH_BYTES:
        raise StoreRefusal(
            f"{store} is too long a path for the socket that Litestream opens beside it: "
            f"set DATABASE_URL to one of {MAX_SOCKET_PATH_BYTES - 16} bytes at the most"
        )
    return store


def replica_errors(settings: Settings) -> Iterator[str]:
    """Check from outside that the served store is replicated; yield the errors."""
    if settings.litestream_replica is None:
        return
    try:
        store = _replicable_store(settings)
        find_litestream()
        if find_edge(store):
            sync_replica(store, SYNC_TIMEOUT_SECONDS)
    except StoreRefusal as refusal:
        yield str(refusal)
    except ReplicatorError as error:
        if replicator_socket_path(store).exists():
            yield f"LITESTREAM_REPLICA: the replica lacks what was committed last ({error})"
        else:
            yield "LITESTREAM_REPLICA: the store is served and not replicated: start the edge again"


class Replication:
    """Runs Litestream, one process after the other, and tracks the state of its replica."""

    def __init__(self, store: Path, replica: str, program: str) -> None:
        self._store = store
        self._replica = replica
        self._program = program
        self._process: Process | None = None
        self._is_paused = False
        """The last process was asked to end; the next one takes over."""
        self._synced_at = time.monotonic()
        """The time at which the replica was up to date, or the replication began."""
        self._task: asyncio.Task[None] | None = None

    def record_address(self) -> None:
        """Store the replica's address in the folder of Litestream's state, before the start.

        The state belongs to one address. If the address has changed, the new one must be empty, and
        the state is removed: Litestream would look at the new address for files that it has
        deleted locally. Raises StoreRefusal and OSError.
        """
        state = litestream_state_path(self._store)
        note, address = state / "address", re.sub(r":[^/@]*@", "@", self._replica)  # no password
        known = note.read_text() if note.exists() else ""
        if known not in ("", address):
            if replica_has_state(self._store, self._replica):
                raise StoreRefusal(
                    f"LITESTREAM_REPLICA is not the address of before, {known}, and holds a state: "
                    f"set it to an empty place, or if it is of this very store remove {state}"
                )
            shutil.rmtree(state)
        state.mkdir(mode=0o700, exist_ok=True)
        note.write_text(address)

    def start(self) -> None:
        """Start the replication; this process has the store open and locked."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Replicate the last commits and end, within a minute."""
        if self._task is None:
            return
        is_synced = self._process is not None and await self._sync()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if not is_synced:
            with suppress(StoreRefusal, OSError):  # TimeoutError is an OSError
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    await self._catch_up()

    async def _sync(self) -> bool:
        """Return whether the replica has all commits."""
        try:
            await asyncio.to_thread(sync_replica, self._store, SYNC_TIMEOUT_SECONDS)
        except ReplicatorError:
            return False
        return True

    async def _catch_up(self) -> None:
        """Replicate what was committed while no process ran. Raises StoreRefusal and OSError."""
        process = await self._start()
        log_task = asyncio.create_task(_log_output(process))
        try:
            while True:
                if log_task.done() or await self._sync():
                    break
                await asyncio.sleep(0.5)
        finally:
            await _terminate(process, CATCH_UP_STOP_SECONDS)
            await log_task

    async def _run(self) -> None:
        """Run one process after the other, until cancelled."""
        failures = 0
        while True:
            began, is_paused = time.monotonic(), False
            try:
                is_paused = await self._replicate()
            except (StoreRefusal, OSError) as error:
                _log.warning("the store cannot be replicated: %s", error)
            except Exception:  # noqa: BLE001  the next process may do better
                _log.exception("the store cannot be replicated")
            if is_paused or time.monotonic() - began > MAX_LAG_SECONDS:
                failures = 0
            self._is_paused = is_paused
            if is_paused:
                _log.info(
                    "the process that replicates the store was stopped to cut the log; "
                    "it is started again"
                )
            else:
                _log.warning("the replication process has ended; starting it again")
            await asyncio.sleep(RESTART_DELAYS[min(failures, len(RESTART_DELAYS) - 1)])
            failures += 1

    async def check(self) -> Check:
        """Return the state of the replication, which is public."""
        behind = round(time.monotonic() - self._synced_at)
        if self._process is None and not self._is_paused:
            return Check("warn", "the process that replicates the store does not run")
        if behind > MAX_LAG_SECONDS:
            return Check("warn", f"the replica of the store is {behind} seconds behind")
        return Check("pass")

    async def _replicate(self) -> bool:
        """Run one process; return whether it was asked to end. Raises StoreRefusal, OSError."""
        self._process = process = await self._start()
        polling = asyncio.create_task(self._poll())
        try:
            await _log_output(process)
            return process.returncode == 0
        finally:
            self._process = None
            polling.cancel()
            await _terminate(process, STOP_SECONDS)

    async def _start(self) -> Process:
        """Start Litestream, once for the store; files that it makes are for their owner only.

        The shell stores the id of the process that holds the lock: if the edge is killed at this
        moment, the next edge can still find and end that process. Raises StoreRefusal and OSError.
        """
        with ExitStack() as descriptors:
            lock = await lock_replicator(self._store)
            descriptors.callback(os.close, lock)  # the new process keeps its own descriptor
            reading, writing = os.pipe()
            descriptors.callback(os.close, reading)
            os.write(
                writing, json.dumps(litestream_configuration(self._store, self._replica)).encode()
            )
            os.close(writing)
            return await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _START_SCRIPT,
                str(replicator_lock_path(self._store)),
                # Linux signals when the thread that forked ends: here that of the event loop.
                str(os.getpid()),
                self._program,
                "replicate",
                *LITESTREAM_OPTIONS,
                stdin=reading,
                stdout=DEVNULL,
                stderr=PIPE,
                env=litestream_environment(),
                pass_fds=(lock,),
                start_new_session=True,  # Control-C must not end it before the edge
            )

    async def _poll(self) -> None:
        reported = ""
        while True:
            await asyncio.sleep(5)
            began = time.monotonic()
            try:
                await asyncio.to_thread(sync_replica, self._store, SYNC_TIMEOUT_SECONDS)
            except ReplicatorError as error:
                if str(error) != reported:
                    _log.warning("the store is not replicated: %s", error)
                reported = str(error)
            else:
                self._synced_at, reported = began, ""


async def _log_output(process: Process) -> None:
    """Log the errors of the process until it has ended."""
    assert process.stderr is not None  # noqa: S101  it is a pipe
    while line := await _read_line(process.stderr):
        _log.warning("litestream: %s", _message_of(line))
    await process.wait()


async def _read_line(stream: StreamReader) -> bytes:
    """Return the next line, or nothing at the end; a line over 64 KiB is dropped."""
    try:
        return await stream.readline()
    except ValueError:
        return b"a line that is too long to be passed on"


def _message_of(line: bytes) -> str:
    """Return the message of a line of Litestream's log, without control characters."""
    text = line.decode(errors="replace").strip()
    with suppress(ValueError):
        record = json.loads(text)
        if isinstance(record, dict):
            text = " ".join(str(record[name]) for name in ("msg", "error") if name in record)
    return "".join(character for character in text if character.isprintable())


async def _terminate(process: Process, seconds: float) -> None:
    """End the process, which replicates the last commits if it can in time."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        _log.warning("the last commits did not reach the replica")
        os.killpg(process.pid, SIGKILL)  # the shell and Litestream
        await process.wait()
