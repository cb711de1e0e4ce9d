"""A connection that is lost during COMMIT: the edge finds out whether its group is stored."""

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import asyncpg
import pytest

from edge_api.db.postgres.connection import Connection, PostgresConnection
from edge_api.db.postgres.engine import PostgresStore
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Update
from edge_api.db.tables import LEADS
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.postgres.conftest import StoreOpener
from tests.edge.store.postgres.proxy import Proxy
from tests.edge.store.postgres.test_faults import recovery_of
from tests.edge.store.samples import make_lead

pytestmark = pytest.mark.size("test")

ABSENT = (
    "The store's server went away in the middle of a commit; nothing was stored; try again later"
)
UNKNOWN = (
    "The store's server went away in the middle of a commit, and it is not known whether this was "
    "stored; send it again with the same Idempotency-Key"
)
WAITING = """
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
SLOW_COMMIT = """
CREATE FUNCTION wait_for_lock() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON leads DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION wait_for_lock()
"""
MARKS = "SELECT writer, number FROM write_marks ORDER BY marked_at"


@pytest.fixture(autouse=True)
def _short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for a second where nothing is to be found."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RECONNECT_SECONDS", 0.05)
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", 1.0)


@pytest.fixture
async def store(opener: StoreOpener, proxy: Proxy) -> PostgresStore:
    """Return a store that has written a lead, and whose way to the server can be cut."""
    opened = await opener(proxy.url)
    await write(opened)
    return opened


@pytest.fixture
def ordinary(postgresql: PostgreSQL, url: str) -> Iterator[str]:
    """Return the store's URL for a user whom the server does not tell which system it is."""
    name = url.rpartition("/")[2]
    user = f"ordinary_{name}"
    for statement in (
        f"CREATE USER {user}",
        f"GRANT ALL ON SCHEMA fore_edge TO {user}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA fore_edge TO {user}",
        "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
    ):
        postgresql.execute(statement, name)
    try:
        yield postgresql.url(name, user)
    finally:
        postgresql.execute(f"DROP OWNED BY {user}", name)
        postgresql.execute(f"DROP USER {user}")


async def write(store: PostgresStore) -> str:
    """Store one lead, and return its id."""
    (result,) = await store.run(Insert(LEADS, [make_lead()]))
    return str(result.rows[0]["id"])


async def ids(rival: PostgresConnection) -> list[str]:
    """Return the ids of all leads in the database."""
    return [row["id"] for row in await rival.fetch("SELECT id FROM leads")]


async def refusal_of(doing: Awaitable[Any]) -> Problem:
    """Return the problem that a call meets, which tells when to come back."""
    with pytest.raises(Problem) as refusal:
        await doing
    assert (refusal.value.status, refusal.value.headers) == (503, {"Retry-After": "2"})
    return refusal.value


async def test_a_commit_whose_answer_is_lost_is_a_success(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection
) -> None:
    """All callers of the group get their results, and each is stored once."""
    proxy.last_word = b"COMMIT"
    written = await asyncio.gather(*(write(store) for _ in range(5)))
    proxy.last_word = b""
    written.append(await write(store))

    assert set(written) < set(await ids(rival))
    assert len(await ids(rival)) == 7


async def test_a_change_and_a_deletion_are_found_too(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection
) -> None:
    """They leave no row of their own, and what they answer is what they have done."""
    key = await write(store)
    proxy.last_word = b"COMMIT"
    where = (Filter("id", "eq", key),)
    (changed,) = await store.run(Update(LEADS, {"name": "Bo"}, where))
    proxy.last_word = b"COMMIT"
    (deleted,) = await store.run(Delete(LEADS, where))

    assert [row["name"] for row in (*changed.rows, *deleted.rows)] == ["Bo", "Bo"]
    assert key not in await ids(rival)


async def test_a_commit_that_the_server_does_not_hear_stored_nothing(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection
) -> None:
    """All callers get that answer, and it is true; what an earlier group stored is no proof."""
    proxy.unheard = b"COMMIT"
    problems = await asyncio.gather(*(refusal_of(write(store)) for _ in range(5)))

    assert {problem.message for problem in problems} == {ABSENT}
    assert len(await ids(rival)) == 1
    proxy.unheard = b""
    await write(store)


