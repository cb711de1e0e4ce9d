"""`backup`: a whole copy beside writers, or nothing; and never the last good one gone."""

import asyncio
import hashlib
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from edge_api.backup.files import BackupFolder
from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.query import Insert
from edge_api.db.sqlite.copying import copy_backup, copy_store, verify_copy
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import LEADS
from edge_api.open_store import require_sqlite_path
from edge_api.settings import read_settings
from tests.drills.loss import as_json, ids, installation_in, post, said
from tests.edge.edge_process import ROOT, Installation
from tests.edge.store.samples import clock, make_lead

pytestmark = pytest.mark.size("test")

BACKUP = re.compile(r"edge-\d{8}T\d{6}\.\d{6}Z\.db")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a store."""
    made = installation_in(tmp_path)
    said(made, "migrate")
    return made


@pytest.fixture
def folder(installation: Installation) -> Path:
    """Return where its backups go."""
    return installation.store.parent / "backups"


def names_in(folder: Path) -> list[str]:
    """Return the names of all files of a folder, but for its lock and checksums.

    Each backup has one, and no other file has.
    """
    names = {path.name for path in folder.iterdir()} - {".backup-lock"}
    checksums = {name for name in names if name.endswith(".sha256")}
    assert {name for name in names if BACKUP.fullmatch(name)} >= {
        name.removesuffix(".sha256") for name in checksums
    }
    return sorted(names - checksums)


def mode_of(path: Path) -> int:
    """Return the rights on a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_backup_beside_a_running_edge_is_whole(installation: Installation, folder: Path) -> None:
    """It is one file without a log, for its owner alone, with the key beside it; it says so."""
    with installation.serving() as edge:
        lead = post(edge, "in the log alone")
        output = said(installation, "backup")

    backup, checksum, key = sorted(folder.glob("edge-*"))
    digest = hashlib.sha256(backup.read_bytes()).hexdigest()
    assert checksum.read_text() == f"{digest}  {backup.name}\n"  # as sha256sum -c reads it
    assert (checksum.name, mode_of(checksum)) == (f"{backup.name}.sha256", 0o600)
    assert ids(backup) == {lead}
    assert (mode_of(folder), mode_of(backup), mode_of(key)) == (0o700, 0o600, 0o600)
    assert names_in(folder) == [backup.name, key.name]
    assert key.read_bytes() == installation.store.with_suffix(".key").read_bytes()
    assert f"{backup.stat().st_size:,} bytes" in output
    assert f"the secret key is beside it: {key}" in output


@pytest.mark.size("ci")
def test_the_output_is_machine_readable(installation: Installation) -> None:
    """With --json it is one object: the file, its size, the rows of each table, the key."""
    sent = as_json(installation, "backup", "--json")

    assert sent["bytes"] == Path(sent["file"]).stat().st_size
    assert sent["rows"] == {**dict.fromkeys(sent["rows"], 0), "email_send_state": 1}
    assert (sent["secret_key"], sent["removed"]) == (None, [])


@pytest.mark.size("ci")
def test_the_key_can_be_left_out(installation: Installation, folder: Path) -> None:
    """With --without-key, or where SECRET_KEY is set, the folder has no secret in it."""
    installation.store.with_suffix(".key").write_text("k" * 64)
    left_out = said(installation, "backup", "--without-key")
    from_settings = said(installation.changed(SECRET_KEY="s" * 40), "backup")

    assert list(folder.glob("*.key")) == []
    assert "no secret key is beside it" in left_out
    assert "SECRET_KEY is not in it" in from_settings


def test_the_newest_are_kept_and_what_others_put_there(
    installation: Installation, folder: Path
) -> None:
    """The option says how many backups are kept; files of other names are left alone."""
    folder.mkdir()
    strange = ["edge-backup.db", "edge-20200101T000000Z.db", "notes.txt"]
    for name in strange:
        (folder / name).write_text("mine")
    made = [as_json(installation, "backup", "--keep", "2", "--json") for _ in range(3)]

    assert names_in(folder) == sorted([*strange, *(Path(each["file"]).name for each in made[1:])])
    assert made[2]["removed"] == [made[0]["file"]]


@pytest.mark.parametrize("words", ["backup", "upgrade"])
def test_backups_are_deleted_only_with_a_number(
    installation: Installation, folder: Path, words: str
) -> None:
    """Neither a backup nor an upgrade removes what a timer with a larger `--keep` has made."""
    folder.mkdir()
    early = [f"edge-20260101T0000{second:02}.000000Z.db" for second in range(30)]
    for name in early:
        (folder / name).write_text("made early")
    said(installation, words)

    assert len(names_in(folder)) == 31
    assert set(early) < set(names_in(folder))


@pytest.mark.size("ci")
def test_a_clock_that_ran_ahead_costs_no_new_backup(
    installation: Installation, folder: Path
) -> None:
    """Names from the future were made before this backup: they go first, and their keys."""
    folder.mkdir()
    for year in (2990, 2991):
        for end in ("db", "key"):
            (folder / f"edge-{year}0101T000000.000000Z.{end}").write_text("made early")
    made = [as_json(installation, "backup", "--keep", "2", "--json") for _ in range(3)]

    assert names_in(folder) == [Path(each["file"]).name for each in made[1:]]
    assert [len(each["removed"]) for each in made] == [1, 1, 1]


def test_a_failure_leaves_the_good_ones_and_nothing_half_written(
    installation: Installation, folder: Path
) -> None:
    """A damaged store gives no backup: exit 1, a sentence, and the last good one stays."""
    good = Path(as_json(installation, "backup", "--json")["file"])
    damage(installation.store)
    code, _, complained = installation.run("backup", "--keep", "1")

    assert code == 1
    assert f"{installation.store} is damaged" in complained
    assert "restore it with python -m edge_api restore FILE --force" in complained
    assert len(complained.splitlines()) == 1
    assert names_in(folder) == [good.name]


