"""The programs of PostgreSQL take each form of DATABASE_URL that an edge takes, and end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from edge_api.backup import archive
from edge_api.backup.archive import drop_rows, dump_rows, restore_rows
from edge_api.db.errors import StoreRefusal
from edge_api.schema.environment import read_database
from tests.drills.loss import installation_in, said
from tests.edge.backup.test_archive import RECIPIENT, SECRET
from tests.edge.edge_process import ROOT, free_port
from tests.edge.postgresql import GUARDED, PostgreSQL, programs
from tests.patience import patience

pytestmark = pytest.mark.size("test")

FORMS: Final = {
    "a socket": "postgresql:///{name}?host={folder}&port={port}&user=postgres",
    "a space": "postgresql://{at}/{name}?options=-c%20lock_timeout%3D0&application_name=a+b",
    "an empty one": "postgresql://{at}/{name}?sslcert=&sslmode=disable",
    "one twice": "postgresql://{at}/{name}?connect_timeout=1&connect_timeout=9",
    "several hosts": (
        "postgres://postgres@127.0.0.1:{closed},127.0.0.1:{port}/{name}"
        "?target_session_attrs=read-write"
    ),
    "a password": "postgresql://guarded:wrong@127.0.0.1:{port}/{name}?password=s%2B+%26t",
    "a password before the host": "postgresql://guarded:s%2B%20%26t@127.0.0.1:{port}/{name}",
}


@pytest.fixture
def server(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgreSQL]:
    """Return the server, with its programs in the path and a user who has a password."""
    monkeypatch.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
    postgresql.execute(f"CREATE ROLE {GUARDED} LOGIN SUPERUSER PASSWORD 's+ &t'")
    yield postgresql
    postgresql.execute(f"DROP ROLE {GUARDED}")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_the_url_is_dumped_and_restored(
    form: str, tmp_path: Path, server: PostgreSQL
) -> None:
    """What is restored has the steps of the schema; and it can be dropped again."""
    whole, name = server.make_store(), server.make_empty()

    def place(database: str) -> str:
        return read_database(
            FORMS[form].format(
                at=f"postgres@127.0.0.1:{server.port}",
                name=database,
                folder=server.folder,
                port=server.port,
                closed=free_port(),
            )
        )

    steps = "SELECT number FROM fore_edge.schema_steps"
    dump_rows(place(whole.rpartition("/")[2]), tmp_path / "dump")
    restore_rows(place(name), tmp_path / "dump")
    assert server.execute(steps, name) == server.execute(steps, whole.rpartition("/")[2])
    drop_rows(place(name))
    assert not server.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'fore_edge'", name)


async def test_a_dump_does_not_wait_for_ever(
    tmp_path: Path, server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked a table and gone: the program gives up, or is ended."""
    url = server.make_store()
    session = await asyncpg.connect(url)
    try:
        async with session.transaction():
            await session.execute("LOCK TABLE fore_edge.leads IN ACCESS EXCLUSIVE MODE")
            monkeypatch.setattr(archive, "DUMP_LOCK_SECONDS", 0.1)
            with pytest.raises(StoreRefusal, match=r"pg_dump failed: .*timeout"):
                dump_rows(url, tmp_path / "dump")
            monkeypatch.setattr(archive, "DUMP_LOCK_SECONDS", 600)
            monkeypatch.setattr(archive, "MAX_DUMP_SECONDS", 0.5)
            with pytest.raises(StoreRefusal, match=r"pg_dump did not end within .* hours: see"):
                dump_rows(url, tmp_path / "dump")
    finally:
        await session.close()


def test_the_timer_archives_a_journal_on_postgresql(tmp_path: Path, server: PostgreSQL) -> None:
    """The command of its unit copies no rows, makes an archive, and ends with status 0."""
    url = server.make_store()
    made = installation_in(
        tmp_path, DATABASE_URL=url, SECRET_KEY=SECRET, BACKUP_RECIPIENT=RECIPIENT
    )
    (tmp_path / "content").mkdir()
    unit = (ROOT / "deploy/fore-edge-backup.service").read_text("utf-8")
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    command = line.removeprefix("ExecStart=").replace("$$", "$").rpartition(" ")[0]
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m edge_api "$@"\n')
    program.chmod(0o755)
    for printed in ("encrypted for BACKUP_RECIPIENT", "no archive is due"):
        ended = subprocess.run(  # noqa: S602
            f"{command} {program}",
            shell=True,
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=made.environment,
            timeout=patience(),
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "the store is in PostgreSQL: no copy" in ended.stdout
        assert printed in ended.stdout
    assert len([*(tmp_path / "var/backups").glob("journal-*.age")]) == 1
    assert "--if-sqlite to a copy without it" in made.run("backup", "--all", "--if-sqlite")[2]
    rows = made.changed(DATABASE_URL=f"sqlite:///{tmp_path}/var/edge.db")
    said(rows, "migrate")
    assert "verified" in said(rows, "backup", "--if-sqlite")