async def test_the_first_group_of_a_writer_is_not_there_either(
    opener: StoreOpener, proxy: Proxy, rival: PostgresConnection
) -> None:
    """It has left no mark before."""
    fresh = await opener(proxy.url)
    proxy.unheard = b"COMMIT"

    assert (await refusal_of(write(fresh))).message == ABSENT
    assert await ids(rival) == []


async def test_others_write_meanwhile(
    store: PostgresStore, opener: StoreOpener, proxy: Proxy, rival: PostgresConnection
) -> None:
    """The marks of one edge are not taken for those of another."""
    other = await opener()
    proxy.last_word = b"COMMIT"
    written = asyncio.create_task(write(store))
    others = [await write(other) for _ in range(5)]

    assert {await written, *others} < set(await ids(rival))
    proxy.last_word, proxy.unheard = b"", b"COMMIT"
    refused = asyncio.create_task(refusal_of(write(store)))
    for _ in range(5):
        await write(other)
    assert (await refused).message == ABSENT


@pytest.mark.parametrize("is_stored", [True, False])
async def test_the_lost_transaction_is_waited_for(
    store: PostgresStore,
    rival: PostgresConnection,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_stored: bool,
) -> None:
    """The server is still busy with its COMMIT: the edge looks when that has ended, either way."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", 60.0)
    await rival.execute(SLOW_COMMIT)
    await rival.execute("BEGIN; SELECT pg_advisory_xact_lock(1)")
    watcher = await asyncpg.connect(url)
    writing = asyncio.create_task(write(store))
    (committing,) = await waiting_for_locks(watcher, 1)
    session = store._writer._session  # noqa: SLF001  its connection breaks, and no server notices
    assert session is not None
    session.terminate()
    await waiting_for_locks(watcher, 2)
    assert not writing.done()
    if not is_stored:
        await watcher.execute("SELECT pg_terminate_backend($1)", committing)
    await rival.execute("COMMIT")
    await watcher.close()

    if is_stored:
        assert await writing in await ids(rival)
    else:
        assert (await refusal_of(writing)).message == ABSENT
        assert len(await ids(rival)) == 1


async def waiting_for_locks(watcher: PostgresConnection, number: int) -> list[int]:
    """Return the server's processes that wait for advisory locks, once there are so many."""
    for _ in range(600):
        found = await watcher.fetch(WAITING)
        if len(found) == number:
            return [row["pid"] for row in found]
        await asyncio.sleep(0.05)
    raise AssertionError


async def test_nobody_knows_while_no_server_can_be_reached(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection
) -> None:
    """It is stored here; the edge cannot look, says so in time, and goes on when it can."""
    proxy.last_word = b"COMMIT"
    proxy.refuse_new()
    problem = await refusal_of(write(store))

    assert (problem.message, problem.sqlstate) == (UNKNOWN, "08007")
    assert len(await ids(rival)) == 2
    proxy.last_word = b""
    proxy.fix()
    await recovery_of(lambda: write(store))


async def test_a_server_that_comes_back_in_time_is_asked(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart: the client waits, and gets its answer."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", 60.0)
    proxy.last_word = b"COMMIT"
    proxy.refuse_new()
    writing = asyncio.create_task(write(store))
    await proxy.refused.wait()
    assert not writing.done()
    proxy.fix()

    assert await writing in await ids(rival)


async def test_a_server_that_is_only_read_does_not_know(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection, url: str
) -> None:
    """A former primary that was fenced has rows that its successor lacks."""
    name = url.rpartition("/")[2]
    await rival.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    proxy.last_word = b"COMMIT"

    assert (await refusal_of(write(store))).message == UNKNOWN
    assert len(await ids(rival)) == 2


@pytest.mark.parametrize(
    ("server", "is_known"),
    [
        (("another system", "00000001"), False),
        (("", "00000002"), False),  # an older timeline than that of before
        (("", "00000000"), True),  # a later one, which has the group
    ],
)
async def test_a_commit_found_on_the_successor_is_a_success(
    store: PostgresStore, proxy: Proxy, server: tuple[str, str], *, is_known: bool
) -> None:
    """Another system's marks and those of a former timeline prove nothing."""
    writer = store._writer  # noqa: SLF001  no test can turn back the time of a server
    system, _ = writer._server  # noqa: SLF001
    writer._server = server[0] or system, server[1]  # noqa: SLF001
    proxy.last_word = b"COMMIT"
    if is_known:
        await write(store)
    else:
        assert (await refusal_of(write(store))).message == UNKNOWN


