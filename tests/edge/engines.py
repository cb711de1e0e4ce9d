"""Stores for tests that run on both engines: where one is, as a URL, and opening it there."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from edge_api.store import postgres, sqlite
from edge_api.store.plan import Store
from tests.edge.postgresql import PostgreSQL

ENGINES = ("sqlite", "postgresql")
SQLITE_PREFIX = "sqlite:///"

ON_SQLITE = pytest.mark.parametrize("engine", ["sqlite"])
"""For tests of what stands in files, and of commands, which open the file of the test."""

_ALIKE = (
    "analysis",
    "docs",
    "mail/test_email_hook.py",
    "mcp/test_bad_input.py",
    "mcp/test_clients.py",
    "mcp/test_discovery.py",
    "mcp/test_resources.py",
    "mcp/test_schemathesis.py",
    "mcp/test_scopes.py",
    "mcp/test_tools.py",
    "oauth/test_mutations.py",
    "oauth/test_registration.py",
    "site/test_cache.py",
    "site/test_conditional.py",
    "site/test_contact_http.py",
    "site/test_edge_pages.py",
    "site/test_media.py",
    "site/test_negotiation.py",
    "site/test_search_page.py",
    "site/test_site_faults.py",
    "site/test_site_http.py",
    "site/test_swaps.py",
    "test_agent_readiness.py",
    "test_connections.py",
    "test_corpus.py",
    "test_http_rules.py",
    "test_messages.py",
    "test_openapi.py",
    "test_posts_http.py",
    "test_problems.py",
    "test_schemathesis.py",
    "test_settings.py",
    "test_skills.py",
)
"""Where edges are tested for what has little to do with rows: once is enough."""

Opener = Callable[[], Awaitable[Store]]
"""Opens another store on the database of the test."""


def engines_for(place: Path) -> Sequence[str]:
    """Return the engines on which the tests in a file below `tests/edge/` run."""
    return ENGINES[:1] if any(place.is_relative_to(each) for each in _ALIKE) else ENGINES


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
