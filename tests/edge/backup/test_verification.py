"""The replica and the newest backup are verified, and what is wrong with them is reported."""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from edge_api import background as background_jobs
from edge_api.app import assemble
from edge_api.background import DailyVerification
from edge_api.backup import verify as verification
from edge_api.backup.files import file_sha256
from edge_api.backup.verify import Verification, parts_due, read_result
from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import count_lost, record_keys
from edge_api.health import Health
from edge_api.settings import Settings, read_settings
from tests.drills.loss import as_json, await_replica, installation_in, post, said
from tests.edge.backup.test_replication import await_truth, silent_server
from tests.edge.edge_process import Installation, ServedEdge
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

READINESS = "/api/public/v1/readiness"
DEEP = "run python -m edge_api doctor --deep"


@pytest.fixture
def plain(tmp_path: Path) -> Installation:
    """Return an installation with a store, a build folder and no replica."""
    made = installation_in(tmp_path)
    said(made, "migrate")
    return made


@pytest.fixture
def replicated(tmp_path: Path) -> Installation:
    """Return an installation with a replica in a folder."""
    return installation_in(tmp_path, LITESTREAM_REPLICA=f"file://{tmp_path}/replica")


def deep(installation: Installation) -> str:
    """Return what `doctor --deep` prints; it has no build to complain of alone."""
    code, output, complained = installation.run("doctor", "--deep")
    assert (code, complained) == (1, "")
    return output


def check_of(edge: ServedEdge, name: str) -> Any:
    """Return one check of readiness; `None` where it has none of that name."""
    return json.loads(edge.get(READINESS)[2])["checks"].get(name)


def scratch_of(installation: Installation) -> list[str]:
    """Return what lies in the scratch folder."""
    folder = installation.store.with_name(".edge.db-verifying")
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def lose_one(replica: Path) -> None:
    """Remove a file that others come after, and what Litestream has put together from it."""
    for path in replica.glob("ltx/[!0]"):
        shutil.rmtree(path)
    sorted(replica.glob("ltx/0/*.ltx"))[1].unlink()


def damage(replica: Path) -> None:
    """Change a byte in each file."""
    for path in replica.rglob("*.ltx"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)


def leave(_replica: Path) -> None:
    """Leave it whole: it is old."""


FAULTS = {
    lose_one: "the replica cannot be restored",
    damage: "the replica cannot be restored",
    leave: "the replica lacks what was committed last",
}
FIXES = {"the replica cannot be restored": "an empty place, start the edge)"}
"""The sentence that `doctor` adds; a replica that lacks the last commits may still get them."""


@pytest.mark.size("ci")
def test_a_spoilt_replica_is_found(replicated: Installation) -> None:
    """`doctor --deep` says what is wrong and why, and an edge that starts later warns of it.

    Copies of the replica are spoilt: Litestream puts its files together every 30 seconds, from
    what it has itself, and might make up for what is gone. With a new replica all is well again.
    """
    store, copy = replicated.store, replicated.folder / "copy"
    spoilt = replicated.changed(LITESTREAM_REPLICA=f"file://{copy}")
    with replicated.serving() as edge:
        for number in range(4):
            post(edge, f"lead {number}")
            await_replica(store)
        shutil.copytree(replicated.folder / "replica", replicated.folder / "good")
        post(edge, "the last one")
        for spoil, message in FAULTS.items():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(replicated.folder / "good", copy)
            spoil(copy)
            (line,) = (line for line in deep(spoilt).splitlines() if message in line)
            assert line.startswith(f"- {message} (")
            assert line.count(message) == 1
            assert line.endswith(FIXES.get(message, ")"))
        assert "the replica is whole" in deep(replicated)
        deep(spoilt)
    # As if the copy had always been the replica: another address that holds a state is refused.
    (store.with_name(".edge.db-litestream") / "address").write_text(f"file://{copy}")
    with spoilt.serving() as edge:
        found = check_of(edge, "replica")
        assert (found["status"], found["verified"]) == ("warn", False)
        assert found["error"] == f"{message}; {DEEP}"
        assert str(replicated.folder) not in json.dumps(found)
    assert not store.with_name(".edge.db-verifying").exists()

    shutil.rmtree(copy)
    shutil.rmtree(store.with_name(".edge.db-litestream"))
    with spoilt.serving() as edge:
        await_replica(store)
        deep(spoilt)
        assert check_of(edge, "replica")["status"] == "pass"