def damage(store: Path) -> None:
    """Overwrite an inner page of a store."""
    with store.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xff" * 3 * 4096)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no database" * 1000, "is no SQLite database"), (None, "there is no store at")],
)
def test_a_file_that_is_no_store_is_refused(
    installation: Installation, content: bytes | None, message: str
) -> None:
    """Another file, or none: one sentence, and exit 1."""
    installation.store.unlink()
    if content is not None:
        installation.store.write_bytes(content)
    code, _, complained = installation.run("backup")

    assert (code, len(complained.splitlines())) == (1, 1)
    assert message in complained


@pytest.mark.size("ci")
def test_the_store_of_another_program_is_refused(installation: Installation) -> None:
    """A SQLite file that is no store of ours gives no backup."""
    installation.store.unlink()
    with closing(sqlite3.connect(installation.store)) as other:
        other.execute("CREATE TABLE t (i)")
    code, _, complained = installation.run("backup")

    assert code == 1
    assert f"{installation.store} is no store of Fore-edge: set DATABASE_URL" in complained


def test_a_folder_that_cannot_be_written_is_a_sentence(
    installation: Installation, tmp_path: Path
) -> None:
    """A file is in the place of the folder: exit 1, and the fix."""
    (tmp_path / "file").write_text("")
    code, _, complained = installation.run("backup", "--to", str(tmp_path / "file" / "folder"))

    assert (code, len(complained.splitlines())) == (1, 1)
    assert "name another folder by --to" in complained


@pytest.mark.size("ci")
def test_a_disk_without_room_is_a_sentence(installation: Installation, folder: Path) -> None:
    """The copy cannot be written whole: exit 1, the last good one stays, nothing half-written."""
    good = Path(as_json(installation, "backup", "--json")["file"])
    most = installation.store.stat().st_size // 2
    limited = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}));"
        "from edge_api.__main__ import main; sys.exit(main(['backup', '--keep', '1']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=installation.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **installation.settings},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert "full" in ended.stderr
    assert names_in(folder) == [good.name]


@pytest.mark.size("ci")
def test_a_second_backup_at_once_is_refused(installation: Installation, folder: Path) -> None:
    """While one is under way in the folder another one says so and leaves its file alone."""
    with BackupFolder(folder).locked():
        partial = folder / ".edge-x.partial"
        partial.write_text("under way")
        code, _, complained = installation.run("backup")
        assert partial.exists()

    assert code == 1
    assert "another backup into" in complained
    assert not partial.exists()


def test_the_leftovers_of_a_killed_backup_are_removed(
    installation: Installation, folder: Path
) -> None:
    """The next one clears it away."""
    folder.mkdir()
    (folder / ".edge-20200101T000000.000000Z.partial").write_text("half")
    sent = as_json(installation, "backup", "--json")

    assert names_in(folder) == [Path(sent["file"]).name]


def test_a_target_that_cannot_be_made_is_the_one_that_is_named(
    installation: Installation, tmp_path: Path
) -> None:
    """The copy's place is taken, or its folder is missing: the sentence names it, not the store."""
    (tmp_path / "taken.db").write_text("mine")
    for target in (tmp_path / "taken.db", tmp_path / "nowhere" / "copy.db"):
        for copy in (copy_store, copy_backup):
            with pytest.raises(StoreRefusal, match=f"^{re.escape(str(target))} cannot be used"):
                copy(installation.store, target)

    assert (tmp_path / "taken.db").read_text() == "mine"


async def test_a_backup_comes_to_its_end_among_writers(tmp_path: Path) -> None:
    """Commits neither begin it anew nor wait for it, and it is the state of one instant."""
    path, copy = tmp_path / "edge.db", tmp_path / "copy.db"
    store = await open_store(path, clock)
    for _ in range(20):
        await store.run(Insert(LEADS, [make_lead(message="m" * 1900) for _ in range(500)]))
    copying = asyncio.create_task(asyncio.to_thread(copy_store, path, copy))
    written = 0
    while not copying.done():
        await store.run(Insert(LEADS, [make_lead(), make_lead()]))
        written += 1
    await copying
    await store.close()

    assert written > 1
    assert verify_copy(copy).rows["leads"] % 2 == 0
    assert 10_000 <= verify_copy(copy).rows["leads"] <= 10_000 + 2 * written


def test_a_store_on_a_server_has_tools_of_its_own(installation: Installation) -> None:
    """With PostgreSQL both commands name what to use instead."""
    settings = replace(
        read_settings(installation.settings, None), database_url="postgresql://db/journal"
    )
    tools = {"backup": "backup --all, pg_dump", "restore": "restore --all, pg_restore"}
    for command, tool in tools.items():
        with pytest.raises(Problem, match=tool) as refusal:
            require_sqlite_path(settings, command)
        assert refusal.value.code == "invalid"


@pytest.mark.size("ci")
def test_a_replicated_store_gives_a_backup_of_its_own(
    installation: Installation, tmp_path: Path
) -> None:
    """Tables of Litestream are not in the backup, which has our tables alone."""
    replicated = installation.changed(LITESTREAM_REPLICA=f"file://{tmp_path}/replica")
    with replicated.serving() as edge:
        assert edge.await_body("/api/public/v1/readiness", b'"replica":{"status":"pass",')
        with closing(sqlite3.connect(installation.store)) as live:
            (before,) = live.execute("SELECT count(*) FROM leads").fetchone()
        sent = json.loads(said(replicated, "backup", "--json"))

    assert sent["rows"]["leads"] == before
    assert not [name for name in sent["rows"] if "litestream" in name]
