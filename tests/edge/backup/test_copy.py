"""`copy`: every row of every table in another store, proven, or a sentence and nothing done."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge_api.domain.transfer import copy_tables, prove
from edge_api.schema.problems import Problem
from edge_api.schema.table import Table
from edge_api.schema.tables import EMAIL_SEND_STATE, LEADS, TABLES
from edge_api.store.plan import Condition, Delete, Insert, Read, Update
from edge_api.store.sqlite import SQLiteStore, open_store
from tests.drills.loss import installation_in, said
from tests.edge.edge_process import Installation
from tests.edge.store.rows_of_every_kind import bare_row, full_row
from tests.edge.store.samples import clock, make_lead

Stores = tuple[SQLiteStore, SQLiteStore]
EVERY = tuple(TABLES.values())


def quiet(_table: Table, _looked: int) -> None:
    """Hear of progress and do nothing."""


async def fill(store: SQLiteStore) -> None:
    """Put rows into every table: more than a page of leads, and all columns of each."""
    many = [make_lead() for _ in range(1101)]
    await store.run(Insert(LEADS, many))
    for table in EVERY:
        if table.sole_row:
            values = full_row(table, 1)
            key = values.pop(table.key)
            await store.run(Update(table, values, (Condition(table.key, "eq", key),)))
        else:
            await store.run(Insert(table, [full_row(table, 1), bare_row(table, 2)]))


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    """Return a store with rows in every table, and an empty one."""
    source = await open_store(tmp_path / "source.db", clock)
    target = await open_store(tmp_path / "target.db", clock)
    await fill(source)
    yield source, target
    await target.close()
    await source.close()


async def rows(store: SQLiteStore, table: Table) -> list[object]:
    """Return every row of a table."""
    (outcome,) = await store.run(Read(table))
    return list(outcome.rows)


async def test_every_column_of_every_table_is_copied(stores: Stores) -> None:
    """What one store answers to any question the other does; counts and digests say so."""
    source, target = stores
    copied = await copy_tables(source, target, EVERY, quiet)

    for each in copied:
        assert await rows(target, each.table) == await rows(source, each.table)
        assert each.proof == await prove(target, each.table)
    assert {each.table.name: each.proof.rows for each in copied} == {
        table.name: {"leads": 1103, "email_send_state": 1}.get(table.name, 2) for table in EVERY
    }


async def test_a_copy_can_be_repeated(stores: Stores) -> None:
    """Rows that are there are left alone, those that are missing are stored."""
    source, target = stores
    await copy_tables(source, target, EVERY, quiet)
    some = Condition("id", "eq", str(full_row(LEADS, 1)["id"]))
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

    assert f"1 of leads differ ({differing['id']})" in refusal.value.sentence
    assert f"1 of leads are not in the source ({extra['id']})" in refusal.value.sentence
    assert len(await rows(target, LEADS)) == 2


async def test_a_source_that_changes_meanwhile_is_refused(tmp_path: Path, stores: Stores) -> None:
    """Somebody writes to the source while it is copied: the copy is not said to be whole."""
    source, target = stores
    rival = await open_store(tmp_path / "source.db", clock)
    writing: list[asyncio.Task[object]] = []

    def write(table: Table, _looked: int) -> None:
        if table is LEADS and not writing:
            writing.append(asyncio.ensure_future(rival.run(Insert(LEADS, [make_lead()]))))

    with pytest.raises(Problem) as refusal:
        await copy_tables(source, target, EVERY, write)
    await asyncio.gather(*writing)
    await rival.close()

    assert refusal.value.code == "conflict"


async def test_a_sole_row_that_is_gone_is_gone_in_the_copy(stores: Stores) -> None:
    """Its defaults apply in the source, so they have to in the target."""
    source, target = stores
    await source.run(Delete(EMAIL_SEND_STATE, (Condition("id", "eq", 1),)))
    await copy_tables(source, target, EVERY, quiet)

    assert await rows(target, EMAIL_SEND_STATE) == []


async def test_the_digest_tells_the_smallest_difference(stores: Stores) -> None:
    """Another value in one column of one row, and the proof is another."""
    source, _ = stores
    before = await prove(source, LEADS)
    row = Condition("id", "eq", str(full_row(LEADS, 1)["id"]))
    await source.run(Update(LEADS, {"spam_score": 7}, (row,)))

    assert (await prove(source, LEADS)).digest != before.digest


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


def test_what_cannot_be_copied_is_a_sentence(installation: Installation) -> None:
    """The same store twice, one that is not there, an address of no engine, one that is served."""
    here, there = installation.settings["DATABASE_URL"], f"sqlite:///{installation.folder}/o.db"
    for source, target, code, sentence in (
        (here, here, 2, "name the same store"),
        (there, here, 1, "there is no store at"),
        (here, "mysql://db", 2, "must be sqlite:///"),
    ):
        ended, _, complained = installation.run("copy", "--from", source, "--to", target)
        assert ended == code
        assert sentence in complained
    said(installation, "copy", "--from", here, "--to", there)
    with installation.changed(DATABASE_URL=there).serving():
        ended, _, complained = installation.run("copy", "--from", here, "--to", there)
    assert ended == 1
    assert "is served by another edge" in complained