@pytest.mark.size("ci")
def test_a_whole_replica_passes_with_the_instant(replicated: Installation) -> None:
    """Before it is verified readiness says so; the result outlives the edge."""
    with replicated.serving() as edge:
        post(edge, "kept")
        await_replica(replicated.store)
        assert check_of(edge, "replica") == {"status": "pass", "verified": False}
        output = deep(replicated)
        found = check_of(edge, "replica")
        post(edge, "later")

    assert "the replica is whole: verified at" in output
    assert (found["status"], found["verified"]) == ("pass", True)
    assert f"verified at {found['verified_at']}" in output
    kept = replicated.store.with_name("edge.db-replica.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with replicated.serving() as edge:
        assert check_of(edge, "replica")["verified_at"] == found["verified_at"]
    with replicated.changed(
        LITESTREAM_REPLICA=f"file://{replicated.folder}/another"
    ).serving() as edge:
        assert check_of(edge, "replica")["verified"] is False


@pytest.mark.size("ci")
def test_damage_that_was_replicated_is_found(replicated: Installation) -> None:
    """An index that lacks rows is replicated like any page; a restore must not pass with it."""
    with replicated.serving() as edge:
        post(edge, "kept")
        with closing(sqlite3.connect(replicated.store)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, '(email)', '(name)') "
                "WHERE name = 'leads_email'"
            )
            connection.commit()
        await_replica(replicated.store)
        (line,) = (line for line in deep(replicated).splitlines() if line.startswith("- the repl"))

    assert line.startswith("- the replica cannot be restored (")
    assert "missing from index leads_email" in line


@pytest.mark.size("ci")
def test_rows_that_are_not_in_the_replica_are_found(replicated: Installation) -> None:
    """Rows that were committed while nothing replicated are counted."""
    with replicated.serving() as edge:
        post(edge, "kept")
        await_replica(replicated.store)
    said(replicated, "keys", "issue", "--name", "meanwhile")

    assert "the replica lacks 1 row of audit_log, 1 row of credentials" in deep(replicated)


def test_only_rows_that_stay_are_missed(tmp_path: Path) -> None:
    """Rows that come or go while a replica is restored are no loss, whatever the counts are."""
    live, copy, keys = (tmp_path / name for name in ("live.db", "copy.db", "keys.db"))
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY)")
        connection.execute(
            "CREATE TABLE pair (a TEXT NOT NULL, b TEXT NOT NULL, PRIMARY KEY (a, b))"
        )
        connection.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES ('stays'), ('goes'), ('lost')")
        connection.execute("INSERT INTO pair VALUES ('a', 'b'), ('a', 'lost')")
        connection.execute("INSERT INTO _litestream_seq VALUES (1)")
        record_keys(live, keys)
        connection.execute("DELETE FROM t WHERE id = 'goes'")
        connection.execute("INSERT INTO t VALUES ('comes')")
        with closing(sqlite3.connect(copy)) as other:
            connection.backup(other)
        assert count_lost(live, keys, copy) == {}
        with closing(sqlite3.connect(copy)) as other:
            other.execute("DELETE FROM t WHERE id IN ('lost', 'comes')")
            other.execute("DELETE FROM pair WHERE b = 'lost'")
            other.execute("DELETE FROM _litestream_seq")
            other.commit()
        assert count_lost(live, keys, copy) == {"pair": 1, "t": 1}


def flip_text(backup: Path) -> None:
    """Change one letter of a message, of which SQLite knows no checksum."""
    content = backup.read_bytes()
    assert b"of value" in content
    backup.write_bytes(content.replace(b"of value", b"of valve"))


