"""The replicator beside a store: Litestream, which copies the log elsewhere as it grows.

It is asked over its socket, by the process that started it or any other. What its replica is, and
who keeps it running, is not known here.
"""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

ANSWER_SECONDS: Final = 30.0
SOCKET_LONGEST: Final = 100
"""Bytes of a socket's path: systems allow 104 at the least."""

_log = logging.getLogger(__name__)


class ReplicatorError(Exception):
    """It does not run, or cannot do what it was asked; the message is its own."""


def socket_of(store: Path) -> Path:
    """Return where the replicator of a store listens."""
    return store.with_name(f"{store.name}-litestream.sock")


def state_of(store: Path) -> Path:
    """Return the folder in which Litestream keeps what it knows of a store."""
    return store.with_name(f".{store.name}-litestream")


def ask(
    store: Path, word: str, seconds: float = ANSWER_SECONDS, **more: object
) -> Mapping[str, Any]:
    """Have the replicator `sync`, `stop` or `start`. Raises ReplicatorError."""
    body = json.dumps({"path": str(store), "timeout": round(seconds), **more})
    connection = _Connection(str(socket_of(store)), seconds + 1)
    try:
        connection.request("POST", f"/{word}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = json.loads(answer.read())
    except (OSError, HTTPException, ValueError) as error:
        raise ReplicatorError(str(error)) from None
    finally:
        connection.close()
    if not isinstance(said, dict) or "error" in said:
        raise ReplicatorError(str(said))
    return said


def sync_replica(store: Path, seconds: float) -> None:
    """Return when the replica has what was committed before. Raises ReplicatorError."""
    ask(store, "sync", seconds, wait=True)


@asynccontextmanager
async def released(store: Path) -> AsyncIterator[None]:
    """Have the replicator let go of the store's log meanwhile, where one runs.

    It holds the log open on purpose: nobody else can cut it. What is cut has been replicated by
    then, and what follows begins with the whole store.
    """
    if not socket_of(store).exists():
        yield
        return
    try:
        await asyncio.to_thread(ask, store, "stop")
    except ReplicatorError as error:
        _log.info("the replicator does not let go of the log: %s", error)
    try:
        yield
    finally:
        with suppress(ReplicatorError):  # whoever keeps it running starts it again
            await asyncio.to_thread(ask, store, "start")


class _Connection(HTTPConnection):
    """HTTP over a socket in the file system."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Open the socket. Raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
