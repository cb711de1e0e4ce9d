"""The delay after which an edge knows that another has changed something."""

import asyncio

import pytest

from edge_api.db.postgres.engine import PostgresStore
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Read
from edge_api.db.tables import LEADS
from tests.edge.store.postgres.conftest import StoreOpener
from tests.edge.store.postgres.proxy import Proxy
from tests.edge.store.samples import make_lead

pytestmark = pytest.mark.size("test")


async def test_a_version_stays_while_nothing_changes(store: PostgresStore) -> None:
    """Cached answers are valid for longer than a poll."""
    before = store.version()
    for _ in range(40):
        await asyncio.sleep(0.05)
        assert store.version() == before


async def test_nothing_kept_is_trusted_by_an_edge_that_is_cut_off(
    opener: StoreOpener, proxy: Proxy, url: str
) -> None:
    """Each call has a number of its own then; when the server is there again, one stays."""
    away, other = await opener(proxy.url), await opener(url)
    before = away.version()
    proxy.cut()
    await other.run(Insert(LEADS, [make_lead()]))
    await asyncio.sleep(2.0)  # what a revocation may take
    numbers = [before, *(away.version() for _ in range(5))]
    assert len(set(numbers)) == 6

    proxy.fix()
    for _ in range(200):
        await asyncio.sleep(0.05)
        if away.version() == away.version():
            break
    assert away.version() == away.version()
    assert away.version() not in numbers


async def test_a_lost_connection_of_the_version_poller_is_replaced(store: PostgresStore) -> None:
    """The watcher's connection is ended by somebody: it has another one within a second."""
    session = store._poller._session  # noqa: SLF001  to take it away
    assert session is not None
    session.terminate()
    await asyncio.sleep(0.1)
    await store.run(Read(LEADS))
    for _ in range(200):
        await asyncio.sleep(0.05)
        if store._poller._session not in (None, session):  # noqa: SLF001
            return
    raise AssertionError


async def test_a_closed_store_has_no_version(store: PostgresStore) -> None:
    """Caches that depend on it get an error."""
    await store.close()

    with pytest.raises(Problem):
        store.version()
