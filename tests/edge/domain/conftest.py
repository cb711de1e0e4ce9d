"""A real store in a file of the test's own, and a clock that the test moves."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from edge_api.__main__ import main
from edge_api.auth.actor import Actor
from edge_api.auth.keys import Keys
from edge_api.auth.rate_limits import Limiter
from edge_api.db.problems import Problem
from edge_api.db.query import Query, QueryResult, Read, Store
from edge_api.leads.service import Leads
from edge_api.settings import read_settings
from tests.patience import patience

PROJECT = Path(__file__).parents[3]


@dataclass
class MovableClock:
    """Stands still until it is moved."""

    now: datetime = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the instant."""
        return self.now

    def move(self, **by: float) -> None:
        """Go on by a time, in the words of `timedelta`."""
        self.now += timedelta(**by)

    def seconds(self) -> float:
        """Return the instant as the limiter wants it."""
        return self.now.timestamp()


@pytest.fixture
def clock() -> MovableClock:
    """Return a clock at noon of 1 June 2026."""
    return MovableClock()


@pytest.fixture
def limiter(clock: Any) -> Limiter:
    """Return a limiter with the default rates."""
    return Limiter(read_settings({}, dotenv=None), clock.seconds)


@pytest.fixture
def leads(store: Store, clock: Any, limiter: Limiter) -> Leads:
    """Return the leads of the store."""
    return Leads(store, clock, limiter, b"a secret of this test alone, 32 bytes")


class WatchedStore:
    """A real store that counts what it is asked, and can be out of reach."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.version_is_exact = store.version_is_exact
        self.runs = 0
        self.away = False
        self.read_only = False

    async def run(self, *plans: Query) -> list[QueryResult]:
        """Pass the plans on."""
        self.runs += 1
        writes = any(not isinstance(plan, Read) for plan in plans)
        self._reach(away=self.away or (self.read_only and writes))
        return await self._store.run(*plans)

    def version(self) -> int:
        """Pass the question on."""
        self._reach(away=self.away)
        return self._store.version()

    async def scrub(self, *, full: bool = False) -> bool:
        """Pass the wish on."""
        return await self._store.scrub(full=full)

    async def probe(self) -> None:
        """Pass the question on."""
        await self._store.probe()

    async def close(self) -> None:
        """Leave closing to the fixture."""

    def _reach(self, *, away: bool) -> None:
        if away:
            raise Problem("unavailable", headers={"Retry-After": "1"})


@pytest.fixture
def watched(store: Store) -> WatchedStore:
    """Return the store behind one who counts."""
    return WatchedStore(store)


@pytest.fixture
def keys(store: Store, clock: MovableClock) -> Keys:
    """Return the keys of the store."""
    return Keys(store, clock)


@pytest.fixture
def holder() -> Actor:
    """Return the holder of some API key."""
    return Actor("01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b", "test", "api_key", frozenset())


@dataclass(frozen=True)
class Ended:
    """The exit status and the output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Return what runs a command of `python -m edge_api` on the store of the test."""
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/edge.db")

    def run(*words: str) -> Ended:
        return Ended(main(list(words)), *capsys.readouterr())

    return run


@pytest.fixture
def run_process(tmp_path: Path) -> Callable[..., Ended]:
    """Return what does the same in a process of its own."""

    def run(*words: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "edge_api", *words],
            env={"DATABASE_URL": f"sqlite:///{tmp_path}/edge.db", "PATH": os.environ["PATH"]},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(),
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
