"""`restore`: another state in the store's place, nothing of the former lost, nothing undone."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edge_api.backup.replica import parse_zoned_instant
from edge_api.backup.restoration import carry_over
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.query import Delete, Filter, Insert, Query, Read, Update
from edge_api.db.sqlite.copying import copy_store, verify_copy
from edge_api.db.sqlite.engine import SQLiteStore, open_store
from edge_api.db.table import Table
from edge_api.db.tables import (
    AUDIT_LOG,
    CREDENTIALS,
    EMAIL_SEND_LOG,
    LEADS,
    SUPPRESSED_EMAILS,
)
from tests.drills.loss import as_json, ids, installation_in, post, said
from tests.edge.edge_process import ROOT, Installation
from tests.edge.store.samples import NOW, clock, make_entry, make_lead, make_row
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

LATER = "2026-02-01T00:00:00.000000Z"


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a store."""
    made = installation_in(tmp_path)
    said(made, "migrate")
    return made


def back_up(installation: Installation) -> str:
    """Return the file of a new backup."""
    return str(as_json(installation, "backup", "--json")["file"])


def files_of(installation: Installation) -> list[str]:
    """Return the names of what lies beside the store, without locks and folders."""
    files = installation.store.parent.iterdir()
    return sorted(path.name for path in files if path.is_file() and "lock" not in path.name)


@pytest.mark.size("ci")
def test_a_store_that_is_served_is_not_replaced(installation: Installation) -> None:
    """While an edge serves it: exit 1, a sentence that says so, and nothing is changed."""
    backup = back_up(installation)
    with installation.serving() as edge:
        lead = post(edge, "kept")
        before = files_of(installation)
        code, _, complained = installation.run("restore", backup, "--force")
        after = files_of(installation)

    assert (code, len(complained.splitlines())) == (1, 1)
    assert "is served by another edge" in complained
    assert (ids(installation.store), after) == ({lead}, before)


def test_a_backup_that_was_changed_is_refused(installation: Installation) -> None:
    """A changed byte of a text passes SQLite's check, and not the SHA-256 beside the backup.

    Whoever wants it nevertheless removes that file, and reads that nothing was compared.
    """
    with installation.serving() as edge:
        lead = post(edge, "aaaaaaaaaa")
        backup = Path(back_up(installation))
    (checksum,) = backup.parent.glob(f"{backup.name}.sha256")
    assert said(installation, "restore", str(backup), "--force").count("checksum") == 0
    whole = backup.read_bytes()
    backup.write_bytes(whole.replace(b"aaaaaaaaaa", b"aaaaaaaaab"))
    assert backup.read_bytes() != whole
    before = files_of(installation)
    code, _, complained = installation.run("restore", str(backup), "--force")
    assert (code, len(complained.splitlines())) == (1, 1)
    assert f"{backup} was changed since it was made" in complained
    assert str(checksum) in complained
    assert (files_of(installation), ids(installation.store)) == (before, {lead})

    checksum.unlink()
    output = said(installation, "restore", str(backup), "--force")
    assert f"no checksum is beside {backup}" in output


@pytest.mark.size("ci")
def test_the_former_store_is_kept_beside(installation: Installation) -> None:
    """Without --force a store that is there is refused; with it, it is kept and named."""
    with installation.serving() as edge:
        backup = back_up(installation)
        lead = post(edge, "after the backup")
    code, _, complained = installation.run("restore", backup)
    assert (code, ids(installation.store)) == (1, {lead})
    assert "say --force" in complained

    output = said(installation, "restore", backup, "--force")
    (aside,) = installation.store.parent.glob("edge.db.replaced-*Z")
    assert ids(installation.store) == set()
    assert ids(aside) == {lead}
    assert f"the replaced store is kept as {aside}" in output
    assert "leads that came since, in the former store alone: 1\n" in output


@pytest.mark.size("ci")
def test_the_log_of_the_former_store_goes_with_it(installation: Installation) -> None:
    """An edge was killed: what only its log holds is beside, and not in the restored store."""
    backup = back_up(installation)
    with installation.serving() as edge:
        lead = post(edge, "in the log alone")
        edge.process.kill()
        edge.process.wait()
    said(installation, "restore", backup, "--force")

    (aside,) = installation.store.parent.glob("edge.db.replaced-*Z")
    assert (ids(installation.store), ids(aside)) == (set(), {lead})


@pytest.mark.size("ci")
def test_a_damaged_former_store_does_not_prevent_a_restore(installation: Installation) -> None:
    """It cannot tell what to carry over: said, with what to look through; and it is kept."""
    backup = back_up(installation)
    installation.store.write_bytes(b"not a database" * 1000)
    output = said(installation, "restore", backup, "--force")

    assert "nothing could be carried over" in output
    assert "keys that were revoked since are valid again" in output
    (aside,) = installation.store.parent.glob("edge.db.replaced-*Z")
    assert aside.read_bytes().startswith(b"not a database")
    assert ids(installation.store) == set()


