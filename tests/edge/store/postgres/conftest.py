"""A real database for each test, a store on it, and a rival who comes to it with another tool."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Protocol

import asyncpg
import pytest

from edge_api.db.postgres.connection import SCHEMA, PostgresConnection
from edge_api.db.postgres.engine import PostgresStore, open_store
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.postgres.proxy import Proxy
from tests.edge.store.samples import clock


class StoreOpener(Protocol):
    """Opens a store, which is closed after the test."""

    async def __call__(self, url: str = "", /) -> PostgresStore:
        """Open the store at a URL; without one, that of the test."""


@pytest.fixture
def url(postgresql: PostgreSQL) -> Iterator[str]:
    """Return where an empty store is."""
    made = postgresql.make_store()
    try:
        yield made
    finally:
        postgresql.drop(made)


@pytest.fixture
def empty(postgresql: PostgreSQL) -> Iterator[str]:
    """Return where a database without a store is."""
    made = postgresql.url(postgresql.make_empty())
    try:
        yield made
    finally:
        postgresql.drop(made)


@pytest.fixture
async def opener(url: str) -> AsyncIterator[StoreOpener]:
    """Return what opens stores, when the test has set how they are to be."""
    async with AsyncExitStack() as stack:

        async def open_one(place: str = "", /) -> PostgresStore:
            opened = await open_store(place or url, clock)
            stack.push_async_callback(opened.close)
            return opened

        yield open_one


@pytest.fixture
async def store(opener: StoreOpener) -> PostgresStore:
    """Return an open store."""
    return await opener()


@pytest.fixture
async def rival(url: str) -> AsyncIterator[PostgresConnection]:
    """Return a connection of somebody else to the database of the store."""
    session = await asyncpg.connect(url, server_settings={"search_path": SCHEMA})
    try:
        yield session
    finally:
        session.terminate()


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    """Return a way to the database that can be cut."""
    async with Proxy(url) as opened:
        yield opened
