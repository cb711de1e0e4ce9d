"""A real store, a clock that a test moves on, and the administrative tables over both."""

import pytest

from edge_api.admin.rows import Rows
from edge_api.db.query import Store
from tests.edge.rows.samples import Ticking


@pytest.fixture
def clock() -> Ticking:
    """Return a clock that stands still."""
    return Ticking()


@pytest.fixture
def rows(store: Store, clock: Ticking) -> Rows:
    """Return the administrative tables over that store."""
    return Rows(store, clock)