async def test_a_commit_missing_on_another_timeline_is_unclear(
    store: PostgresStore, proxy: Proxy
) -> None:
    """The former server may have it."""
    writer = store._writer  # noqa: SLF001  as above
    writer._server = writer._server[0], "00000000"  # noqa: SLF001
    proxy.unheard = b"COMMIT"

    assert (await refusal_of(write(store))).message == UNKNOWN


async def test_a_server_that_does_not_say_which_it_is(
    opener: StoreOpener, proxy: Proxy, ordinary: str, rival: PostgresConnection
) -> None:
    """A found commit is a success; a missing one stays unclear."""
    proxy.lead_to(ordinary)
    store = await opener(proxy.url)
    await write(store)
    assert store._writer._server == ("", "")  # noqa: SLF001
    proxy.last_word = b"COMMIT"
    assert await write(store) in await ids(rival)

    proxy.last_word, proxy.unheard = b"", b"COMMIT"
    assert (await refusal_of(write(store))).message == UNKNOWN
    assert len(await ids(rival)) == 2


async def test_an_ordinary_user_may_ask_which_server_it_is(
    postgresql: PostgreSQL, ordinary: str
) -> None:
    """PostgreSQL lets everybody ask, unless somebody takes that away."""
    name = ordinary.rpartition("/")[2]
    postgresql.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC", name)
    session = await asyncpg.connect(ordinary)
    assert await session.fetchval("SELECT system_identifier FROM pg_control_system()")
    assert await session.fetchval("SELECT pg_walfile_name(pg_current_wal_lsn())")
    await session.close()


async def test_a_store_that_closes_meanwhile_answers_at_once(
    store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks no longer for a server than its end may take, and later callers are refused."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", 60.0)
    proxy.last_word = b"COMMIT"
    proxy.refuse_new()
    writing = asyncio.create_task(refusal_of(write(store)))
    await proxy.refused.wait()
    waiting = asyncio.create_task(refusal_of(write(store)))
    await asyncio.sleep(0)
    await store.close()

    assert (await writing).message == UNKNOWN
    assert (await waiting).message.startswith("The store")


async def test_groups_that_wait_meanwhile_are_written_after_it(
    store: PostgresStore, proxy: Proxy, rival: PostgresConnection
) -> None:
    """Their commit would replace the mark that is being looked for."""
    entered = asyncio.Event()

    async def enter(_connection: Connection) -> None:
        proxy.last_word = b"COMMIT"
        entered.set()

    first = asyncio.create_task(store._writer.run(enter))  # noqa: SLF001  what no plan can do
    writing = asyncio.create_task(write(store))
    await entered.wait()
    later = [asyncio.create_task(write(store)) for _ in range(5)]
    written = await asyncio.gather(writing, *later)

    await first
    assert set(written) < set(await ids(rival))


async def test_each_writer_has_one_commit_mark(
    store: PostgresStore, opener: StoreOpener, rival: PostgresConnection
) -> None:
    """One for each writer, however much it writes; those of writers that have ended are deleted."""
    for _ in range(3):
        await write(store)
    ((writer, number),) = await rival.fetch(MARKS)
    await rival.execute("UPDATE write_marks SET marked_at = now() - interval '25 hours'")
    await write(await opener())
    ((other, first),) = await rival.fetch(MARKS)

    assert (number, first) == (4, 1)
    assert writer != other


async def test_a_transaction_without_changes_leaves_no_mark(
    store: PostgresStore, rival: PostgresConnection
) -> None:
    """Probes and changes that find no row would look like writes to all other edges."""
    seen = await rival.fetchval("SELECT pg_current_snapshot()::text")
    (before,) = await rival.fetch(MARKS)
    await store._check()  # noqa: SLF001  past what is remembered of the last probe
    await store.run(Delete(LEADS, (Filter("id", "eq", "0" * 36),)), Read(LEADS))

    assert await rival.fetchval("SELECT pg_current_snapshot()::text") == seen
    assert [before] == await rival.fetch(MARKS)