@pytest.mark.size("ci")
@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(200, id="the log has room, and the file has none"),
        pytest.param(300, id="the log has none either"),
    ],
)
async def test_a_disk_that_fills_up_changes_nothing(
    installation: Installation, entries: int
) -> None:
    """The rows to carry over do not fit: exit 1, a sentence, and the former store as it was."""
    await fill(
        installation.store, Insert(LEADS, [make_lead(message="m" * 1900) for _ in range(500)])
    )
    backup = back_up(installation)
    since = [make_entry(error_message="e" * 900) for _ in range(entries)]
    await fill(installation.store, Insert(EMAIL_SEND_LOG, since))
    before, files = ids(installation.store), files_of(installation)
    code, complained = run_limited(installation, backup, "restore", backup, "--force")

    assert code == 1, complained
    assert "make room, and restore again" in complained.splitlines()[-1]
    assert "Traceback" not in complained
    assert (ids(installation.store), files_of(installation)) == (before, files)
    assert verify_copy(installation.store).rows["email_send_log"] == entries


async def fill(path: Path, *plans: Query) -> None:
    """Write into a store that nobody serves."""
    store = await open_store(path, clock)
    await store.run(*plans)
    await store.close()


def run_limited(installation: Installation, largest: str, *words: str) -> tuple[int, str]:
    """Run a command that can make no file larger than another one; return code, complaints."""
    most = Path(largest).stat().st_size
    program = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}));"
        f"from edge_api.__main__ import main; sys.exit(main({list(words)!r}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=installation.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **installation.settings},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere.db",), 1, "there is no file"),
        (("text.db",), 1, "is no SQLite database: name another backup"),
        (("other.db",), 1, "is no store of Fore-edge: name another backup"),
        *in_ci(
            (("newer.db",), 1, "has schema version 9999"),
            (("damaged.db",), 1, ": name another backup"),
            (("var/edge.db",), 2, "is the store itself"),
            ((), 2, "Give one of FILE, --from-replica"),
            (("--from-replica",), 2, "needs LITESTREAM_REPLICA"),
            (("text.db", "--at", "2026-01-01T00:00:00Z"), 2, "belongs to --from-replica"),
            (("--from-replica", "--at", "yesterday"), 2, "is no instant like"),
        ),
    ],
)
def test_an_invalid_backup_is_refused(
    installation: Installation, words: tuple[str, ...], code: int, message: str
) -> None:
    """Each fault is a sentence, and the store is the one that was there."""
    prepare_bad_files(installation)
    before, files = installation.store.read_bytes(), files_of(installation)
    ended, _, complained = installation.run("restore", *words, "--force")

    assert ended == code
    assert message in complained
    assert "Traceback" not in complained
    assert (installation.store.read_bytes(), files_of(installation)) == (before, files)


def test_an_instant_with_an_offset_is_restored_in_utc() -> None:
    """An operator may give the time of a clock on the wall: the replica knows UTC alone."""
    instant = parse_zoned_instant("2026-01-31T08:05:09+02:00")
    assert instant.isoformat() == "2026-01-31T06:05:09+00:00"


def prepare_bad_files(installation: Installation) -> None:
    """Lay out files that are no backups."""
    folder = installation.folder
    (folder / "text.db").write_text("no database at all" * 100)
    with closing(sqlite3.connect(folder / "other.db")) as other:
        other.execute("CREATE TABLE t (i)")
    copy_store(installation.store, folder / "newer.db")
    with closing(sqlite3.connect(folder / "newer.db")) as newer:
        newer.execute("PRAGMA user_version = 9999")
    copy_store(installation.store, folder / "damaged.db")
    with (folder / "damaged.db").open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xff" * 3 * 4096)


def test_a_backup_of_an_older_schema_is_brought_up(installation: Installation) -> None:
    """A backup that an earlier version made is restored at the present schema."""
    older = installation.folder / "older.db"
    with closing(sqlite3.connect(older)) as old:
        old.execute("PRAGMA application_id = 0x666F7265")
        for statement in MIGRATIONS[0].sqlite:
            old.execute(statement, {"now": LATER} if ":now" in statement else {})
        old.execute("PRAGMA user_version = 1")
        old.commit()
    installation.store.unlink()
    output = said(installation, "restore", str(older))

    assert "from schema version 1" in output
    with closing(sqlite3.connect(installation.store)) as store:
        assert store.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_the_secret_key_comes_with_the_backup(installation: Installation) -> None:
    """The backup's key takes its place again; another one that was there is kept."""
    key = installation.store.with_suffix(".key")
    key.write_text("a" * 64)
    backup = back_up(installation)
    key.write_text("b" * 64)
    output = said(installation, "restore", backup, "--force")

    (aside,) = installation.store.parent.glob("edge.key.replaced-*Z")
    assert (key.read_text(), aside.read_text()) == ("a" * 64, "b" * 64)
    assert f"the former one is kept as {aside}" in output


