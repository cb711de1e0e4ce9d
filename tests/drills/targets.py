"""Targets of the crash drill: the store alone, in a process of its own, and the whole edge."""

import asyncio
import socket
import sqlite3
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from aiohttp import ClientError, ClientSession

from tests.edge.leads_index import read_file

STORE = ("-m", "tests.drills.store_process")
EDGE = ("-m", "edge_api", "serve")
LEADS = "/api/public/v1/leads"
LIMITS = ("RATE_LEADS", "RATE_LEADS_ATTEMPTS", "RATE_AUTHENTICATED", "RATE_FAILED_AUTH")
LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x"}


def ids(path: Path, question: str) -> set[str]:
    """Return the first column of what a file answers."""
    with closing(sqlite3.connect(path)) as connection:
        return {str(row) for (row,) in connection.execute(question)}


def unindexed(path: Path) -> set[str]:
    """Return the ids of leads whose entries in the search index differ from their texts."""
    kept, anew = read_file(path)
    return {lead for lead, _ in kept ^ anew}


class StoreClient:
    """A way into the store's process: ids go in by the line, and come back when they are stored."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._listening = asyncio.create_task(self._listen())

    async def write(self) -> str:
        """Have one row stored. Raises ConnectionError when the process dies instead."""
        if self._listening.done() or self._input.is_closing():
            raise ConnectionError
        row = str(uuid4())
        self._waiting[row] = asyncio.get_running_loop().create_future()
        self._input.write(f"{row}\n".encode())
        await self._waiting[row]
        return row

    async def _listen(self) -> None:
        """Pass on what is acknowledged, up to the last word of the process."""
        while (line := await self._output.readline()).endswith(b"\n"):
            self._waiting.pop(line.decode().strip()).set_result(None)
        for answer in self._waiting.values():
            answer.set_exception(ConnectionError())

    async def close(self) -> None:
        """Let go."""
        await self._listening
        self._input.close()


class StoreTarget:
    """The store alone: a lead and its audit entry are one transaction."""

    command: Sequence[str]
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, path: Path, module: Sequence[str] = STORE) -> None:
        self._path = path
        self.command = (sys.executable, *module, str(path))

    async def connect(self, process: Process) -> StoreClient:
        """Return a way in, when the process says that it is ready."""
        assert process.stdout is not None
        if await process.stdout.readline() != b"ready\n":
            raise ConnectionError("the store did not open")
        return StoreClient(process)

    def stored(self) -> set[str]:
        """Return the ids of the leads."""
        return ids(self._path, "SELECT id FROM leads")

    def halves(self) -> set[str]:
        """Return the ids of leads without audit entry or index entries, and of entries alone."""
        return unindexed(self._path) | ids(
            self._path,
            "SELECT id FROM leads WHERE id NOT IN (SELECT id FROM audit_log WHERE verb = 'drill')"
            " UNION SELECT id FROM audit_log WHERE id NOT IN (SELECT id FROM leads)",
        )


class EdgeClient:
    """A way into the edge: leads are posted."""

    def __init__(self, origin: str) -> None:
        self._session = ClientSession(origin)

    async def write(self) -> str:
        """Have one lead stored. Raises ConnectionError when the process dies instead."""
        key = str(uuid4())
        headers = {"Idempotency-Key": key}
        try:
            async with self._session.post(
                LEADS, json={**LEAD, "message": key}, headers=headers
            ) as answer:
                body = await answer.json()
        except (ClientError, TimeoutError):
            raise ConnectionError from None
        assert answer.status == 201, body
        return str(body["id"])

    async def close(self) -> None:
        """Let go."""
        await self._session.close()


class EdgeTarget:
    """The whole edge, over HTTP: a lead and its idempotency key are one transaction."""

    command: Sequence[str]
    environment: Mapping[str, str]

    def __init__(self, path: Path, module: Sequence[str] = EDGE) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._path = path
        self._origin = f"http://127.0.0.1:{port}"
        self.command = (sys.executable, *module)
        self.environment = {
            **dict.fromkeys(LIMITS, "0"),
            "PORT": str(port),
            "DATABASE_URL": f"sqlite:///{path}",
            "BUILD_DIR": str(path.with_name("build")),
        }

    async def connect(self, process: Process) -> EdgeClient:
        """Return a way in, when the edge says where it listens."""
        assert process.stdout is not None
        if not (await process.stdout.readline()).startswith(b"serving"):
            raise ConnectionError("the edge did not start")
        return EdgeClient(self._origin)

    def stored(self) -> set[str]:
        """Return the ids of the leads."""
        return ids(self._path, "SELECT id FROM leads")

    def halves(self) -> set[str]:
        """Return the leads that are not indexed, and numbers of leads and of keys that differ."""
        return unindexed(self._path) | ids(
            self._path,
            "SELECT leads || ' leads, ' || keys || ' keys' FROM (SELECT"
            " (SELECT count(*) FROM leads) AS leads,"
            " (SELECT count(*) FROM idempotency_keys) AS keys) WHERE leads <> keys",
        )


TARGETS: Mapping[str, type[StoreTarget | EdgeTarget]] = MappingProxyType(
    {"store": StoreTarget, "edge": EdgeTarget}
)
