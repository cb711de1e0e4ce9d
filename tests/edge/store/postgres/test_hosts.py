"""A database with several hosts: the one that takes writes is used, and a standby confirms."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from edge_api.db.errors import StoreRefusal
from edge_api.db.postgres.connection import connect, split_hosts
from edge_api.db.postgres.engine import PostgresStore, find_weak_replication, open_store
from edge_api.db.postgres.store_connections import Location
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import Insert, Read
from edge_api.db.tables import LEADS
from tests.edge.edge_process import Installation
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.postgres.proxy import Proxy
from tests.edge.store.samples import clock, make_lead
from tests.patience import patience

pytestmark = pytest.mark.size("ci")

IDS = "SELECT id FROM fore_edge.leads"
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgreSQL]:
    """Return a server whose replication is the tests' own."""
    server = PostgreSQL()
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module")
def url(primary: PostgreSQL) -> str:
    """Return where a store is."""
    return primary.make_store()


@pytest.fixture(scope="module")
def standby(primary: PostgreSQL, url: str) -> Iterator[PostgreSQL]:
    """Return a standby that has the store."""
    assert url
    server = PostgreSQL(primary)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def waiting(primary: PostgreSQL) -> Iterator[None]:
    """Let each commit wait for a standby that is not there."""
    set_synchronous(primary, "nobody")
    try:
        yield
    finally:
        set_synchronous(primary, "")


def set_synchronous(server: PostgreSQL, names: str) -> None:
    """Name the synchronous standbys, and release those who wait if there is none."""
    server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    server.execute("SELECT pg_reload_conf()")


def several(url: str, *servers: PostgreSQL | Proxy) -> str:
    """Return the URL of a store with the hosts of these servers."""
    ports = [
        each.port if isinstance(each, PostgreSQL) else urlsplit(each.url).port for each in servers
    ]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    name = url.rpartition("/")[2]
    return f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write"


async def write(store: PostgresStore) -> str:
    """Store one lead, and return its id."""
    (result,) = await store.run(Insert(LEADS, [make_lead()]))
    return str(result.rows[0]["id"])


async def attempt(store: PostgresStore) -> str:
    """Store one lead, and return the problem if there is one."""
    try:
        await write(store)
    except Problem as problem:
        return problem.message
    return ""


async def come_to_wait(server: PostgreSQL) -> None:
    """Return when a commit waits for its standby."""
    for _ in range(round(patience() / 0.05)):
        if await asyncio.to_thread(server.execute, WAITING):
            return
        await asyncio.sleep(0.05)
    raise AssertionError


def test_each_host_gets_a_url_of_its_own() -> None:
    """With user, password, name and options; one host stays as it is written."""
    assert split_hosts("postgresql://a:b%40@one,two:6432,[::1]:1/db?x=y") == [
        "postgresql://a:b%40@one/db?x=y",
        "postgresql://a:b%40@two:6432/db?x=y",
        "postgresql://a:b%40@[::1]:1/db?x=y",
    ]
    assert split_hosts("postgresql:///db?host=/run") == ["postgresql:///db?host=/run"]


async def test_the_host_that_takes_writes_is_found(
    url: str, primary: PostgreSQL, standby: PostgreSQL
) -> None:
    """Behind a standby, and behind a machine that is gone and answers nothing at all."""
    async with Proxy(url) as gone:
        gone.cut()
        store = await open_store(several(url, standby, gone, primary), clock)
        written = await write(store)
        (result,) = await store.run(Read(LEADS))
        await store.close()

    assert written in {row["id"] for row in result.rows}


