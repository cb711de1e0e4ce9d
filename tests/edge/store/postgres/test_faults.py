"""Faults of a real server: each is reported, harms no other request, and passes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from edge_api.db.postgres.connection import (
    Connection,
    EngineError,
    PostgresConnection,
    postgresql_problem,
)
from edge_api.db.postgres.engine import PostgresStore
from edge_api.db.postgres.store_connections import WRITE_LOCK
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, QueryResult, Read
from edge_api.db.tables import LEADS
from tests.edge.store.postgres.conftest import StoreOpener
from tests.edge.store.postgres.proxy import Proxy
from tests.edge.store.samples import make_lead

pytestmark = pytest.mark.size("test")

READ = Read(LEADS, ("id",), with_total=True)
COMMITTING = """
SELECT FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%COMMIT'
"""
END = COMMITTING.replace("SELECT", "SELECT pg_terminate_backend(pid)")
END_ALL = END.replace("AND query LIKE '%COMMIT'", "")
TAKE_LOCK = f"BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK})"


async def write(store: PostgresStore) -> list[QueryResult]:
    """Store one lead."""
    return await store.run(Insert(LEADS, [make_lead()]))


async def total(store: PostgresStore) -> int | None:
    """Return how many leads the store has."""
    (result,) = await store.run(READ)
    return result.total


async def refusal_of(doing: Awaitable[Any]) -> str:
    """Return the sentence of the problem that a call meets, which tells when to come back."""
    with pytest.raises(Problem) as refusal:
        await doing
    assert refusal.value.code == "unavailable"
    assert refusal.value.headers == {"Retry-After": "2"}
    return refusal.value.message.removesuffix("; try again later")


async def recovery_of(call: Callable[[], Awaitable[Any]]) -> None:
    """Return when a call succeeds again; ten seconds is more than any ailment needs to pass."""
    for _ in range(100):
        try:
            await call()
        except Problem:
            await asyncio.sleep(0.1)
        else:
            return
    await call()


async def end_writer(rival: PostgresConnection) -> None:
    """End the server's side of the connection that wrote last."""
    ended = await rival.fetch(END)
    assert len(ended) == 1
    for _ in range(200):
        if not await rival.fetch(COMMITTING):
            return
        await asyncio.sleep(0.05)


async def test_a_lock_that_is_held_refuses_writes_alone(
    opener: StoreOpener, rival: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another edge writes for too long: reads go on, writes are refused, later ones stored."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.LOCK_SECONDS", 0.3)
    store = await opener()
    await write(store)
    await rival.execute(TAKE_LOCK)
    writing = asyncio.gather(*(refusal_of(write(store)) for _ in range(5)))
    assert await total(store) == 1

    assert set(await writing) == {"The store is locked by another process"}
    await rival.execute("ROLLBACK")
    await write(store)
    assert await total(store) == 2


async def test_a_write_that_takes_too_long_is_an_outage(
    opener: StoreOpener,
    rival: PostgresConnection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client is not advised to narrow a query, and the operator finds a line in the log."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.STATEMENT_SECONDS", 0.3)
    store = await opener()
    await rival.execute("BEGIN; LOCK TABLE leads IN SHARE MODE")

    assert await refusal_of(write(store)) == "The store took too long"
    await rival.execute("ROLLBACK")
    await recovery_of(lambda: write(store))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "the store is unavailable: canceling statement due to statement timeout"