@pytest.mark.parametrize("has_own", [True, False])
def test_a_secret_key_that_is_named_takes_its_place(
    installation: Installation, tmp_path: Path, *, has_own: bool
) -> None:
    """`--key` goes before the key of the backup; a file without one is refused beforehand."""
    key, given = installation.store.with_suffix(".key"), tmp_path / "kept.key"
    key.write_text("a" * 64)
    backup = back_up(installation)
    if not has_own:
        Path(backup).with_suffix(".key").unlink()
    before = files_of(installation)
    for content in (None, "too short"):
        if content:
            given.write_text(content)
        words = ("restore", backup, "--force", "--key", str(given))
        code, _, complained = installation.run(*words)
        assert (code, files_of(installation)) == (2, before)
        assert complained == f"{given} holds no secret key: name a saved var/edge.key\n"
    given.write_text("c" * 64)
    output = said(installation, *words)

    assert (key.read_text(), key.stat().st_mode & 0o777) == ("c" * 64, 0o600)
    assert f"the secret key is in its place: {key}; the former one is kept as" in output


@pytest.mark.parametrize("source", ["--key", *in_ci("beside it", "in place", "SECRET_KEY")])
def test_a_secret_key_of_another_store_is_refused(
    installation: Installation, tmp_path: Path, source: str
) -> None:
    """Wherever it is, before anything is put in place; the right one or none is taken."""
    key, wrong = installation.store.with_suffix(".key"), tmp_path / "wrong.key"
    with installation.serving() as edge:  # which makes what only the right key opens
        post(edge, "kept")
    backup = Path(back_up(installation))
    right = tmp_path / "right.key"
    right.write_bytes(key.read_bytes())
    wrong.write_text("b" * 64)
    asked, words, name = installation, ["restore", str(backup), "--force"], str(wrong)
    if source == "--key":
        words += ["--key", str(wrong)]
    elif source == "SECRET_KEY":
        asked, name = installation.changed(SECRET_KEY="b" * 64), source
    else:
        backup.with_suffix(".key").unlink()
        changed = backup.with_suffix(".key") if source == "beside it" else key
        changed.write_text("b" * 64)
        name = str(changed)
    before = files_of(installation)
    content = [installation.store.read_bytes(), key.read_bytes()]
    code, output, complained = asked.run(*words)

    sentence = f"this is not the key that the store was used with: {name}; "
    assert (code, output, len(complained.splitlines())) == (1, "", 1), complained
    assert complained.startswith(sentence)
    assert files_of(installation) == before
    assert [installation.store.read_bytes(), key.read_bytes()] == content
    if source == "SECRET_KEY":
        said(installation, *words)
    else:
        said(installation, *words[:3], "--key", str(right))
    assert key.read_bytes() == right.read_bytes()


@pytest.mark.size("ci")
def test_a_restore_can_be_undone_with_its_key(installation: Installation) -> None:
    """A store that a restore has put aside is restored like a backup, with its former key."""
    key = installation.store.with_suffix(".key")
    key.write_text("a" * 64)
    backup = back_up(installation)
    key.write_text("b" * 64)
    said(installation, "restore", backup, "--force")
    (aside,) = installation.store.parent.glob("edge.db.replaced-*Z")
    output = said(installation, "restore", str(aside), "--force")

    assert key.read_text() == "b" * 64
    assert f"the secret key is in its place: {key}" in output


@pytest.mark.size("ci")
def test_a_store_that_cannot_be_exchanged_keeps_its_key(installation: Installation) -> None:
    """An error before the backup is in place leaves the key of the former store in its place."""
    key = installation.store.with_suffix(".key")
    key.write_text("a" * 64)
    backup = back_up(installation)
    key.write_text("b" * 64)
    installation.store.with_name("edge.db-shm").mkdir()
    code, _, complained = installation.run("restore", backup, "--force")

    assert (code, len(complained.splitlines())) == (1, 1), complained
    assert key.read_text() == "b" * 64
    assert [name for name in files_of(installation) if ".key" in name] == ["edge.key"]


