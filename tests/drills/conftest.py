"""A PostgreSQL for drills, durable as one in production, and what is in it afterwards."""

from collections.abc import Iterator

import pytest

from tests.edge.postgresql import PostgreSQL


@pytest.fixture(scope="package")
def postgresql() -> Iterator[PostgreSQL]:
    """Return a server that may be ended and killed."""
    server = PostgreSQL(fsync="on", full_page_writes="on")
    try:
        yield server
    finally:
        server.remove()
