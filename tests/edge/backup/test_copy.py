"""`copy`: every row of every table in another store, proven, or a sentence and nothing done."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from edge_api.db.postgres import engine as postgres
from edge_api.db.postgres.engine import PostgresStore
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Query, QueryResult, Read, Store, Update
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.table import Table
from edge_api.db.tables import CREDENTIALS, EMAIL_SEND_STATE, LEADS, TABLES
from edge_api.db.transfer import copy_tables, digest_table
from tests.drills.loss import installation_in, said
from tests.edge.edge_process import Installation
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.rows_of_every_kind import bare_row, full_row
from tests.edge.store.samples import clock, make_lead

pytestmark = pytest.mark.size("test")

Stores = tuple[SQLiteStore, SQLiteStore]
ServerStores = tuple[PostgresStore, PostgresStore]
EVERY = tuple(TABLES.values())
ROWS = {"email_send_state": 1, "announced_posts": 1, "mailbox_state": 1}
"""The number of rows of tables that can have no other."""


def quiet(_table: Table, _looked: int) -> None:
    """Hear of progress and do nothing."""


async def fill(store: Store) -> None:
    """Put rows into every table: more than a page of leads, and all columns of each."""
    many = [make_lead() for _ in range(1101)]
    await store.run(Insert(LEADS, many))
    for table in EVERY:
        if table.singleton:
            values = full_row(table, 1)
            key = values.pop(table.key)
            await store.run(Update(table, values, (Filter(table.key, "eq", key),)))
        else:
            made = [full_row(table, 1), bare_row(table, 2)]
            await store.run(Insert(table, made[: ROWS.get(table.name, 2)]))


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    """Return a store with rows in every table, and an empty one."""
    source = await open_store(tmp_path / "source.db", clock)
    target = await open_store(tmp_path / "target.db", clock)
    await fill(source)
    yield source, target
    await target.close()
    await source.close()


async def rows(store: Store, table: Table) -> list[object]:
    """Return every row of a table."""
    (result,) = await store.run(Read(table))
    return list(result.rows)


async def test_every_column_of_every_table_is_copied(stores: Stores) -> None:
    """Both stores give the same answers; counts and digests prove it."""
    source, target = stores
    copied = await copy_tables(source, target, EVERY, quiet)

    for each in copied:
        assert await rows(target, each.table) == await rows(source, each.table)
        assert (each.rows, each.digest) == await digest_table(target, each.table)
    assert {each.table.name: each.rows for each in copied} == {
        table.name: {**ROWS, "leads": 1103}.get(table.name, 2) for table in EVERY
    }


async def test_a_copy_can_be_repeated(stores: Stores) -> None:
    """Rows that are there are left alone, those that are missing are stored."""
    source, target = stores
    await copy_tables(source, target, EVERY, quiet)
    some = Filter("id", "eq", str(full_row(LEADS, 1)["id"]))
    await target.run(Delete(LEADS, (some,)))
    copied = await copy_tables(source, target, EVERY, quiet)

    assert {each.table.name: each.stored for each in copied if each.stored} == {"leads": 1}


async def test_a_target_with_other_rows_is_refused_before_anything_is_written(
    stores: Stores,
) -> None:
    """A row of its own, and one that differs: both are named, and nothing is copied."""
    source, target = stores
    differing, extra = {**full_row(LEADS, 1), "name": "Another"}, make_lead()
    await target.run(Insert(LEADS, [differing, extra]))
    with pytest.raises(Problem) as refusal:
        await copy_tables(source, target, EVERY, quiet)

    assert f"1 of leads differ ({differing['id']})" in refusal.value.message
    assert f"1 of leads are not in the source ({extra['id']})" in refusal.value.message
    assert len(await rows(target, LEADS)) == 2


class Interrupted:
    """A source to which a rival adds a lead as its credentials are read for the second time."""

    def __init__(self, store: Store, rival: Store) -> None:
        self._store = store
        self.version_is_exact = store.version_is_exact
        self._rival = rival
        self._reads = 0
        self.version = store.version
        self.scrub = store.scrub
        self.probe = store.probe
        self.close = store.close

    async def run(self, *plans: Query) -> list[QueryResult]:
        """Do as the store does, and count."""
        self._reads += sum(isinstance(plan, Read) and plan.table is CREDENTIALS for plan in plans)
        if self._reads == 2:
            await self._rival.run(Insert(LEADS, [make_lead()]))
        return await self._store.run(*plans)


async def test_a_source_that_changes_meanwhile_is_refused(tmp_path: Path, stores: Stores) -> None:
    """Somebody writes to what was compared already: the copy is not said to be whole."""
    source, target = stores
    async with AsyncExitStack() as stack:
        rival = await open_store(tmp_path / "source.db", clock)
        stack.push_async_callback(rival.close)
        with pytest.raises(Problem) as refusal:
            await copy_tables(Interrupted(source, rival), target, (LEADS, CREDENTIALS), quiet)

    assert refusal.value.message.startswith("The source was changed meanwhile")


@pytest.fixture
async def on_one_server(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ServerStores]:
    """Return a store with rows and an empty one in two databases, each quick to see changes."""
    monkeypatch.setattr("edge_api.db.postgres.engine.POLL_SECONDS", 0.01)
    async with AsyncExitStack() as stack:
        opened: list[PostgresStore] = []
        for _ in range(2):
            url = postgresql.make_store()
            stack.callback(postgresql.drop, url)
            opened.append(await postgres.open_store(url, clock))
            stack.push_async_callback(opened[-1].close)
        await fill(opened[0])
        yield opened[0], opened[1]


async def test_writes_to_the_target_on_the_same_server_do_not_abort_a_copy(
    on_one_server: ServerStores,
) -> None:
    """As the copy does itself in its target: the server's transactions are counted together."""
    source, target = on_one_server
    before = source.version()
    copied = await copy_tables(source, target, EVERY, quiet)

    assert source.version() != before
    assert sum(each.stored for each in copied) > 1101


