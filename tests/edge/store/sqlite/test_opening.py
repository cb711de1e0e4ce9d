"""Opening a store: what is made, what is refused in which words, and who may be there with whom."""

# ruff: noqa: ASYNC240  a test has its event loop to itself

import asyncio
import os
import shutil
import signal
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from edge_api.db.errors import StoreRefusal
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.query import Insert, Read
from edge_api.db.sqlite.copying import copy_store
from edge_api.db.sqlite.engine import open_store
from edge_api.db.sqlite.opening import (
    APPLICATION_ID,
    NETWORK_FILE_SYSTEMS,
    check_file_system,
    check_library,
    enable_wal,
    file_system_type,
)
from edge_api.db.tables import EMAIL_SEND_STATE, LEADS
from tests.edge.store.samples import clock, make_lead

pytestmark = pytest.mark.size("test")

OPEN_AND_WRITE = """
import asyncio, os, signal, sys
from pathlib import Path
from edge_api.db.tables import LEADS
from edge_api.db.query import Insert
from edge_api.db.sqlite.engine import open_store
from tests.edge.store.samples import clock, make_lead

async def main():
    store = await open_store(Path(sys.argv[1]), clock)
    try:
        await store.run(Insert(LEADS, [make_lead()]))
        if "killed" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
    finally:
        await store.close()

asyncio.run(main())
"""
RESTORE = "restore it with python -m edge_api restore FILE --force"


async def make_store(path: Path) -> None:
    """Make a store with one lead and close it."""
    store = await open_store(path, clock)
    await store.run(Insert(LEADS, [make_lead()]))
    await store.close()


async def refusal_of(path: Path, *, exclusive: bool = False) -> str:
    """Return the sentence in which opening a store is refused."""
    with pytest.raises(StoreRefusal) as refusal:
        await open_store(path, clock, exclusive=exclusive)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def change(path: Path, statement: str) -> None:
    """Run one statement on a file, as somebody with another tool would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@contextmanager
def somebody_without_rights() -> Iterator[None]:
    """Do something as a user whom the permissions of files hold: they do not hold root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return a folder that everybody can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "trace",
    [
        "store.key",
        "store.db-backup.json",
        "store.db-replica.json",
        ".store.db-litestream/",
        "backups/edge-1.db",
    ],
)
@pytest.mark.parametrize("state", ["missing", "empty"])
async def test_no_store_is_made_where_one_was(path: Path, trace: str, state: str) -> None:
    """One sentence names what is left of it, the restore, and how to begin anew."""
    store, left = path.with_name("store.db"), path.parent / trace
    (left if trace.endswith("/") else left.parent).mkdir(parents=True, exist_ok=True)
    if not trace.endswith("/"):
        left.write_text("")
    if state == "empty":
        store.write_bytes(b"")
    refused = await refusal_of(store)

    traced = "backups" if trace.startswith("backups") else left.name
    assert refused.startswith(f"{store} is {state}, but a store was there ({traced} beside it): ")
    assert RESTORE in refused
    assert refused.endswith("; to begin anew, move them away")
    assert (store.exists(), state == "empty") in ((True, True), (False, False))
    if traced != "backups":  # these may be of any store in the folder
        await make_store(path.with_name("other.db"))


async def test_a_new_store_is_for_its_owner_alone(path: Path) -> None:
    """Folder and files are made where they are missing, and nobody else can read them."""
    deep = path.parent / "deeper" / path.name
    store = await open_store(deep, clock, exclusive=True)
    await store.run(Insert(LEADS, [make_lead()]))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in deep.parent.iterdir()}
    await store.close()

    files = ("edge.db", "edge.db-wal", "edge.db-shm", "edge.db-lock")
    assert modes == dict.fromkeys(files, 0o600)
    assert stat.S_IMODE(deep.parent.stat().st_mode) == 0o700


async def test_a_store_holds_what_is_durable_and_nothing_else_is_set(path: Path) -> None:
    """Every connection has the settings that the promises rest on."""
    store = await open_store(path, clock)
    opened = store._connections  # noqa: SLF001  what no plan can ask
    connections = [
        opened.writer._connection,  # noqa: SLF001
        *(reader.connection for reader in opened.fast._readers),  # noqa: SLF001
        *(reader.connection for reader in opened.slow._readers),  # noqa: SLF001
    ]
    found = {
        name: {
            (await connection.execute_fetchall(f"PRAGMA {name}"))[0][0]  # type: ignore[index]
            for connection in connections
        }
        for name in ("journal_mode", "synchronous", "foreign_keys", "fullfsync", "mmap_size")
    }
    await store.close()

    assert found == {
        "journal_mode": {"wal"},
        "synchronous": {2},
        "foreign_keys": {1},
        "fullfsync": {1},
        "mmap_size": {0},
    }