async def test_only_attempts_of_others_are_counted(
    opener: StoreOpener, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The store looks for its server many times meanwhile, which is no attempt that failed."""
    monkeypatch.setattr("edge_api.db.errors.RECOVERY_POLL_SECONDS", 0.05)
    store = await opener(proxy.url)
    await write(store)
    proxy.refuse()
    for _ in range(5):
        await refusal_of(write(store))
    await asyncio.sleep(1)
    proxy.fix()
    for _ in range(100):
        if len(caplog.records) > 1:
            break
        await asyncio.sleep(0.1)

    assert caplog.records[1].getMessage().endswith("; 5 attempts failed")


async def test_a_short_lock_is_waited_for(store: PostgresStore, rival: PostgresConnection) -> None:
    """Edges write one after the other, and none notices the others."""
    await rival.execute(TAKE_LOCK)
    writing = asyncio.create_task(write(store))
    await asyncio.sleep(0.2)
    assert not writing.done()
    await rival.execute("COMMIT")

    assert len((await writing)[0].rows) == 1


async def test_a_writer_that_waited_for_the_lock_sees_earlier_writes(
    opener: StoreOpener, rival: PostgresConnection, url: str
) -> None:
    """Also where the database is set to an isolation that would show the state before."""
    name = url.rpartition("/")[2]
    await rival.execute(
        f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"
    )
    store = await opener()
    await write(store)
    await rival.execute(TAKE_LOCK)
    writing = asyncio.create_task(store.run(Read(LEADS), Insert(LEADS, [make_lead()])))
    await asyncio.sleep(0.2)
    await rival.execute("UPDATE leads SET name = 'Written meanwhile'; COMMIT")
    seen, _ = await writing

    assert [row["name"] for row in seen.rows] == ["Written meanwhile"]


async def test_a_connection_that_was_ended_is_replaced(
    store: PostgresStore, rival: PostgresConnection
) -> None:
    """The next write uses another one, and no caller notices."""
    await write(store)
    await end_writer(rival)
    await recovery_of(lambda: write(store))

    assert await total(store) == 2


async def test_a_group_that_is_lost_before_its_commit_is_not_there(
    opener: StoreOpener, proxy: Proxy
) -> None:
    """All callers get an error, and nothing is stored."""
    store = await opener(proxy.url)
    await write(store)
    proxy.last_word = b"pg_advisory_xact_lock"
    sentences = await asyncio.gather(*(refusal_of(write(store)) for _ in range(5)))

    assert set(sentences) == {"The store's server cannot be reached"}
    proxy.last_word = b""
    await recovery_of(store.probe)
    assert await total(store) == 1


async def test_an_edge_that_is_cut_off_with_the_lock_stops_the_others_for_seconds_only(
    opener: StoreOpener, proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends its transaction, and the others had the patience to wait for that."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.IDLE_SECONDS", 0.5)
    away, store = await opener(proxy.url), await opener(url)
    entered = asyncio.Event()

    async def linger(_connection: object) -> None:
        proxy.cut()
        entered.set()
        await asyncio.sleep(60)

    stuck = asyncio.create_task(away._writer.run(linger))  # noqa: SLF001  what no plan can do
    await entered.wait()
    await write(store)

    assert await total(store) == 1
    stuck.cancel()
    proxy.fix()


@pytest.mark.parametrize("times", [1, 2])
async def test_a_group_that_is_lost_before_its_commit_is_run_once_more(
    store: PostgresStore, rival: PostgresConnection, times: int
) -> None:
    """The server has undone it, so that nothing is stored twice; then the callers get an error."""
    attempts = 0

    async def lose(connection: Connection) -> None:
        nonlocal attempts
        attempts += 1
        if attempts <= times:
            pid = await connection.fetchval("SELECT pg_backend_pid()")
            assert await rival.fetchval("SELECT pg_terminate_backend($1, 10000)", pid)
        await connection.fetch("SELECT 1")

    stored = asyncio.create_task(write(store))
    losing = store._writer.run(lose)  # noqa: SLF001  what no plan can do
    if times == 1:
        await asyncio.gather(stored, losing)
    else:
        with pytest.raises(EngineError):
            await losing
        assert await refusal_of(stored) == "The store's server cannot be reached"

    assert (attempts, await total(store)) == (2, 2 - times)


@pytest.mark.parametrize("statements", [(), ("SELECT 1",)])
async def test_a_process_that_was_suspended_repeats_its_group(
    opener: StoreOpener, url: str, monkeypatch: pytest.MonkeyPatch, statements: tuple[str, ...]
) -> None:
    """The server has undone the transaction meanwhile, before COMMIT or before a statement."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.IDLE_SECONDS", 1.0)
    store = await opener(url)
    attempts = 0

    async def suspend(connection: Connection) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            monkeypatch.setattr("edge_api.db.postgres.store_connections.IDLE_SECONDS", 60.0)
            pid = await connection.fetchval("SELECT pg_backend_pid()")
            waiting = threading.Thread(target=asyncio.run, args=(end_of(pid, url),))
            waiting.start()
            waiting.join()  # this loop stands still meanwhile, as a suspended process does
        for statement in statements:
            await connection.fetch(statement)

    writes = [write(store), store._writer.run(suspend)]  # noqa: SLF001  what no plan can do
    await asyncio.gather(*writes)

    assert (attempts, await total(store)) == (2, 1)


async def end_of(pid: int, url: str) -> None:
    """Return when a session of the server has ended; ten seconds is more than it needs."""
    session = await asyncpg.connect(url)
    for _ in range(100):
        if not await session.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid):
            break
        await asyncio.sleep(0.1)
    await session.close()


