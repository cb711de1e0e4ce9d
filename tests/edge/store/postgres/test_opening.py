"""Opening a store: what is made, and what is refused in which words."""

import asyncio
import logging
import sys
from collections.abc import Iterator

import asyncpg
import pytest

from edge_api.db.errors import StoreRefusal
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.postgres import engine
from edge_api.db.postgres.connection import PostgresConnection
from edge_api.db.postgres.engine import check_server, describe_url, open_store, store_refusal
from edge_api.db.query import Insert, Read
from edge_api.db.tables import EMAIL_SEND_STATE, LEADS
from edge_api.db.types import format_instant
from tests.edge.postgresql import GUARDED, OWNER, PostgreSQL
from tests.edge.store.samples import clock, make_lead

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

OPEN_AND_WRITE = """
import asyncio, sys
from edge_api.db.tables import LEADS
from edge_api.db.query import Insert
from edge_api.db.postgres.engine import open_store
from tests.edge.store.samples import clock, make_lead

async def main():
    store = await open_store(sys.argv[1], clock)
    try:
        await store.run(Insert(LEADS, [make_lead()]))
    finally:
        await store.close()

asyncio.run(main())
"""
SECRET = "p4ss"
NOW = format_instant(clock())


async def refusal(url: str, *, create: bool = True) -> str:
    """Return the sentence in which opening a store is refused; it tells no password."""
    with pytest.raises(StoreRefusal) as refused:
        await open_store(url, clock, create=create)
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)
    return str(refused.value)


def named(url: str) -> str:
    """Return the name of the database."""
    return url.rpartition("/")[2]


@pytest.fixture
def guarded(postgresql: PostgreSQL) -> Iterator[str]:
    """Return a user who has a password and no right at all."""
    postgresql.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{SECRET}'")
    try:
        yield GUARDED
    finally:
        postgresql.execute(f"DROP ROLE {GUARDED}")


async def test_an_empty_database_becomes_a_store(empty: str, postgresql: PostgreSQL) -> None:
    """It has the schema's version, and everything of ours is in a schema of its own."""
    store = await open_store(empty, clock)
    await store.close()
    versions = postgresql.execute("SELECT max(number) FROM fore_edge.schema_steps", named(empty))
    strangers = postgresql.execute(
        "SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace", named(empty)
    )

    assert versions[0][0] == len(MIGRATIONS)
    assert strangers == []


async def test_a_store_is_found_again(url: str) -> None:
    """Rows are there after the store was closed, and steps are not taken twice."""
    for _ in range(2):
        store = await open_store(url, clock)
        await store.run(Insert(LEADS, [make_lead()]))
        leads, states = await store.run(Read(LEADS), Read(EMAIL_SEND_STATE))
        await store.close()

    assert (len(leads.rows), len(states.rows)) == (2, 1)