async def test_a_store_is_marked_as_ours(path: Path) -> None:
    """The header says whose file it is and how many steps it has seen."""
    await make_store(path)
    with closing(sqlite3.connect(path)) as connection:
        marks = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        ]

    assert marks == [APPLICATION_ID, len(MIGRATIONS)]


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """As somebody makes it who wants to choose its mode."""
    path.parent.mkdir()
    path.touch(mode=0o640)
    await make_store(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_a_store_is_found_again(path: Path) -> None:
    """Rows are there after the store was closed, and steps are not taken twice."""
    await make_store(path)
    store = await open_store(path, clock)
    leads, states = await store.run(Read(LEADS), Read(EMAIL_SEND_STATE))
    await store.close()

    assert (len(leads.rows), len(states.rows)) == (1, 1)


async def test_a_step_that_is_missing_is_taken(path: Path) -> None:
    """A file that has seen no step but is marked as ours is brought forward."""
    path.parent.mkdir()
    change(path, f"PRAGMA application_id = {APPLICATION_ID}")
    await make_store(path)


async def test_a_relative_path_and_a_link_lead_to_the_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link is followed: SQLite's own files lie beside the real one, and so does the claim."""
    await make_store(path)
    link = path.parent.parent / "link.db"
    link.symlink_to(path)
    monkeypatch.chdir(path.parent.parent)
    store = await open_store(Path("link.db"), clock, exclusive=True)
    try:
        await store.run(Insert(LEADS, [make_lead()]))

        assert "is served by another edge" in await refusal_of(path, exclusive=True)
    finally:
        await store.close()


async def test_a_strange_name_is_no_trouble(path: Path) -> None:
    """Neither are characters that mean something in a URI."""
    await make_store(path.with_name("what? 100% #1 ä.db"))

    assert path.with_name("what? 100% #1 ä.db").is_file()


async def test_a_store_of_a_later_edge_is_refused(path: Path) -> None:
    """Nobody knows what the later steps have made of it."""
    await make_store(path)
    change(path, "PRAGMA user_version = 99")

    assert f"schema version 99 and this edge knows {len(MIGRATIONS)}" in await refusal_of(path)


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE mine (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"]
)
async def test_the_file_of_another_program_is_left_alone(path: Path, statement: str) -> None:
    """A slip in DATABASE_URL must not put our tables into a stranger's file."""
    path.parent.mkdir()
    change(path, statement)
    change(path, "CREATE TABLE other (a)")
    before = path.read_bytes()

    message = await refusal_of(path)
    assert "is no store of Fore-edge: set DATABASE_URL to another file" in message
    assert f"if it was one, {RESTORE}" in message
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    """It is left as it is."""
    path.parent.mkdir()
    path.write_text("Dear diary, " * 1000)

    message = await refusal_of(path)
    assert "is no SQLite database: set DATABASE_URL to another file" in message
    assert f"if it was a store, {RESTORE}" in message
    assert path.read_text() == "Dear diary, " * 1000


async def test_a_damaged_store_is_refused(path: Path) -> None:
    """Rubbish in the middle of the file is found before anything is served from it."""
    await make_store(path)
    body = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096)

    assert RESTORE in await refusal_of(path)

    path.write_bytes(body[: len(body) // 2])
    assert "is damaged" in await refusal_of(path)


@pytest.mark.parametrize(
    ("start", "length"), [(0, 4), (0, 100), (0, 4096), (16, 2), (44, 4), (60, 4), (60, 40), (64, 4)]
)
async def test_a_store_with_a_damaged_header_is_to_be_restored(
    path: Path, start: int, length: int
) -> None:
    """SQLite takes some of these files for no database; it was a store all the same."""
    await make_store(path)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * length)
    before = path.read_bytes()

    message = await refusal_of(path)
    assert "is damaged" in message
    assert RESTORE in message
    assert path.read_bytes() == before


async def kill_writer(path: Path) -> Path:
    """Have a process killed that has written to a store; return the log that it leaves."""
    await make_store(path)
    words = ("-c", OPEN_AND_WRITE, str(path), "killed")
    process = await asyncio.create_subprocess_exec(sys.executable, *words)
    assert await process.wait() == -signal.SIGKILL
    return path.with_name(f"{path.name}-wal")


@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_missing_log_is_reported(path: Path, exclusive: bool) -> None:  # noqa: FBT001
    """Commits are in it and not in the file: SQLite would go on without them, and say nothing."""
    log = await kill_writer(path)
    kept = log.rename(log.with_name("kept"))
    before = path.read_bytes()

    message = await refusal_of(path, exclusive=exclusive)
    assert (
        f"the log of {path} is missing (edge.db-wal), and commits with it: put it back" in message
    )
    assert RESTORE in message
    assert (path.read_bytes(), log.exists()) == (before, False)
    with pytest.raises(StoreRefusal, match="is missing"):
        copy_store(path, path.with_name("copy.db"))

    kept.rename(log)
    store = await open_store(path, clock)
    (result,) = await store.run(Read(LEADS))
    await store.close()
    assert len(result.rows) == 2


async def test_a_log_that_held_nothing_is_not_missed(path: Path) -> None:
    """Its commits are all in the file, and the store is whole without it."""
    log = await kill_writer(path)
    with closing(sqlite3.connect(path)) as checkpointing:
        checkpointing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log.rename(log.with_name("kept"))
        assert path.with_name("edge.db-shm").exists()

        store = await open_store(path, clock)
        (result,) = await store.run(Read(LEADS))
        await store.close()
    assert len(result.rows) == 2


@pytest.mark.parametrize("state", ["missing", "empty"])
async def test_a_log_without_its_file_is_reported(path: Path, state: str) -> None:
    """SQLite would remove the log, and an empty store would look healthy."""
    log = await kill_writer(path)
    path.unlink()
    if state == "empty":
        path.touch()
    before = log.read_bytes()

    message = await refusal_of(path)
    assert f"{path} is {state}, but its log edge.db-wal is there: put the file back" in message
    assert RESTORE in message
    assert (log.read_bytes(), path.exists()) == (before, state == "empty")


async def test_a_large_store_is_looked_through_for_a_while_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart does not wait for hundreds of MiB: what was looked at until then has to do."""
    store = await open_store(path, clock)
    for _ in range(20):
        await store.run(Insert(LEADS, [make_lead(notes="x" * 3000) for _ in range(500)]))
    await store.close()
    monkeypatch.setattr("edge_api.db.sqlite.opening.CHECK_SECONDS", 0.001)
    store = await open_store(path, clock)
    (result,) = await store.run(Read(LEADS, ("id",), limit=1, with_total=True))
    await store.close()

    assert result.total == 10_000


def test_a_disk_without_shared_memory_is_refused() -> None:
    """If write-ahead logging cannot be turned on, as for a store in memory, nothing starts."""
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(StoreRefusal, match="write-ahead logging"),
    ):
        enable_wal(connection)


async def test_a_folder_is_no_store(path: Path) -> None:
    """An error in DATABASE_URL is reported as such."""
    path.mkdir(parents=True)

    assert "is no file" in await refusal_of(path)


async def test_a_file_is_no_folder(path: Path) -> None:
    """If a part of the path is a file, nothing can be made."""
    path.parent.write_text("in the way")

    assert "cannot be made" in await refusal_of(path)


async def test_a_store_that_may_not_be_written_is_refused(public_folder: Path) -> None:
    """Permissions are looked at by the one who needs them: the engine."""
    path = public_folder / "edge.db"
    await make_store(path)
    path.chmod(0o444)
    public_folder.chmod(0o555)
    with somebody_without_rights():
        assert "cannot be written" in await refusal_of(path)
        assert "cannot be written (Permission denied)" in await refusal_of(path, exclusive=True)
        path = public_folder / "other.db"
        assert "cannot be made (Permission denied)" in await refusal_of(path)


async def test_a_store_that_may_not_be_read_is_refused(public_folder: Path) -> None:
    """So is one whose mode shuts this user out."""
    path = public_folder / "edge.db"
    await make_store(path)
    path.chmod(0o000)
    with somebody_without_rights():
        assert "cannot be opened" in await refusal_of(path)


async def test_a_store_that_stays_locked_is_refused(path: Path) -> None:
    """A process that holds the whole file for seconds is named as the cause."""
    await make_store(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("PRAGMA locking_mode = EXCLUSIVE")
        rival.execute("BEGIN EXCLUSIVE")

        assert "is locked by another process" in await refusal_of(path)


async def test_one_edge_serves_a_store(path: Path) -> None:
    """A second one is refused with the number of the first, until that has ended."""
    store = await open_store(path, clock, exclusive=True)
    message = await refusal_of(path, exclusive=True)
    assert f"is served by another edge (process {os.getpid()})" in message

    await store.close()
    again = await open_store(path, clock, exclusive=True)
    await again.close()


async def test_a_claim_that_came_to_nothing_is_given_back(path: Path) -> None:
    """A store that is refused can be tried again by the same process."""
    path.parent.mkdir()
    path.write_text("no database" * 100)
    await refusal_of(path, exclusive=True)
    path.unlink()
    store = await open_store(path, clock, exclusive=True)
    await store.close()


async def test_commands_write_beside_a_running_edge(path: Path) -> None:
    """Another process opens, writes and closes, and the edge sees the row."""
    store = await open_store(path, clock, exclusive=True)
    try:
        before = store.version()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPEN_AND_WRITE, str(path)
        )
        own = [store.run(Insert(LEADS, [make_lead()])) for _ in range(20)]
        await asyncio.gather(*own)

        assert await process.wait() == 0
        assert store.version() != before
        (result,) = await store.run(Read(LEADS, with_total=True))
        assert result.total == 21
    finally:
        await store.close()


async def test_many_processes_may_open_a_new_store_at_once(path: Path) -> None:
    """The schema's steps are taken once, and nobody is refused."""
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", OPEN_AND_WRITE, str(path))
        for _ in range(4)
    ]
    assert [await process.wait() for process in processes] == [0] * 4

    store = await open_store(path, clock)
    leads, states = await store.run(Read(LEADS), Read(EMAIL_SEND_STATE))
    await store.close()
    assert (len(leads.rows), len(states.rows)) == (4, 1)