def flip_checksum(backup: Path) -> None:
    """Change the checksum that lies beside it."""
    checksum = backup.with_name(f"{backup.name}.sha256")
    checksum.write_text(f"0{checksum.read_text()}")


def overwrite(backup: Path) -> None:
    """Overwrite an inner page."""
    with backup.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xff" * 3 * 4096)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (flip_text, "the newest backup was changed since it was made"),
        *in_ci(
            (flip_checksum, "the newest backup was changed since it was made"),
            (overwrite, "the newest backup is damaged"),
            (Path.unlink, "the newest backup is not where it was made"),
        ),
    ],
)
def test_a_spoilt_backup_is_found(
    plain: Installation, spoil: Callable[[Path], None], message: str
) -> None:
    """`doctor --deep` says what is wrong, readiness warns; another backup makes up for it."""
    with plain.serving() as edge:
        assert check_of(edge, "backup") is None
        post(edge, "of value")
        backup = Path(as_json(plain, "backup", "--json")["file"])
        found = check_of(edge, "backup")
        assert (found["status"], found["verified"]) == ("pass", True)
        assert found["made_at"] == found["verified_at"]
        assert f"the newest backup (made at {found['made_at']}) is whole" in deep(plain)
        assert check_of(edge, "backup")["verified_at"] > found["made_at"]

        spoil(backup)
        (line,) = (line for line in deep(plain).splitlines() if message in line)
        assert line.startswith(f"- {message} (")
        assert line.endswith("; make a new one: python -m edge_api backup)")
        warned = check_of(edge, "backup")
        assert (warned["status"], warned["error"]) == ("warn", f"{message}; {DEEP}")
        assert str(plain.folder) not in json.dumps(warned)
        said(plain, "backup")
        assert check_of(edge, "backup")["status"] == "pass"
    assert stat.S_IMODE(plain.store.with_name("edge.db-backup.json").stat().st_mode) == 0o600


@pytest.mark.size("ci")
def test_doctor_says_that_there_is_no_backup(plain: Installation) -> None:
    """It is a hint where somebody looks closely, and nothing wrong."""
    assert "there is no backup: python -m edge_api backup makes one" in deep(plain)
    assert "there is no backup" not in plain.run("doctor")[1]