@pytest.mark.size("ci")
async def test_an_edge_that_is_cut_off_says_so_and_comes_back(
    opener: StoreOpener, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In silence, as a network fails: readiness tells within a second, and sees the end of it."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.STATEMENT_SECONDS", 0.5)
    monkeypatch.setattr("edge_api.db.postgres.store_connections.FAST_SECONDS", 0.5)
    store = await opener(proxy.url)
    await write(store)
    proxy.cut()

    assert await refusal_of(store.probe()) == "The store does not answer"
    assert await refusal_of(write(store)) == "The store's server cannot be reached"
    with pytest.raises(Problem):
        await total(store)

    proxy.fix()
    await recovery_of(store.probe)
    await recovery_of(lambda: write(store))
    assert await total(store) == 2


async def test_a_server_that_became_read_only_refuses_writes_alone(
    store: PostgresStore, rival: PostgresConnection, url: str
) -> None:
    """As a primary does that was made a standby: readiness says so too, and the end is noticed."""
    await write(store)
    name = url.rpartition("/")[2]
    await rival.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await end_writer(rival)
    await refusal_of(write(store))  # it may be the one that finds its connection lost

    assert await refusal_of(write(store)) == "The store cannot be written"
    assert await refusal_of(store.probe()) == "The store cannot be written"
    assert await total(store) == 1

    await rival.execute(f"SET default_transaction_read_only = off; ALTER DATABASE {name} RESET ALL")
    await rival.fetch(END_ALL)
    await recovery_of(lambda: write(store))


async def test_a_store_of_a_later_schema_fails_readiness(
    store: PostgresStore, rival: PostgresConnection
) -> None:
    """Another edge has brought the database forward under this one."""
    await rival.execute("INSERT INTO schema_steps VALUES (99, '')")

    assert (await refusal_of(store.probe())).startswith("The store has schema version 99")


async def test_dropped_tables_are_reported(store: PostgresStore, rival: PostgresConnection) -> None:
    """Somebody has dropped them: no crash, and no answer."""
    await write(store)
    await rival.execute("DROP SCHEMA fore_edge CASCADE")

    assert await refusal_of(write(store)) == "The store's tables are gone"
    assert await refusal_of(store.run(READ)) == "The store's tables are gone"
    assert (await refusal_of(store.probe())).startswith("The store has schema version 0")


async def test_a_fault_of_ours_is_no_problem_of_the_store(store: PostgresStore) -> None:
    """A statement that is wrong stays the exception that it is, and is not to be tried again."""

    async def fail(connection: PostgresConnection) -> None:
        await connection.execute("SELEKT 1")

    async def confuse(connection: PostgresConnection) -> None:
        await connection.fetch("SELECT $1::bigint", "many")

    for work, kind in ((fail, asyncpg.PostgresSyntaxError), (confuse, asyncpg.DataError)):
        with pytest.raises(kind) as error:
            await store._translate_errors(store._writer.run(work))  # type: ignore[arg-type]  # noqa: SLF001
        assert postgresql_problem(error.value) is error.value


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (asyncpg.DiskFullError("x"), "The disk of the store is full"),
        (asyncpg.PostgresIOError("x"), "The disk of the store fails"),
        (asyncpg.DataCorruptedError("x"), "The store is damaged"),
        (asyncpg.TooManyConnectionsError("x"), "The store's server is short of connections"),
        (asyncpg.OutOfMemoryError("x"), "The store's server is short of connections or memory"),
        (asyncpg.DeadlockDetectedError("x"), "The store is locked by another process"),
        (asyncpg.InvalidPasswordError("x"), "The store's server does not let the edge in"),
        (asyncpg.AdminShutdownError("x"), "The store's server cannot be reached"),
        (asyncpg.CannotConnectNowError("x"), "The store's server cannot be reached"),
        (asyncpg.InterfaceError("connection is closed"), "The store's server cannot be reached"),
        (asyncpg.InternalClientError("cannot switch"), "The store's server cannot be reached"),
        (ConnectionResetError(), "The store's server cannot be reached"),
        (TimeoutError(), "The store's server cannot be reached"),
        (asyncpg.QueryCanceledError("x"), "The store took too long"),
    ],
)
def test_errors_of_the_server_have_our_messages(error: Exception, message: str) -> None:
    """Faults that cannot be caused here are known by the server's code."""
    problem = postgresql_problem(error)

    assert isinstance(problem, Problem)
    assert problem.code == "unavailable"
    assert problem.message.startswith(message)
