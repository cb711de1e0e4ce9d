"""Administrative reads whose clients go away: the engine stops working on them."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from edge_api.db.query import Delete, Filter, Insert, Read, Store
from edge_api.db.sqlite.engine import SQLiteStore
from edge_api.db.tables import LEADS
from tests.edge.raw_http import connect
from tests.edge.store.samples import make_lead

pytestmark = pytest.mark.size("test")

LONG = "a" * 20_000
SLOW = "%" + "a_" * 50 + "b%"
"""A pattern that no text fits: in LONG the search looks at each character a hundred times."""
KEPT, OTHER = "kept@example.org", "other@example.org"
FEW = 20
"""Rows of KEPT, and how often each is searched where the read is to end by itself."""
MANY = 99
"""Searches of each row: of a thousand rows that takes minutes."""
READERS = 2
"""Connections for reads that may take long, on either engine."""
SECONDS = 20.0
"""Seconds that a read may wait for a connection: much less than an abandoned one would take."""
ACTIVE = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND state = 'active' AND query LIKE '%"leads"%'
"""


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty BUILD_DIR: rows need no journal."""
    return tmp_path_factory.mktemp("no-journal")


class Watcher:
    """Sees what the engine works on."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url

    async def long_reads(self) -> int:
        """Return how many long reads are under way in the engine, as the engine itself says."""
        if isinstance(self._store, SQLiteStore):
            patient = self._store._connections.slow._readers  # noqa: SLF001  its threads
            return sum(reader.connection._conn.in_transaction for reader in patient)  # noqa: SLF001
        connection = await asyncpg.connect(self._url)
        try:
            return int(await connection.fetchval(ACTIVE))
        finally:
            await connection.close()

    async def until(self, wanted: int) -> None:
        """Return when so many long reads are under way."""
        for _ in range(400):
            if await self.long_reads() == wanted:
                return
            await asyncio.sleep(0.05)
        assert await self.long_reads() == wanted


@pytest.fixture
async def watcher(edge: Any, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Watcher:
    """Return what sees the engine of an edge in which ENDLESS takes minutes, without a deadline."""
    monkeypatch.setattr("edge_api.admin.rows.READ_TIMEOUT_SECONDS", 600.0)
    rows = [make_lead(notes=LONG, email=KEPT if number < FEW else OTHER) for number in range(1000)]
    await edge.service.store.run(Insert(LEADS, rows))
    return Watcher(edge.service.store, store_url)


def request_for(key: str, number: int, times: int, operator: str = "ilike") -> bytes:
    """Return a request that no row answers, for which each row is searched so often.

    It is counted, so that SQLite has a transaction by which the watcher sees it.
    """
    filters = [f"notes=not.{operator}.{quote(SLOW)}"] * times + [f"notes=like.x{number}*"]
    target = f"/api/public/v1/admin/leads?select=id&{'&'.join(filters)}"
    fields = f"Host: x\r\nX-API-Key: {key}\r\nPrefer: count=exact"
    return f"GET {target} HTTP/1.1\r\n{fields}\r\n\r\n".encode()


@pytest.mark.parametrize("operator", ["like", "ilike"])
@pytest.mark.parametrize("is_shared", [True, False], ids=["one question", "a question each"])
async def test_reads_end_when_their_clients_go_away(
    edge: Any, watcher: Watcher, operator: str, *, is_shared: bool
) -> None:
    """Also those that wait for a connection; the next client need not wait for any of them."""
    key, store = await edge.key(), edge.service.store
    async with AsyncExitStack() as clients:
        for number in range(2 * READERS):
            client = await clients.enter_async_context(connect(edge.url))
            client.writer.write(request_for(key, 0 if is_shared else number, MANY, operator))
        await watcher.until(1 if is_shared and store.version_is_exact else READERS)

    await watcher.until(0)
    probes = [Read(LEADS, ("id",), limit=1, timeout=SECONDS) for _ in range(READERS)]
    results = await asyncio.gather(*(store.run(probe) for probe in probes))
    assert [len(result.rows) for (result,) in results] == [1] * READERS


@pytest.mark.size("ci")
async def test_the_remaining_client_gets_the_answer(edge: Any, watcher: Watcher) -> None:
    """Two clients share a read; one goes away, and the other is answered."""
    key, store = await edge.key(), edge.service.store
    await store.run(Delete(LEADS, (Filter("email", "eq", OTHER),)))
    raw = request_for(key, 0, FEW)
    async with connect(edge.url) as staying:
        async with connect(edge.url) as leaving:
            for client in (staying, leaving):
                client.writer.write(raw)
            await watcher.until(1 if store.version_is_exact else READERS)
        answer = await staying.answer()

    assert (answer.status, answer.body) == (200, b"[]")