async def test_a_step_that_is_missing_is_taken(
    empty: str, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of an earlier edge is brought forward, and keeps its rows."""
    with monkeypatch.context() as earlier:
        earlier.setattr("edge_api.db.postgres.engine.MIGRATIONS", MIGRATIONS[:1])
        store = await open_store(empty, clock)
        await store.close()
    lead = {name: text for name, text in make_lead().items() if name != "other_part" and text}
    names, values = ", ".join(lead), ", ".join(f"'{each}'" for each in lead.values())
    postgresql.execute(f"INSERT INTO fore_edge.leads ({names}) VALUES ({values})", named(empty))  # noqa: S608
    store = await open_store(empty, clock)
    await store.probe()
    (leads,) = await store.run(Read(LEADS))
    await store.close()

    assert len(leads.rows) == 1


async def test_a_migration_that_fails_changes_nothing(
    empty: str, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps are taken, or none; the next attempt begins where this one did."""
    broken = type(MIGRATIONS[2])((), (*MIGRATIONS[2].postgresql, "SELEKT 1"))
    with monkeypatch.context() as wrong:
        wrong.setattr("edge_api.db.postgres.engine.MIGRATIONS", (*MIGRATIONS[:2], broken))
        assert "cannot be used (42601)" in await refusal(empty)
    assert postgresql.execute("SELECT to_regnamespace('fore_edge')", named(empty))[0][0] is None

    await (await open_store(empty, clock)).close()


async def test_a_store_that_another_edge_makes_meanwhile_is_used(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come into being between two looks at the database."""
    looks = 0

    async def look(session: PostgresConnection) -> int:
        nonlocal looks
        looks += 1
        if looks == 1:
            found = await schema_version(session)
            await engine.migrate(empty, NOW, create=True)
            return found
        return await schema_version(session)

    schema_version = engine.schema_version
    monkeypatch.setattr(engine, "schema_version", look)

    await engine.migrate(empty, NOW, create=True)

    assert looks > 2


async def test_many_processes_may_open_a_new_store_at_once(empty: str) -> None:
    """The schema's steps are taken once, and nobody is refused."""
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", OPEN_AND_WRITE, empty)
        for _ in range(4)
    ]
    assert [await process.wait() for process in processes] == [0] * 4

    store = await open_store(empty, clock)
    leads, states = await store.run(Read(LEADS), Read(EMAIL_SEND_STATE))
    await store.close()
    assert (len(leads.rows), len(states.rows)) == (4, 1)


async def test_reading_commands_make_no_store(empty: str, postgresql: PostgreSQL) -> None:
    """A command that reads refuses a database without a store, and leaves it so."""
    assert "there is no store in the database" in await refusal(empty, create=False)
    assert postgresql.execute("SELECT to_regnamespace('fore_edge')", named(empty))[0][0] is None


async def test_a_store_of_a_later_edge_is_refused(url: str, postgresql: PostgreSQL) -> None:
    """Nobody knows what the later steps have made of it."""
    postgresql.execute("INSERT INTO fore_edge.schema_steps VALUES (99, '')", named(url))

    assert f"schema version 99 and this edge knows {len(MIGRATIONS)}" in await refusal(url)


async def test_the_schema_of_another_program_is_left_alone(
    empty: str, postgresql: PostgreSQL
) -> None:
    """A schema that happens to have our name and tables of its own is not ours."""
    postgresql.execute("CREATE SCHEMA fore_edge CREATE TABLE other (a int)", named(empty))

    assert "belongs to another program" in await refusal(empty)


async def test_a_database_in_another_encoding_is_refused(postgresql: PostgreSQL) -> None:
    """It could not hold what people write."""
    name = postgresql.make_empty("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        assert "has the encoding LATIN1" in await refusal(postgresql.url(name))
    finally:
        postgresql.drop(postgresql.url(name))


async def test_a_database_that_can_only_be_read_is_refused(
    empty: str, postgresql: PostgreSQL
) -> None:
    """As on a standby."""
    postgresql.execute(f"ALTER DATABASE {named(empty)} SET default_transaction_read_only = on")

    assert "can only be read" in await refusal(empty)


async def test_an_unreachable_server_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """With where it was sought, and without the password."""
    with caplog.at_level(logging.DEBUG):
        message = await refusal(f"postgresql://ada:{SECRET}@127.0.0.1:1/journal")

    assert message == (
        "the database 127.0.0.1:1/journal cannot be reached: "
        "start the server, or correct DATABASE_URL"
    )
    assert SECRET not in caplog.text


async def test_a_missing_database_is_reported(postgresql: PostgreSQL) -> None:
    """Making databases is its owner's business."""
    assert "is not there: make it with createdb" in await refusal(postgresql.url("nowhere"))


async def test_a_wrong_password_is_reported(empty: str, guarded: str) -> None:
    """A user of whom the server wants one."""
    url = empty.replace(f"{OWNER}@", f"{guarded}:{SECRET}x@")

    assert "refuses the password" in await refusal(url)


async def test_a_user_without_rights_is_reported(
    empty: str, guarded: str, postgresql: PostgreSQL
) -> None:
    """The right to make a schema is all that is needed; where it is there, not even that."""
    url = empty.replace(f"{OWNER}@", f"{guarded}:{SECRET}@")
    assert "does not let this user make a schema" in await refusal(url)

    postgresql.execute(f"CREATE SCHEMA fore_edge AUTHORIZATION {guarded}", named(empty))
    store = await open_store(url, clock)
    await store.run(Insert(LEADS, [make_lead()]))
    assert await store.scrub(full=True)
    await store.close()
    postgresql.execute("DROP SCHEMA fore_edge CASCADE", named(empty))


async def test_a_socket_leads_to_a_store(url: str, postgresql: PostgreSQL) -> None:
    """As libpq spells it: the folder as the host."""
    place = f"postgresql://{OWNER}@/{named(url)}?host={postgresql.folder}&port={postgresql.port}"
    store = await open_store(place, clock)
    await store.run(Insert(LEADS, [make_lead()]))
    await store.close()


@pytest.mark.parametrize(
    ("number", "encoding", "words"),
    [
        (120_022, "UTF8", "PostgreSQL 12.22 is too old: install 13 or later"),
        (90_624, "UTF8", "is too old"),
        (160_001, "SQL_ASCII", "has the encoding SQL_ASCII"),
    ],
)
def test_a_server_that_lacks_something_is_refused(number: int, encoding: str, words: str) -> None:
    """Changes are noticed by what came with 13; text is in UTF-8."""
    with pytest.raises(StoreRefusal, match=words):
        check_server(number, encoding, is_read_only=False)
    check_server(130_000, "UTF8", is_read_only=False)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (asyncpg.ProtocolViolationError("unsupported startup parameter: jit"), "a pooler that"),
        (asyncpg.DuplicatePreparedStatementError("exists"), "without prepared statements"),
        (asyncpg.InvalidSQLStatementNameError("no such"), "without prepared statements"),
        (asyncpg.TooManyConnectionsError("sorry"), "has no connection left"),
        (asyncpg.CannotConnectNowError("starting"), "starts up or shuts down"),
        (asyncpg.LockNotAvailableError("lock"), "brings it forward"),
    ],
)
def test_poolers_and_full_servers_are_named(error: Exception, words: str) -> None:
    """Faults that cannot be caused here are known by the server's code."""
    assert words in str(store_refusal(error, "postgresql://ada@db.test/journal"))


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ada:pw@db.test:6432/journal?sslmode=require", "db.test:6432/journal"),
        ("postgres://db.test/journal", "db.test/journal"),
        ("postgresql:///journal?host=/run/postgresql", "local/journal"),
        ("postgresql://ada:pw@a.test:6432,b.test/journal", "a.test:6432,b.test/journal"),
        (f"postgresql://ada:12/{SECRET}@db.test/journal", ""),
        (f"postgresql://ada:12?{SECRET}@db.test/journal", ""),
        (f"postgresql://ada:{SECRET}#x@db.test/journal", ""),
        (f"postgresql://ada:{SECRET} x/y@db.test/journal", ""),
        (f"postgresql://ada:[{SECRET}@db.test/journal", ""),
    ],
)
def test_a_password_is_never_printed(url: str, place: str) -> None:
    """Wherever it ends up when it was not escaped."""
    assert describe_url(url) == f"the database {place}".rstrip()


@pytest.mark.parametrize("url", ["postgresql://ada:x@h:many/db", "postgresql://ada:x@h:5432x/db"])
async def test_an_invalid_url_is_reported(url: str) -> None:
    """With how one is written."""
    assert (await refusal(url)).startswith("DATABASE_URL cannot be read: write postgresql://")