@pytest.mark.parametrize(
    ("version", "lacking", "words"),
    [
        ((3, 36, 0), (), "SQLite 3.36.0 is too old: install 3.37 or later"),
        ((2, 8, 17), (), "is too old"),
        ((3, 40, 1), ("fts5",), "was built without fts5:"),
        ((3, 40, 1), ("json_each",), "was built without json_each:"),
        ((3, 40, 1), ("fts5", "json_each"), "was built without fts5, json_each"),
    ],
)
def test_a_library_that_lacks_something_is_refused(
    version: tuple[int, ...], lacking: tuple[str, ...], words: str
) -> None:
    """STRICT tables came with 3.37; search and lists are parts that a build may leave out."""

    def authorize(_action: int, first: str | None, second: str | None, *_: str | None) -> int:
        return int({first, second}.intersection(lacking) != set())  # 1 is SQLITE_DENY

    with closing(sqlite3.connect(":memory:")) as empty:
        empty.set_authorizer(authorize)
        with pytest.raises(StoreRefusal, match=words):
            check_library(version, empty)


@pytest.mark.parametrize("version", [(3, 37, 0), (4, 0, 0)])
def test_a_library_that_has_everything_is_taken(version: tuple[int, ...]) -> None:
    """Later versions are fine."""
    with closing(sqlite3.connect(":memory:")) as empty:
        check_library(version, empty)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "smbfs", "9p", "fuse.sshfs"])
def test_a_network_file_system_is_refused(kind: str) -> None:
    """SQLite's log needs memory that all its processes share, which no network gives."""
    with pytest.raises(StoreRefusal, match=f"network file system \\({kind}\\)"):
        check_file_system(Path("var"), kind)


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "overlay", "apfs", "zfs", "btrfs", "xfs", ""])
def test_a_local_file_system_is_taken(kind: str) -> None:
    """So is one that nothing is known of."""
    check_file_system(Path("var"), kind)


def test_the_file_system_of_a_folder_is_that_of_its_mount(tmp_path: Path) -> None:
    """Each mount point has the type that the kernel lists, and so has what lies below it."""
    mounts = {mount.mountpoint: mount.fstype for mount in psutil.disk_partitions(all=True)}
    below = tmp_path / "not" / "there" / "yet"

    assert file_system_type(Path("/")) == mounts["/"]
    assert file_system_type(below) == file_system_type(tmp_path)
    assert file_system_type(below) not in NETWORK_FILE_SYSTEMS
    for point, kind in mounts.items():
        if Path(point).resolve() == Path(point):
            assert file_system_type(Path(point)) == kind
