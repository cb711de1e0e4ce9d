"""A real store, a clock that a test moves on, and the administrative tables over both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge_api.domain.rows import Rows
from edge_api.store.plan import Store
from edge_api.store.sqlite import open_store
from tests.edge.rows.samples import Ticking


@pytest.fixture
def clock() -> Ticking:
    """Return a clock that stands still."""
    return Ticking()


@pytest.fixture
async def store(tmp_path: Path, clock: Ticking) -> AsyncIterator[Store]:
    """Return an empty store of the test's own."""
    opened = await open_store(tmp_path / "edge.db", clock)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def rows(store: Store, clock: Ticking) -> Rows:
    """Return the administrative tables over that store."""
    return Rows(store, clock)
