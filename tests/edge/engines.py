"""Stores for tests that run on both engines: where one is, as a URL, and opening it there."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.postgres import engine as postgres
from edge_api.db.query import Store
from edge_api.db.sqlite import engine as sqlite
from tests.edge.postgresql import PostgreSQL

_IN_SMALL_RUNS = pytest.param("postgresql", marks=pytest.mark.size("test"))
IN_LARGER_RUNS = pytest.param("postgresql", marks=pytest.mark.size("ci"))
ENGINES = ("sqlite", _IN_SMALL_RUNS)
SQLITE_PREFIX = "sqlite:///"

ON_SQLITE = pytest.mark.parametrize("engine", ["sqlite"])
"""For tests of the content of files, and of commands, which open the file of the test."""

Opener = Callable[[], Awaitable[Store]]
"""Opens another store on the database of the test."""


def engines_for(test: pytest.Item) -> Sequence[Any]:
    """Return the engines on which a test of the edge runs: by its marks, or those of its file.

    `one_engine` says that it has little to do with rows, `each_engine` that small runs too have it
    on both. Without either, only the larger runs have it on PostgreSQL.
    """
    if test.get_closest_marker("one_engine"):
        return ENGINES[:1]
    return ENGINES if test.get_closest_marker("each_engine") else ("sqlite", IN_LARGER_RUNS)


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