async def test_a_busy_primary_is_waited_for(
    url: str, primary: PostgreSQL, standby: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby and a closed port refuse at once; that ends no wait for the others."""
    monkeypatch.setattr("edge_api.db.postgres.connection.OTHER_HOSTS_SECONDS", 0.05)
    async with Proxy(url) as busy, Proxy(url) as closed:
        closed.refuse_new()
        busy.cut()
        asyncio.get_running_loop().call_later(1.0, busy.fix)
        session = await connect(several(url, standby, closed, busy), {}, patience())
        assert await session.fetchval("SELECT inet_server_port()") == primary.port
        await session.close()


async def test_a_server_that_tells_nothing_of_itself_is_used(url: str, primary: PostgreSQL) -> None:
    """The server of before stays known, and no session on it ends."""
    name = url.rpartition("/")[2]
    right = "EXECUTE ON FUNCTION pg_control_system()"
    primary.execute("CREATE ROLE modest LOGIN")
    location = Location(url.replace("postgres@", "modest@"))
    moves: list[bool] = []

    async def note() -> None:
        moves.append(True)

    location.on_move.append(note)
    sessions = [await location.connect({}, patience())]
    primary.execute(f"REVOKE {right} FROM PUBLIC", name)
    try:
        sessions.append(await location.connect({}, patience()))
    finally:
        primary.execute(f"GRANT {right} TO PUBLIC", name)
    sessions.append(await location.connect({}, patience()))
    for session, _ in sessions:
        await session.close()
    assert sessions[0][1] == sessions[2][1] > sessions[1][1] == ("", "")
    assert moves == []


async def test_without_such_a_host_the_start_says_so(url: str, standby: PostgreSQL) -> None:
    """It names the hosts, and what to do."""
    hosts = several(url, standby, standby)
    with pytest.raises(StoreRefusal) as refusal:
        await open_store(hosts, clock)

    place = hosts.partition("@")[2].partition("?")[0]
    assert str(refusal.value) == (
        f"the database {place} takes no writes on any of its hosts: promote one of them"
    )


async def test_a_read_only_server_is_left(
    url: str, primary: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is fenced under an open session: the next write, or probe, looks for another."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RECONNECT_SECONDS", 0.0)
    async with Proxy(url) as way:
        store = await open_store(way.url, clock)
        await write(store)
        primary.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        primary.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(round(patience() / 0.05)):
                if found := await attempt(store):
                    break
                await asyncio.sleep(0.05)  # until the reload has reached its session
            assert found.startswith("The store cannot be written")
            assert store._writer._session is not None  # noqa: SLF001  which nothing shows
            assert store._writer._session.is_closed()  # noqa: SLF001
        finally:
            primary.execute("ALTER SYSTEM RESET default_transaction_read_only")
            primary.execute("SELECT pg_reload_conf()")
        await write(store)
        await store.close()


@pytest.mark.usefixtures("waiting")
async def test_a_commit_whose_replication_was_canceled_is_not_known(
    url: str, primary: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL calls it a success, with a warning; the standby may not have it."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", 1.0)
    store = await open_store(url, clock)
    writing = asyncio.create_task(write(store))
    await come_to_wait(primary)
    await asyncio.to_thread(primary.execute, CANCEL)

    with pytest.raises(Problem) as refusal:
        await writing
    assert refusal.value.sqlstate == OUTCOME_UNKNOWN
    await store.close()


async def test_it_is_a_success_once_a_standby_has_what_came_after(
    url: str, primary: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standby comes back while the edge looks for the commit."""
    monkeypatch.setattr("edge_api.db.postgres.store_connections.RESOLVE_SECONDS", patience())
    store = await open_store(url, clock)
    set_synchronous(primary, "nobody")
    writing = asyncio.create_task(write(store))
    await come_to_wait(primary)
    await asyncio.to_thread(primary.execute, CANCEL)
    await come_to_wait(primary)
    assert not writing.done()
    await asyncio.to_thread(set_synchronous, primary, "")

    assert await writing
    await store.close()


async def test_no_limit_of_ours_ends_the_wait_for_a_standby(
    url: str, primary: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edge leaves, and the server goes on waiting: nobody sees what no standby has."""
    module = "edge_api.db.postgres.store_connections"
    for name, seconds in (("STATEMENT", 0.5), ("COMMIT", 2.0), ("RESOLVE", 0.5)):
        monkeypatch.setattr(f"{module}.{name}_SECONDS", seconds)
    store = await open_store(url, clock)
    count = "SELECT count(*) FROM fore_edge.leads"
    name = url.rpartition("/")[2]
    ((before,),) = await asyncio.to_thread(primary.execute, count, name)
    set_synchronous(primary, "nobody")
    try:
        with pytest.raises(Problem) as refusal:
            await write(store)
        assert refusal.value.sqlstate == OUTCOME_UNKNOWN
        assert await asyncio.to_thread(primary.execute, WAITING)
        assert primary.execute(count, name) == [(before,)]
    finally:
        set_synchronous(primary, "")
    await store.close()


async def test_doctor_says_that_no_standby_is_synchronous(
    url: str, primary: PostgreSQL, standby: PostgreSQL, tmp_path: Path
) -> None:
    """Only where several hosts are given, of which one may take over."""
    hosts = several(url, primary, standby)
    settings = {"DATABASE_URL": hosts, "SECRET_KEY": "a secret of thirty-two characters"}
    _, said, _ = await asyncio.to_thread(Installation(tmp_path, settings).run, "doctor")
    assert "synchronous_standby_names is empty" in said
    assert await find_weak_replication(url) == ""
    set_synchronous(primary, "nobody")
    try:
        assert "no synchronous standby is connected" in await find_weak_replication(hosts)
        set_synchronous(primary, "*")
        for _ in range(round(patience() / 0.1)):
            if not (found := await find_weak_replication(hosts)):
                break
            await asyncio.sleep(0.1)
        assert found == ""
    finally:
        set_synchronous(primary, "")


async def test_of_two_primaries_the_later_one_is_used(
    url: str, primary: PostgreSQL, standby: PostgreSQL
) -> None:
    """Nobody has ended the former one, and it still takes writes. The standby is one no more."""
    store = await open_store(several(url, primary, standby), clock)
    await write(store)
    standby.execute("SELECT pg_promote()")
    moves: list[bool] = []

    async def note() -> None:
        moves.append(True)

    store.location.on_move.append(note)
    found = await asyncio.gather(*(store.location.connect({}, patience()) for _ in range(3)))
    assert moves == [True]
    for session, _ in found:
        assert await session.fetchval("SELECT inet_server_port()") == standby.port
        session.terminate()
    # As after a lost connection: everything is on the new server now, and does not go back.
    written = await write(store)
    (result,) = await store.run(Read(LEADS))
    assert written in {row["id"] for row in result.rows}
    leads = await asyncio.to_thread(primary.execute, IDS, url.rpartition("/")[2])
    assert written not in {row["id"] for row in leads}
    standby.end()
    with pytest.raises(asyncpg.TargetServerAttributeNotMatched):
        await store.location.connect({}, patience())
    await store.close()
