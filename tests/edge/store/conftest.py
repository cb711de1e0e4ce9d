"""A store on each engine for each test."""

import pytest

from edge_api.auth.actor import Clock
from tests.edge.store import samples


@pytest.fixture
def clock() -> Clock:
    """Return the clock of every test: it stands still."""
    return samples.clock
