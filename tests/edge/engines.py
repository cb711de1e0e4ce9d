"""Stores for tests that run on both engines: where one is, as a URL, and opening it there."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from edge_api.store import postgres, sqlite
from edge_api.store.plan import Store
from tests.edge.postgresql import PostgreSQL

ENGINES = ("sqlite", "postgresql")
SQLITE_PREFIX = "sqlite:///"

ON_SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
"""For tests of what stands in files, and of commands, which open the file of the test."""

Opener = Callable[[], Awaitable[Store]]
"""Opens another store on the database of the test."""


async def open_store(url: str, clock: Callable[[], datetime]) -> Store:
    """Open the store at a URL, with the engine that it names."""
    if url.startswith(SQLITE_PREFIX):
        return await sqlite.open_store(Path(url.removeprefix(SQLITE_PREFIX)), clock)
    return await postgres.open_store(url, clock)


@contextmanager
def placed(engine: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Give the URL of an empty store on an engine: in that folder, or in the tests' PostgreSQL."""
    if engine == "sqlite":
        yield f"{SQLITE_PREFIX}{folder}/edge.db"
        return
    server = request.getfixturevalue("postgresql")
    assert isinstance(server, PostgreSQL)
    url = server.make_store()
    try:
        yield url
    finally:
        server.drop(url)
