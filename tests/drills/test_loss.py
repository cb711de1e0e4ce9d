"""A store whose files are gone comes back, and the drill would notice if it did not."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.drills.loss import Way, as_json, await_replica, drill, installation_in, said
from tests.edge.edge_process import Installation

pytestmark = pytest.mark.size("test")


def test_every_lead_of_before_a_backup_comes_back(tmp_path: Path) -> None:
    """A backup is made under writers; the edge is killed, its files are gone; none is missing."""
    backups = []

    def save(installation: Installation) -> None:
        backups.append(as_json(installation, "backup", "--json")["file"])

    way = Way(save, lambda installation: said(installation, "restore", backups[0]))
    found = drill(installation_in(tmp_path), way)

    assert len(found.saved) >= 40
    assert (found.lost, found.doubled) == (set(), set())


def test_every_lead_of_before_a_sync_comes_back_from_the_replica(tmp_path: Path) -> None:
    """The same holds of a replica, up to the last time that it had everything."""
    settings = {"LITESTREAM_REPLICA": f"file://{tmp_path}/replica", "SECRET_KEY": "k" * 40}
    installation = installation_in(tmp_path, **settings)
    way = Way(
        lambda installation: await_replica(installation.store),
        lambda installation: said(installation, "restore", "--from-replica"),
    )
    found = drill(installation, way)

    assert len(found.saved) >= 40
    assert (found.lost, found.doubled) == (set(), set())


@pytest.mark.size("ci")
def test_a_plain_copy_of_the_file_is_caught(tmp_path: Path) -> None:
    """The file alone, without the log beside it, lacks leads: the same drill says so."""
    copy = tmp_path / "copy.db"

    def restore(installation: Installation) -> None:
        installation.store.parent.mkdir(exist_ok=True)
        shutil.copyfile(copy, installation.store)
        with closing(sqlite3.connect(installation.store)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    way = Way(lambda installation: shutil.copyfile(installation.store, copy), restore)
    found = drill(installation_in(tmp_path), way)

    assert found.lost
    assert found.doubled