async def test_a_row_that_comes_late_is_noticed_on_a_server_too(
    on_one_server: ServerStores,
) -> None:
    """Its rows tell what its version cannot."""
    source, target = on_one_server
    with pytest.raises(Problem) as refusal:
        await copy_tables(Interrupted(source, source), target, (LEADS, CREDENTIALS), quiet)

    assert refusal.value.message.startswith("The source was changed meanwhile")


async def test_an_equal_sole_row_is_not_written_again(
    on_one_server: ServerStores, postgresql: PostgreSQL
) -> None:
    """A copy that is repeated leaves the target as it is."""
    source, target = on_one_server
    database = target._url.rpartition("/")[2]  # noqa: SLF001  to look at it past the store
    writers = []
    for _ in range(2):
        await copy_tables(source, target, (EMAIL_SEND_STATE,), quiet)
        found = postgresql.execute("SELECT xmin::text FROM fore_edge.email_send_state", database)
        writers.append(found[0][0])

    assert writers[0] == writers[1]


async def test_a_sole_row_that_is_gone_is_gone_in_the_copy(stores: Stores) -> None:
    """Its defaults apply in the source, so they have to in the target."""
    source, target = stores
    await source.run(Delete(EMAIL_SEND_STATE, (Filter("id", "eq", 1),)))
    await copy_tables(source, target, EVERY, quiet)

    assert await rows(target, EMAIL_SEND_STATE) == []


async def test_the_digest_shows_the_smallest_difference(stores: Stores) -> None:
    """Another value in one column of one row, and the proof is another."""
    source, _ = stores
    before = await digest_table(source, LEADS)
    row = Filter("id", "eq", str(full_row(LEADS, 1)["id"]))
    await source.run(Update(LEADS, {"spam_score": 7}, (row,)))

    assert await digest_table(source, LEADS) != before


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a store."""
    made = installation_in(tmp_path)
    said(made, "keys", "issue", "--name", "kept")
    return made


def test_the_command_copies_and_says_what_both_hold(installation: Installation) -> None:
    """The target is made; each table has its line; the copy serves."""
    target = f"sqlite:///{installation.folder}/other/edge.db"
    installation.store.with_suffix(".key").write_text("k" * 64)
    words = ("copy", "--from", installation.settings["DATABASE_URL"], "--to", target)
    output = said(installation, *words)
    again = said(installation, *words)

    assert "credentials: 1 rows, 1 copied, " in output
    assert "rows are in both stores, the same; 2 of them were copied now" in output
    assert "0 of them were copied now" in again
    assert "the secret key is in no store" in output
    assert "kept" in said(installation.changed(DATABASE_URL=target), "keys", "list")


@pytest.mark.size("ci")
def test_an_impossible_copy_is_reported(installation: Installation) -> None:
    """The same store twice, one that is not there, an address of no engine, one that is served."""
    here, there = installation.settings["DATABASE_URL"], f"sqlite:///{installation.folder}/o.db"
    for source, target, code, message in (
        (here, here, 2, "name the same store"),
        (there, here, 1, "there is no store at"),
        (here, "mysql://db", 2, "must be sqlite:///"),
    ):
        ended, _, complained = installation.run("copy", "--from", source, "--to", target)
        assert ended == code
        assert message in complained
    said(installation, "copy", "--from", here, "--to", there)
    with installation.changed(DATABASE_URL=there).serving():
        ended, _, complained = installation.run("copy", "--from", here, "--to", there)
    assert ended == 1
    assert "is served by another edge" in complained
