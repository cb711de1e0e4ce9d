"""The restore drill: an edge takes leads, is saved meanwhile, dies, and loses its files.

What is restored has to hold every lead that was acknowledged before the saving began, once. How
it is saved and restored is the business of the `Way`.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from signal import SIGKILL
from threading import Event
from typing import Any
from uuid import uuid4

from edge_api.db.sqlite.processes import ReplicatorError, sync_replica
from tests.drills.targets import LEAD, LEADS, LIMITS
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.patience import patience

WRITERS = 4
BEFORE = 40
"""Leads that are acknowledged before anything is saved, at the least."""


@dataclass(frozen=True)
class Way:
    """A way to save a store and to restore it."""

    save: Callable[[Installation], object]
    """Return when all that was committed before is saved."""
    restore: Callable[[Installation], object]
    """Bring the store back, in the place where nothing is left of it."""


@dataclass
class Found:
    """The findings of a drill."""

    saved: Mapping[str, str]
    """The leads that were acknowledged before the saving began: from idempotency key to id."""
    lost: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    """Keys for which another lead was stored when the request came again."""


class Writers:
    """Clients that post leads, each with a key of its own, until they are stopped."""

    def __init__(self, edge: ServedEdge, pause: float = 0.0) -> None:
        """Take the edge, and the seconds that each client waits after a lead."""
        self._edge = edge
        self._pause = pause
        self._stop = Event()
        self._enough = Event()
        self._threads = ThreadPoolExecutor(WRITERS)
        self.acknowledged: dict[str, str] = {}

    def start(self) -> None:
        """Begin, and return when some leads are acknowledged."""
        for _ in range(WRITERS):
            self._threads.submit(self._write)
        assert self._enough.wait(60)

    def stop(self) -> None:
        """Return when nobody writes any more."""
        self._stop.set()
        self._threads.shutdown()

    def _write(self) -> None:
        while not self._stop.is_set():
            key = str(uuid4())
            with suppress(OSError, HTTPException):  # it dies in the middle of an answer
                self.acknowledged[key] = post(self._edge, key)
            self._stop.wait(self._pause)
            if len(self.acknowledged) >= BEFORE:
                self._enough.set()


def post(edge: ServedEdge, key: str) -> str:
    """Post the lead of a key; return its id when it is acknowledged."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key.replace(" ", "-")}
    body = json.dumps({**LEAD, "message": key}).encode()
    status, _, answer = edge.post(LEADS, body, headers)
    assert status == 201, answer
    return str(json.loads(answer)["id"])


def installation_in(folder: Path, **settings: str) -> Installation:
    """Return an installation without limits, and without a build: leads are all that it takes."""
    given = {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(free_port()),
        "DATABASE_URL": f"sqlite:///{folder}/var/edge.db",
        "BUILD_DIR": str(folder / "build"),
    }
    return Installation(folder, {**given, **settings})


def drill(installation: Installation, way: Way) -> Found:
    """Serve, write, save, kill, delete, restore, serve again; and compare."""
    found = Found(_live_and_die(installation, way))
    for file in installation.store.parent.glob("edge.*"):
        file.unlink(missing_ok=True)  # Litestream removes its own
    way.restore(installation)
    stored = ids(installation.store)
    found.lost = {row for row in found.saved.values() if row not in stored}
    with installation.serving() as edge:
        again = {key: post(edge, key) for key in found.saved}
    found.doubled = {key for key, row in again.items() if row != found.saved[key]}
    return found


def _live_and_die(installation: Installation, way: Way) -> Mapping[str, str]:
    """Return what was acknowledged before the saving began."""
    with installation.serving() as edge:
        writers = Writers(edge)
        writers.start()
        saved = dict(writers.acknowledged)
        way.save(installation)
        edge.process.send_signal(SIGKILL)
        writers.stop()
    return saved


def ids(store: Path) -> set[str]:
    """Return the ids of the leads in a file."""
    with closing(sqlite3.connect(store)) as connection:
        return {str(row) for (row,) in connection.execute("SELECT id FROM leads")}


def said(installation: Installation, *words: str) -> str:
    """Return what a command says that has to succeed."""
    code, output, complained = installation.run(*words)
    assert code == 0, complained
    return output


def as_json(installation: Installation, *words: str) -> Any:
    """Return what a command says that has to succeed, read as JSON."""
    return json.loads(said(installation, *words))


def await_replica(store: Path) -> None:
    """Return when the replica has all that was committed before."""
    ends_at = time.monotonic() + patience()
    while not has_everything(store):
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def has_everything(store: Path) -> bool:
    """Return whether the replica has all commits so far; `False` while nothing replicates."""
    try:
        sync_replica(store, 20)
    except ReplicatorError:
        return False
    return True
