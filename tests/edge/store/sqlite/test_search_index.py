"""The index of leads where others write beside us: former versions, which lack what keeps it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_api.db.migrations import MIGRATIONS
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update
from edge_api.db.sqlite import opening, search_index
from edge_api.db.sqlite.connection import connect
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import LEADS
from tests.edge.leads_index import read_file
from tests.edge.store.samples import clock, make_lead

FORMER = MIGRATIONS[:8]
"""The steps of version 1.0.0."""
LATER = ("other_part", "remind_at", "origin", "origin_page")
COLUMNS = [name for name in LEADS.columns if name not in LATER]


def lead(name: str) -> dict[str, str]:
    """Return a lead of somebody."""
    return {**make_lead(), "name": name, "email": "a@b.co", "message": "m"}


@pytest.fixture
def former(path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection of a version without our functions, in a store of its schema."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "MIGRATIONS", FORMER)
        opening.create_file(path)
        opening.migrate(path, "2026-01-31T08:05:09.000000Z")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def write(connection: sqlite3.Connection, *names: str) -> None:
    """Store leads as that version does."""
    values = ", ".join(f":{each}" for each in COLUMNS)
    insert = f"INSERT INTO leads ({', '.join(COLUMNS)}) VALUES ({values})"  # noqa: S608
    for name in names:
        connection.execute(insert, lead(name))


async def find(store: Store, *words: str) -> list[str]:
    """Return the names of leads that the index finds by each word."""
    reads = [Read(LEADS, where=(Filter("id", "search", (word,)),)) for word in words]
    return [row["name"] for result in await store.run(*reads) for row in result.rows]


async def test_a_former_version_goes_on_writing_after_an_upgrade(
    former: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that it adds are indexed at the next opening, a few at a time."""
    monkeypatch.setattr(search_index, "_FILL_BATCH_SIZE", 2)
    write(former, "Z\u00f6e", "Bernd", "Renate")
    await (await open_store(path, clock)).close()
    write(former, "M\u00fcller", "\u0141ukasz", "Anton")

    store = await open_store(path, clock)
    try:
        named = ["Z\u00f6e", "Bernd", "M\u00fcller", "\u0141ukasz", "Anton"]
        assert await find(store, "zoe", "bernd", "muller", "lukasz", "anton") == named
        write(
            former, "Andr\u00e9"
        )  # beside a version of today, which may change it before it is indexed
        await store.run(
            Update(LEADS, {"name": "Andr\u00e9e"}, (Filter("name", "eq", "Andr\u00e9"),))
        )
        await store.run(Delete(LEADS, (Filter("name", "eq", "Anton"),)))
    finally:
        await store.close()
    store = await open_store(path, clock)
    try:
        assert await find(store, "andree", "anton", "renate") == ["Andr\u00e9e", "Renate"]
    finally:
        await store.close()
    kept, anew = read_file(path)
    assert kept == anew


@pytest.mark.parametrize(
    "change", ["DELETE FROM leads WHERE name = 'Zyzzyva'", "UPDATE leads SET name = 'Ann'"]
)
async def test_an_erasure_by_a_former_version_leaves_nothing(
    former: sqlite3.Connection, path: Path, change: str
) -> None:
    """It cannot take single rows out of the index, so that it empties it; it is filled again."""
    write(former, "Zyzzyva", "Bj\u00f6rn")
    await (await open_store(path, clock)).close()
    former.execute(change)
    segments = former.execute("SELECT hex(block) FROM leads_search_data").fetchall()
    assert not any(b"zyz".hex().upper() in block for (block,) in segments)
    left = ["Bj\u00f6rn"] if change.startswith("DELETE") else ["Ann", "Ann"]

    store = await open_store(path, clock)
    try:
        assert await find(store, "zyz", "bjorn", "ann") == left
        await store.run(
            Insert(LEADS, [lead("Zyzzyva")]), Delete(LEADS, (Filter("name", "eq", "Zyzzyva"),))
        )
        await store.run(Update(LEADS, {"name": "S\u00f8ren"}, (Filter("email", "eq", "a@b.co"),)))
        assert await find(store, "zyz", "ann", "soren") == ["S\u00f8ren"] * len(left)
    finally:
        await store.close()
    kept, anew = read_file(path)
    assert kept == anew
    # What a version of today writes does not empty it.
    assert former.execute("SELECT count(*), sum(renewed) FROM leads_search_keys").fetchone() == (
        len(left),
        0,
    )


async def test_a_defect_of_the_index_is_no_fault_of_a_lead(path: Path) -> None:
    """An entry without its row is there already: no lead is called a duplicate for it."""
    new = lead("Ann")
    store = await open_store(path, clock)
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("INSERT INTO leads_search_keys (row_id) VALUES (?)", (new["id"],))
        with pytest.raises(sqlite3.IntegrityError, match=r"leads_search_keys\.row_id"):
            await store.run(Insert(LEADS, [new]))
        assert (await store.run(Read(LEADS)))[0].rows == []
        await store.run(Insert(LEADS, [lead("Bo")]))
        with pytest.raises(Problem, match="already"):
            await store.run(Insert(LEADS, (await store.run(Read(LEADS)))[0].rows))
    finally:
        await store.close()


async def test_only_batches_with_missing_rows_take_the_lock(
    former: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four leads are indexed, and the fifth is not: of three batches one is written."""
    monkeypatch.setattr(search_index, "_FILL_BATCH_SIZE", 2)
    write(former, "Ann", "Bo", "Cy", "Di")
    await (await open_store(path, clock)).close()
    write(former, "Eve")
    with closing(connect(path, writes=True)) as connection:
        said: list[str] = []
        connection.set_trace_callback(said.append)
        search_index.maintain_search_index(connection)
    assert said.count("BEGIN IMMEDIATE") == 1
