"""A standby takes over while a commit has no answer: what was lost is not called stored."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress

import pytest

from edge_api.auth.actor import system_clock
from edge_api.db.postgres.engine import PostgresStore, open_store
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import Insert
from edge_api.db.tables import LEADS
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.postgres.proxy import Proxy
from tests.edge.store.samples import make_lead
from tests.patience import patience

pytestmark = pytest.mark.size("ci")

IDS = "SELECT id FROM fore_edge.leads"


class Pair:
    """A primary, a standby that follows it, and a store whose address can lead to either."""

    def __init__(self, primary: PostgreSQL) -> None:
        self.primary = primary
        self.url = primary.make_store()
        self.name = self.url.rpartition("/")[2]
        self.way, self.replication = Proxy(self.url), Proxy(primary.url(""))
        self.standby: PostgreSQL
        self.store: PostgresStore

    async def follow(self) -> None:
        """Start the standby, and return when it has all that the primary has."""
        port = self.replication.url.rpartition(":")[2].strip("/")
        source = f"host=127.0.0.1 port={port} user=postgres"
        self.standby = await asyncio.to_thread(
            PostgreSQL, self.primary, primary_conninfo=source, wal_retrieve_retry_interval="100ms"
        )
        self.store = await open_store(self.way.url, system_clock)
        written = await self.write()
        await self.until(lambda: written in self.ids(self.standby))

    async def write(self) -> str:
        """Store one lead, and return its id."""
        (result,) = await self.store.run(Insert(LEADS, [make_lead()]))
        return str(result.rows[0]["id"])

    async def recover(self) -> str:
        """Store one lead as soon as the store has found its server, and return its id."""
        for _ in range(round(patience() / 0.1)):
            with suppress(Problem):
                return await self.write()
            await asyncio.sleep(0.1)
        raise AssertionError

    async def lose_answer(self) -> "asyncio.Task[str]":
        """Return a write that the primary has committed, whose edge looks for a server."""
        before = len(self.ids(self.primary))
        self.way.last_word = b"COMMIT"
        self.way.refuse_new()
        writing = asyncio.create_task(self.write())
        await self.way.refused.wait()
        await self.until(lambda: len(self.ids(self.primary)) > before)
        self.way.last_word = b""
        return writing

    async def fail_over(self) -> None:
        """End the primary as in a crash, and let the standby take its place and address."""
        await asyncio.to_thread(self.primary.end, signal.SIGQUIT)
        self.replication.refuse()
        await asyncio.to_thread(self.standby.execute, "SELECT pg_promote()")
        self.way.lead_to(self.standby.url(self.name))
        self.way.fix()

    def ids(self, server: PostgreSQL) -> set[str]:
        """Return the ids of the leads that a server has."""
        return {row["id"] for row in server.execute(IDS, self.name)}

    async def until(self, holds: Callable[[], object]) -> None:
        """Return when something holds, which is looked at in a thread."""
        for _ in range(round(patience() / 0.1)):
            if await asyncio.to_thread(holds):
                return
            await asyncio.sleep(0.1)
        raise AssertionError


@pytest.fixture
async def pair(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """Return a primary and its standby; the store waits for a failover as long as it takes."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", 120.0)
    async with AsyncExitStack() as stack:
        made = Pair(await asyncio.to_thread(PostgreSQL, fsync="on", full_page_writes="on"))
        stack.callback(made.primary.remove)
        await stack.enter_async_context(made.way)
        await stack.enter_async_context(made.replication)
        await made.follow()
        stack.callback(made.standby.remove)
        stack.push_async_callback(made.store.close)
        yield made


async def unknown(writing: "asyncio.Task[str]") -> bool:
    """Return whether a write ends in the problem that nobody knows what became of it."""
    with pytest.raises(Problem) as refusal:
        await writing
    return refusal.value.sqlstate == OUTCOME_UNKNOWN


async def test_a_commit_that_a_failover_lost_is_not_a_success(pair: Pair) -> None:
    """The primary had it, and had not sent it on: nobody says that it is stored, or that not."""
    pair.replication.cut()
    writing = await pair.lose_answer()
    (lost,) = pair.ids(pair.primary) - pair.ids(pair.standby)
    await pair.fail_over()

    assert await unknown(writing)
    assert lost not in pair.ids(pair.standby)
    assert await pair.recover() in pair.ids(pair.standby)


async def test_a_commit_that_the_standby_has_is_a_success(pair: Pair) -> None:
    """It takes over with the lead and its mark, on a later timeline of the same system."""
    writing = await pair.lose_answer()
    await pair.until(lambda: pair.ids(pair.primary) == pair.ids(pair.standby))
    await pair.fail_over()

    assert await writing in pair.ids(pair.standby)


async def test_a_former_primary_and_a_stranger_know_nothing(
    pair: Pair, postgresql: PostgreSQL
) -> None:
    """The address leads back to the server of before, which is on the former timeline."""
    former = pair.primary
    await pair.fail_over()
    await asyncio.to_thread(former.start)
    pair.primary = pair.standby
    for url in (pair.url, postgresql.make_store()):
        pair.way.lead_to(pair.standby.url(pair.name))
        written = await pair.recover()
        writing = await pair.lose_answer()
        pair.way.lead_to(url)
        pair.way.fix()

        assert await unknown(writing)
        assert written in pair.ids(pair.standby)
        pair.way.refuse()
        pair.way.fix()
    pair.primary = former