async def test_an_edge_verifies_by_itself(
    replicated: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Soon after its start, in a process of its own; readiness has the result."""
    monkeypatch.setattr("edge_api.app.VERIFY_SECONDS", 0.1)
    settings = read_settings(replicated.settings, None)
    left = replicated.store.with_name(".edge.db-verifying") / "replica.db"
    left.parent.mkdir(parents=True)
    left.write_text("what a killed edge has left")
    async with assemble(settings, exclusive=True) as assembly:
        await asyncio.to_thread(await_truth, lambda: is_verified(settings))
        report = await assembly.service[Health].report()

    assert report["checks"]["replica"]["verified"] is True
    assert scratch_of(replicated) == []


def is_verified(settings: Settings) -> bool:
    """Return whether there is a result, and a good one."""
    result = read_result(settings, "replica")
    return result is not None and not result.public_error


def test_a_verification_is_due_once_a_day(
    plain: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a day, after a fault or where the clock was put back sooner; readiness warns late."""
    settings = read_settings(plain.settings, None)
    assert parts_due(settings) == ()
    said(plain, "backup")
    assert parts_due(settings) == ()
    kept = plain.store.with_name("edge.db-backup.json")
    result = json.loads(kept.read_text())
    for at in ("2020-01-01", "2999-01-01"):
        kept.write_text(json.dumps({**result, "at": f"{at}T00:00:00.000000Z"}))
        assert parts_due(settings) == ("backup",)
        check = asyncio.run(DailyVerification(settings).check_copy("backup"))
        assert check is not None
        assert (check.state, check.facts["verified"]) == ("warn", False)
        assert "has not been verified for more than 2 days" in check.message
    monkeypatch.setattr(verification, "RETRY_SECONDS", 0.0)
    kept.write_text(json.dumps({**result, "fault": "damaged"}))
    assert parts_due(settings) == ("backup",)
    kept.write_text("no JSON")
    check = asyncio.run(DailyVerification(settings).check_copy("backup"))
    assert check is not None
    assert "cannot be read" in check.message


@pytest.mark.parametrize("meanwhile", ["a failure", "a newer one"])
def test_what_a_backup_stores_meanwhile_stays(
    meanwhile: str, plain: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup ends, well or not, while the former one is verified."""
    settings = read_settings(plain.settings, None)
    said(plain, "backup")
    former = read_result(settings, "backup")

    def read_slowly(path: Path) -> str:
        words = ("--to", "/proc/none") if meanwhile == "a failure" else ()
        assert plain.run("backup", *words)[0] == bool(words)
        return file_sha256(path)

    monkeypatch.setattr(verification, "file_sha256", read_slowly)
    verification.verify_parts(settings, ("backup",))
    result = read_result(settings, "backup")
    assert former
    assert result
    assert result.public_error == ""
    if meanwhile == "a newer one":
        assert result.subject > former.subject
        assert result.count == 2
    else:
        assert result.subject == former.subject
        assert result.at > former.at
        assert "/proc/none cannot take a backup" in result.failure
        assert result.find_error("backup", settings).endswith(f"newest is of {former.made_at}")


def test_changes_of_a_result_wait_for_each_other(plain: Installation) -> None:
    """Each change begins with what the one before it has stored."""
    settings = read_settings(plain.settings, None)
    said(plain, "backup")

    def count(kept: Verification | None) -> Verification:
        assert kept
        time.sleep(0.002)
        return replace(kept, count=kept.count + 1)

    with ThreadPoolExecutor(8) as threads:
        change = partial(verification.change_result, settings, "backup")
        for each in [threads.submit(change, count) for _ in range(40)]:
            each.result()
    result = read_result(settings, "backup")
    assert result
    assert result.count == 41


def test_a_first_backup_that_fails_is_reported(plain: Installation) -> None:
    """There is no instant of another one to name."""
    assert plain.run("backup", "--to", "/proc/none")[0] == 1
    assert "the last backup failed, and there is none yet (" in plain.run("doctor")[1]


def test_a_replica_that_is_never_verified_is_reported(
    replicated: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh installation passes for an hour; after that readiness warns."""
    settings = read_settings(replicated.settings, None)
    fresh = asyncio.run(DailyVerification(settings).check_replica())
    monkeypatch.setattr(background_jobs, "UNVERIFIED_WARN_SECONDS", -1.0)
    stale = asyncio.run(DailyVerification(settings).check_replica())

    assert (fresh.state, fresh.facts) == ("pass", {"verified": False})
    assert (stale.state, stale.facts) == ("warn", {"verified": False})
    assert stale.message == f"the replica has not been verified yet; {DEEP}"


async def test_a_verification_ends_with_the_edge(
    plain: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica's place does not answer; the process, and Litestream in it, are ended."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with silent_server() as port:
        address = f"s3://bucket/path?endpoint=127.0.0.1:{port}&region=none"
        settings = read_settings({**plain.settings, "LITESTREAM_REPLICA": address}, None)
        before = set(psutil.Process().children(recursive=True))
        verifying = asyncio.create_task(DailyVerification(settings).verify_due())
        await asyncio.to_thread(await_truth, lambda: "litestream" in new_names(before))
        assert "keys.db" in scratch_of(plain)
        started = set(psutil.Process().children(recursive=True)) - before
        verifying.cancel()
        await asyncio.gather(verifying, return_exceptions=True)
        _, left = await asyncio.to_thread(psutil.wait_procs, started, patience() / 2)

    assert left == []
    assert scratch_of(plain) == []


LIMITED = """import sys
from edge_api.backup import verify as v
v.MAX_RUN_SECONDS, sys.argv = 2, ["", "replica"]
v.main()
"""


def test_a_verification_that_hangs_ends_by_itself(plain: Installation) -> None:
    """The edge was killed, so nobody else ends it: it would keep others from verifying."""
    with silent_server() as port:
        address = f"s3://bucket/path?endpoint=127.0.0.1:{port}&region=none"
        hanging = plain.changed(
            LITESTREAM_REPLICA=address, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b"
        )
        with subprocess.Popen(
            [sys.executable, "-c", LIMITED],
            cwd=plain.folder,
            env=hanging.environment,
            start_new_session=True,
        ) as process:
            try:
                assert process.wait(patience() / 2) == -signal.SIGALRM
                with verification.scratch_folder(plain.store):
                    pass
            finally:
                os.killpg(process.pid, signal.SIGKILL)  # what it has started


def new_names(before: set[psutil.Process]) -> set[str]:
    """Return the names of processes below this one that were not there before."""
    found = set()
    for process in set(psutil.Process().children(recursive=True)) - before:
        try:
            found.add(process.name())
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.size("ci")
def test_a_disk_without_room_is_not_filled(
    replicated: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is restored if the scratch file would take the room that the store needs."""
    with replicated.serving():
        await_replica(replicated.store)
    settings = read_settings(replicated.settings, None)
    monkeypatch.setattr(verification, "MIN_FREE_BYTES", 1 << 60)
    verification.verify_parts(settings, ("replica",))

    result = read_result(settings, "replica")
    assert result is not None
    assert result.public_error == "the replica cannot be verified: the disk has too little room"
    assert "MB" in result.detail


def test_the_keys_of_the_rows_need_room_too(
    replicated: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for the restored file alone is not enough."""
    said(replicated, "migrate")
    free = replicated.store.stat().st_size + verification.MIN_FREE_BYTES
    usage = shutil.disk_usage(replicated.folder)._replace(free=free)
    monkeypatch.setattr("edge_api.backup.verify.shutil.disk_usage", lambda _: usage)
    verification.verify_parts(settings := read_settings(replicated.settings, None), ("replica",))

    result = read_result(settings, "replica")
    assert result is not None
    assert result.public_error == "the replica cannot be verified: the disk has too little room"


def test_a_result_that_cannot_be_read_is_replaced(replicated: Installation) -> None:
    """The replica is due at once: nobody knows what was found."""
    said(replicated, "migrate")
    replicated.store.with_name("edge.db-replica.json").write_text("no JSON")
    settings = read_settings(replicated.settings, None)
    check = asyncio.run(DailyVerification(settings).check_replica())

    assert parts_due(settings) == ("replica",)
    assert (check.state, check.facts) == ("warn", {"verified": False})


@pytest.mark.size("ci")
def test_a_second_verification_at_once_is_refused(replicated: Installation) -> None:
    """The second is refused while the first one has the scratch folder."""
    with replicated.serving():
        await_replica(replicated.store)
        with verification.scratch_folder(replicated.store):
            assert "another verification is under way: wait for it" in deep(replicated)


def test_the_process_is_a_light_one() -> None:
    """It is started beside an edge: no server, no build and no SDK is loaded for it."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import edge_api.backup.verify, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"aiohttp", "mcp", "pelican", "authlib"} & set(loaded)


@pytest.mark.size("ci")
def test_a_store_that_cannot_be_read_is_no_fault_of_the_replica(
    replicated: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills while rows are compared: nothing is wrong with what was restored."""

    def fail(*_: object) -> None:
        raise StoreRefusal("the disk is full: make room")

    settings = read_settings(replicated.settings, None)
    with replicated.serving() as edge:
        post(edge, "one")
        await_replica(replicated.store)
        monkeypatch.setattr(verification, "count_lost", fail)
        verification.verify_parts(settings, ("replica",))
    result = read_result(settings, "replica")
    assert result is not None
    assert result.public_error == "the replica cannot be verified"
