"""The store that `restore` moves aside: whole, whatever state its files were in."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from edge_api.db.query import Insert, Query
from edge_api.db.sqlite.copying import copy_store
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import LEADS
from tests.drills.loss import ids, installation_in, said
from tests.edge.edge_process import Installation
from tests.edge.store.samples import clock, make_lead

pytestmark = pytest.mark.size("test")


@pytest.fixture
async def installation(tmp_path: Path) -> Installation:
    """Return an installation with an empty store, and a backup of that."""
    made = installation_in(tmp_path)
    await write(made)
    copy_store(made.store, tmp_path / "backup.db")
    return made


async def write(installation: Installation, *queries: Query) -> None:
    """Write into a store that nobody serves."""
    store = await open_store(installation.store, clock)
    await store.run(*queries)
    await store.close()


def restore(installation: Installation) -> Path:
    """Restore the backup; return where the former store is then."""
    said(installation, "restore", str(installation.folder / "backup.db"), "--force")
    (aside,) = installation.store.parent.glob("edge.db.replaced-*Z")
    return aside


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Read a store as it is now, as another program may for hours."""
    uri = f"{path.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM leads").fetchone()
        yield


async def test_a_replaced_store_keeps_its_write_ahead_log(installation: Installation) -> None:
    """A reader of an older state keeps the log from being written back before the restore."""
    lead = make_lead(message="in the log alone")
    with reading(installation.store):
        await write(installation, Insert(LEADS, [lead]))
        assert installation.store.with_name("edge.db-wal").stat().st_size > 0
        aside = restore(installation)

    assert (ids(installation.store), ids(aside)) == (set(), {lead["id"]})


async def test_the_draft_of_a_killed_restore_is_removed(installation: Installation) -> None:
    """Its half-made file, with a log, is neither taken for the backup nor left behind."""
    lead = make_lead()
    await write(installation, Insert(LEADS, [lead]))
    drafts = [installation.store.with_name(f".edge.db.restoring{end}") for end in ("", "-wal")]
    for draft in drafts:
        draft.write_bytes(b"half" * 5000)
    aside = restore(installation)

    assert (ids(installation.store), ids(aside)) == (set(), {lead["id"]})
    assert [draft for draft in drafts if draft.exists()] == []
