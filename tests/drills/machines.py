"""Edges as on several machines: each with a folder and a copy of the build of its own.

Between clients and an edge, and between an edge and the database, there is a wire that can be cut.
"""

import asyncio
import json
import random
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout

from tests.edge.edge_process import Installation
from tests.edge.load import LIMITS
from tests.edge.small_builds import make_post, point_at, write_build
from tests.edge.store.postgres.proxy import Proxy

SITE_URL = "http://journal.test"
READINESS = "/api/public/v1/readiness"
POSTS = "/api/public/v1/posts"


def quiet_port() -> int:
    """Return a free port that the system gives to no connection, of which there are many here."""
    while True:
        port = random.randrange(20_000, 30_000)  # noqa: S311  nothing to be guessed
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Machine:
    """A running edge, and its wires."""

    installation: Installation
    process: subprocess.Popen[str]
    front: Proxy
    """Between clients and the edge."""
    back: Proxy
    """Between the edge and the database."""

    async def ask(self, path: str, key: str = "") -> tuple[int, Any]:
        """Return status and body of one GET, by the wire that clients have."""
        headers = {"X-API-Key": key} if key else {}
        async with (
            ClientSession(timeout=ClientTimeout(total=30)) as session,
            session.get(f"{self.front.url}{path}", headers=headers) as answer,
        ):
            return answer.status, json.loads(await answer.read())


@asynccontextmanager
async def running(
    folder: Path, database: str, count: int = 3, **settings: str
) -> AsyncIterator[list[Machine]]:
    """Serve on so many machines, which share a database and a relay for mail."""
    origin = folder / "origin"
    point_at(origin, write_build(origin, posts=[make_post("a")]))
    async with AsyncExitStack() as stack:
        machines = []
        for number in range(count):
            home = folder / f"machine-{number}"
            shutil.copytree(origin, home / "build", symlinks=True)
            machines.append(await stack.enter_async_context(_machine(home, database, settings)))
        await asyncio.gather(*(greeted(each.process) for each in machines))
        yield machines


@asynccontextmanager
async def _machine(home: Path, database: str, further: Mapping[str, str]) -> AsyncIterator[Machine]:
    async with Proxy(database) as back:
        settings = {
            **dict.fromkeys(LIMITS, "0"),
            "PORT": str(quiet_port()),
            "SITE_URL": SITE_URL,
            "DATABASE_URL": back.url,
            "SECRET_KEY": "a secret of thirty-two characters",
            "BUILD_DIR": str(home / "build"),
            "SMTP_URL": f"maildir:{home.parent}/mail",
            "OWNER_EMAIL": "owner@journal-keepers.net",
            **further,
        }
        installation = Installation(home, settings)
        async with Proxy(f"http://127.0.0.1:{settings['PORT']}") as front:
            with launched(installation, "serve", module="tests.drills.unheld") as process:
                yield Machine(installation, process, front, back)


@contextmanager
def launched(
    installation: Installation, *words: str, module: str = "edge_api"
) -> Iterator[subprocess.Popen[str]]:
    """Start a service whose log is in its folder; kill what is left at the end."""
    with (installation.folder / "log").open("w") as log:
        process = installation.start(*words, module=module, stderr=log)
    with process:
        try:
            yield process
        finally:
            process.kill()


async def greeted(process: subprocess.Popen[str]) -> None:
    """Return when a service says that it serves; meanwhile the wires go on."""
    assert process.stdout is not None
    assert (await asyncio.to_thread(process.stdout.readline)).startswith("serving ")