@pytest.mark.size("ci")
def test_a_copy_with_a_log_beside_it_is_taken_whole(installation: Installation) -> None:
    """Somebody saved the file and its log: what is in the log is restored too."""
    copy = installation.folder / "copied.db"
    with installation.serving() as edge:
        lead = post(edge, "in the log alone")
        edge.process.kill()
        edge.process.wait()
    for end in ("", "-wal"):
        source = installation.store.with_name(f"edge.db{end}")
        copy.with_name(f"copied.db{end}").write_bytes(source.read_bytes())
        source.unlink()
    said(installation, "restore", str(copy))

    assert ids(installation.store) == {lead}


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[SQLiteStore, SQLiteStore]]:
    """Return a store as it went on after a backup, and the backup, both open."""
    former = await open_store(tmp_path / "former.db", clock)
    await former.run(
        Insert(LEADS, [make_lead(message="kept"), make_lead(message="deleted since")]),
        Insert(CREDENTIALS, [make_key("a" * 64), make_key("b" * 64)]),
        Insert(EMAIL_OUTBOX, [make_mail("told since"), make_mail("waits")]),
    )
    copy_store(tmp_path / "former.db", tmp_path / "restored.db")
    restored = await open_store(tmp_path / "restored.db", clock)
    yield former, restored
    await restored.close()
    await former.close()


def make_key(digest: str) -> dict[str, Any]:
    """Return a credential."""
    given = {"name": "k", "type": "api_key", "digest": digest, "last_four": "abcd", "scopes": ""}
    return make_row(CREDENTIALS, given)


def make_mail(template: str) -> dict[str, Any]:
    """Return a mail that waits."""
    subject = str(make_lead()["id"])
    given = {"queue": "transactional", "recipient_email": "a@b.example", "subject_id": subject}
    return make_row(EMAIL_OUTBOX, {**given, "template_name": template})


async def rows(store: SQLiteStore, table: Table) -> list[dict[str, Any]]:
    """Return every row of a table."""
    (result,) = await store.run(Read(table))
    return result.rows


async def go_on(former: SQLiteStore) -> None:
    """Do what happens after a backup."""
    await former.run(
        Update(CREDENTIALS, {"revoked_at": LATER}, (Filter("digest", "eq", "a" * 64),)),
        Insert(
            SUPPRESSED_EMAILS,
            [make_row(SUPPRESSED_EMAILS, {"email": "no@mail.example", "reason": "unsubscribe"})],
        ),
        Insert(EMAIL_SEND_LOG, [make_entry(status="sent", message_id="m1")]),
        Delete(EMAIL_OUTBOX, (Filter("template_name", "eq", "told since"),)),
        Delete(LEADS, (Filter("message", "eq", "deleted since"),)),
        Insert(LEADS, [make_lead(message="came since"), make_lead(message="came since")]),
    )


async def test_revocations_and_sent_mail_are_carried_over(
    stores: tuple[SQLiteStore, SQLiteStore],
) -> None:
    """Revocations and suppressions remain, what was sent is not sent again; leads are as then."""
    former, restored = stores
    await go_on(former)
    sent = await carry_over(former, restored, clock)

    assert list(sent.values()) == [1, 2, 1, 0, 2, 1]
    revoked = {row["digest"][0]: row["revoked_at"] for row in await rows(restored, CREDENTIALS)}
    assert revoked == {"a": LATER, "b": None}
    assert await rows(restored, SUPPRESSED_EMAILS) == await rows(former, SUPPRESSED_EMAILS)
    assert [row["template_name"] for row in await rows(restored, EMAIL_OUTBOX)] == ["waits"]
    assert {row["message"] for row in await rows(restored, LEADS)} == {"kept", "deleted since"}
    assert {(row["verb"], row["table_name"]) for row in await rows(restored, AUDIT_LOG)} == {
        ("restore", name)
        for name in ("credentials", "suppressed_emails", "email_send_log", "email_outbox")
    }


async def test_carrying_over_can_be_repeated(stores: tuple[SQLiteStore, SQLiteStore]) -> None:
    """A second time finds nothing more to do; an address that both know is no conflict."""
    former, restored = stores
    await go_on(former)
    known = make_row(SUPPRESSED_EMAILS, {"email": "no@mail.example", "reason": "bounce"})
    await restored.run(Insert(SUPPRESSED_EMAILS, [known]))
    await carry_over(former, restored, clock)
    again = await carry_over(former, restored, clock)

    assert list(again.values()) == [0, 0, 0, 0, 2, 1]
    assert await rows(restored, SUPPRESSED_EMAILS) == [known]


async def test_more_rows_than_a_page_are_carried_over(
    stores: tuple[SQLiteStore, SQLiteStore],
) -> None:
    """Every page of a long table is looked at."""
    former, restored = stores
    await former.run(Insert(EMAIL_SEND_LOG, [make_entry() for _ in range(1201)]))
    sent = await carry_over(former, restored, lambda: NOW)

    assert [*sent.values()][1] == 1201
    assert len(await rows(restored, EMAIL_SEND_LOG)) == 1201
