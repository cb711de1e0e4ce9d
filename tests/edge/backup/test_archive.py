"""`backup --all` and `restore --all`: the whole journal comes back, or nothing changes."""

import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyrage
import pytest

from edge_api.__main__ import main
from tests.drills.loss import as_json, ids, installation_in, post, said
from tests.edge.edge_process import ROOT, Installation, free_port
from tests.edge.postgresql import PostgreSQL, programs
from tests.patience import patience

pytestmark = pytest.mark.size("test")

IDENTITY = pyrage.x25519.Identity.generate()
RECIPIENT = str(IDENTITY.to_public())
SECRET = "s" * 40
PICTURE = bytes(range(256)) * 9000


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Return the file of the private key, as age-keygen writes it."""
    file = tmp_path / "identity.txt"
    file.write_text(f"# created: 2026-01-31T08:05:09Z\n# public key: {RECIPIENT}\n{IDENTITY}\n")
    return file


def journal_in(folder: Path, **settings: str) -> Installation:
    """Return a journal with texts, a picture, a theme, a draft, settings and a build."""
    files = {
        "content/posts/first.md": b"---\ntitle: First\n---\n\nText.\n",
        "content/images/picture.jpg": PICTURE,
        f"content/posts/{'long' * 40}.md": b"A name that is longer than the field of a tar.\n",
        "content/posts/été.md": b"Text.\n",
        "theme/templates/base.html": b"<html>\n",
        "pelicanconf.py": b"SITENAME = 'A journal'\n",
        ".env": f"SITE_URL=https://journal.example\nBACKUP_RECIPIENT={RECIPIENT}\n".encode(),
        ".gitignore": b"/var/\n",
        ".gitattributes": b"* text\n",
        ".git/HEAD": b"ref: refs/heads/main\n",
        "var/drafts/draft.md": b"Not public.\n",
        "var/versions/former.md": b"Former.\n",
    }
    left_out = {
        "build/current/site/index.html": b"<html>",
        "var/spool/request.json": b"{}",
        ".git/index.lock": b"",
        ".ssh/id_ed25519": b"private",
        "__pycache__/pelicanconf.pyc": b"code",
    }
    for name, content in {**files, **left_out}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / ".env").chmod(0o600)
    made = installation_in(folder, **settings)
    said(made, "migrate")
    said(made, "keys", "issue", "--name", "reader", "--scopes", "leads:read")
    with made.serving() as edge:
        post(edge, "the first")
    return made


def emptied(tmp_path: Path, **settings: str) -> Installation:
    """Return an empty folder on another machine."""
    folder = tmp_path / "new"
    folder.mkdir(parents=True, exist_ok=True)
    return installation_in(folder, **settings)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a journal, but for the store's own."""
    kept = [each for each in folder.rglob("*") if each.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in kept
        if not path.name.startswith("edge.db")
        and "build" not in path.parts
        and path.parent.name not in {"backups", ".archiving"}
    }


def archive(journal: Installation, *words: str) -> Path:
    """Make an archive and return it."""
    return Path(as_json(journal, "backup", "--all", "--json", *words)["file"])


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_everything_comes_back(
    engine: str,
    tmp_path: Path,
    key: Path,
    postgresql: PostgreSQL,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows, texts, pictures, keys and settings are the same, and nothing else is there."""
    monkeypatch.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
    given: Sequence[dict[str, str]] = ({}, {})
    if engine == "postgresql":
        urls = postgresql.make_store(), postgresql.url(postgresql.make_empty())
        given = [{"DATABASE_URL": each, "SECRET_KEY": SECRET} for each in urls]
    old = journal_in(tmp_path / "old", **given[0])
    file = archive(old)

    content = file.read_bytes()
    assert content.startswith(b"age-encryption.org/v1\n")
    assert not any(each in content for each in (b"SITE_URL", b"Text.", PICTURE[:256]))
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    new = emptied(tmp_path, **given[1])
    restored = said(new, "restore", "--all", str(file), "--key", str(key))
    assert "the rows are where DATABASE_URL in the environment says, and .env says" in restored
    assert "no secret key" not in restored
    before, after = digests(old.folder), digests(new.folder)
    for name in (".git/index.lock", ".ssh/id_ed25519", "__pycache__/pelicanconf.pyc"):
        assert before.pop(name)
    assert before.pop("var/spool/request.json")
    if engine == "postgresql":  # SECRET_KEY was no line of `.env`, and has to be one
        assert after.pop(".env") != before.pop(".env")
        assert f"\nSECRET_KEY={SECRET}\n" in (new.folder / ".env").read_text()
    assert after == before
    assert (new.folder / ".env").stat().st_mode & 0o777 == 0o600
    stores = (each.settings["DATABASE_URL"] for each in (old, new))
    copied = said(old, "copy", "--from", next(stores), "--to", next(stores))
    assert "the same; 0 of them were copied now" in copied
    assert "leads: 1 rows" in copied

    code, _, complained = new.run("restore", "--all", str(file), "--key", str(key))
    assert code == 1
    assert "there is a store" in complained
    with new.serving() as edge:
        assert post(edge, "the first") in said(old, "leads", "list", "--json")


@pytest.mark.size("ci")
def test_age_itself_makes_the_keys_and_opens_it(tmp_path: Path) -> None:
    """The format is that of its makers' program, with two keys, and tar reads what it gives."""
    run = partial(subprocess.run, check=True, capture_output=True, timeout=patience())
    age = Path(run([ROOT / "tools" / "provide", "age"], text=True).stdout.strip())
    keys = [tmp_path / f"key-{number}.txt" for number in range(2)]
    for each in keys:
        run([age.with_name("age-keygen"), "-o", each])
    publics = [
        run([age.with_name("age-keygen"), "-y", each], text=True).stdout.strip() for each in keys
    ]
    old = journal_in(tmp_path / "old")
    file = archive(old.changed(BACKUP_RECIPIENT=", ".join(publics)))
    for each in keys:
        content: Any = run([age, "--decrypt", "--identity", each, file]).stdout
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            names = tar.getnames()
            picture = tar.extractfile("journal/content/images/picture.jpg")
            assert picture is not None
            assert picture.read() == PICTURE
        assert {"manifest.json", "store.db", "secret.key", "journal/.env"} <= {*names}

    new = emptied(tmp_path)
    said(new, "restore", "--all", str(file), "--key", str(keys[1]))
    assert ids(new.store) == ids(old.store)


@pytest.mark.size("judge")
def test_a_private_key_may_have_a_passphrase(tmp_path: Path, key: Path) -> None:
    """It is asked for, as `age -p` has asked, and a wrong one opens nothing."""
    old, new = installation_in(tmp_path, BACKUP_RECIPIENT=RECIPIENT), emptied(tmp_path)
    (tmp_path / "content").mkdir()
    said(old, "migrate")
    file, locked = archive(old), tmp_path / "locked.age"
    locked.write_bytes(pyrage.passphrase.encrypt(key.read_bytes(), "correct horse"))
    restore = ("restore", "--all", str(file), "--key", str(locked))
    code, complained = talk(new, "wrong\n", *restore)
    assert code == 1
    assert "or its passphrase is wrong" in complained
    assert not new.store.exists()
    assert talk(new, "correct horse\n", *restore)[0] == 0
    assert new.store.exists()


def test_rows_of_postgresql_come_wholly_or_not_at_all(
    tmp_path: Path, key: Path, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.env` of the archive names the database: as `deploy --restore` has it, with nothing else."""
    monkeypatch.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
    url, away = postgresql.make_store(), f"postgresql://127.0.0.1:{free_port()}/x"
    old = journal_in(tmp_path / "old", DATABASE_URL=url, SECRET_KEY=SECRET)
    with (old.folder / ".env").open("a") as file:
        file.write(f"DATABASE_URL={url}\n")
    kept = archive(old)
    postgresql.execute("UPDATE fore_edge.schema_steps SET number = number + 90", name_of(url))
    newer = archive(old)
    postgresql.execute("UPDATE fore_edge.schema_steps SET number = number - 90", name_of(url))
    given = emptied(tmp_path)
    new = Installation(
        given.folder, {name: text for name, text in given.settings.items() if name == "PORT"}
    )
    database = postgresql.make_empty()
    empty = new.changed(DATABASE_URL=postgresql.url(database))

    there = "DATABASE_URL: --all is for a place without one: name another"
    refuse(new, kept, key, f"there is a store in the database of {there}")
    refuse(new.changed(DATABASE_URL=away), kept, key, "cannot be reached")
    wrong = empty.changed(SECRET_KEY="t" * 40)
    refuse(wrong, kept, key, "SECRET_KEY in the environment is not that of the archive: unset it")
    sqlite = new.changed(DATABASE_URL=given.settings["DATABASE_URL"])
    refuse(sqlite, kept, key, "the archive has rows of PostgreSQL, and DATABASE_URL names a store")
    refuse(empty, newer, key, "start the version that made it, or a later one")
    assert not postgresql.execute(
        "SELECT 1 FROM pg_namespace WHERE nspname = 'fore_edge'", database
    )
    postgresql.drop(url)
    postgresql.execute(f"CREATE DATABASE {name_of(url)}")
    blank = new.changed(SECRET_KEY="")
    restored = said(blank, "restore", "--all", str(kept), "--key", str(key))
    assert ".env says otherwise" not in restored
    with new.serving() as edge:
        assert post(edge, "the second")
    assert len(json.loads(said(new, "leads", "list", "--json"))) == 2


def name_of(url: str) -> str:
    """Return the name of the database."""
    return url.rpartition("/")[2]


@pytest.mark.size("ci")
def test_what_is_written_meanwhile_is_whole(tmp_path: Path, key: Path) -> None:
    """An archive that is made beside writers has each file and row as it was at one instant."""
    old = journal_in(tmp_path / "old")
    text = old.folder / "content/posts/first.md"
    versions = [letter * size for letter, size in ((b"a", 1_000_000), (b"b", 30))]
    ended = Event()

    def write() -> None:
        while not ended.is_set():
            for each in versions:
                draft = text.with_suffix(".new")
                draft.write_bytes(each)
                draft.replace(text)

    text.write_bytes(versions[0])
    writer = Thread(target=write)
    with old.serving() as edge:
        writer.start()
        try:
            acknowledged = {post(edge, f"before {number}") for number in range(5)}
            files = []
            for number in range(3):
                files.append(archive(old))
                post(edge, f"meanwhile {number}")
        finally:
            ended.set()
            writer.join()
    for number, file in enumerate(files):
        folder = tmp_path / f"new {number}"
        folder.mkdir()
        new = installation_in(folder)
        said(new, "restore", "--all", str(file), "--key", str(key))
        assert (folder / "content/posts/first.md").read_bytes() in versions
        assert ids(new.store) >= acknowledged


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    """It is said, and former archives stay."""
    old = journal_in(tmp_path / "old")
    good = archive(old)
    (old.folder / "content/large.bin").write_bytes(os.urandom(4_000_000))
    program = (
        "import resource, runpy, sys;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20));"
        "sys.argv = ['edge_api', 'backup', '--all', '--keep', '1'];"
        "runpy.run_module('edge_api', run_name='__main__')"
    )
    code, _, complained = run_program(old, program)

    assert code == 1
    assert "var/backups cannot be read or written: File too large" in complained
    assert "Traceback" not in complained
    assert left_in(old) == [good.name, f"{good.name}.sha256"]


def run_program(journal: Installation, program: str) -> tuple[int, str, str]:
    """Run a program of Python in a journal's folder."""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=journal.folder,
        env=journal.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(),
    )
    return ended.returncode, ended.stdout, ended.stderr


def left_in(journal: Installation) -> list[str]:
    """Return what is in the folder of backups and in that of rows under way."""
    var = journal.folder / "var"
    found = [*(var / "backups").iterdir(), *(var / ".archiving").iterdir()]
    return sorted(each.name for each in found if each.name != ".backup-lock")


def kill_when(started: Callable[[], object], journal: Installation, *words: str) -> None:
    """Start a command, and kill it when something holds."""
    with journal.start(*words) as process:
        deadline = time.monotonic() + patience()
        while not started() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.size("ci")
def test_a_kill_in_the_middle_leaves_nothing_behind(tmp_path: Path, key: Path) -> None:
    """A killed backup is no archive, and a killed restore goes on from the beginning."""
    old = journal_in(tmp_path / "old")
    (old.folder / "content/large.bin").write_bytes(os.urandom(60_000_000))
    backups = old.folder / "var/backups"
    kill_when(
        lambda: any(each.stat().st_size for each in backups.glob(".journal-*.partial")),
        old,
        "backup",
        "--all",
    )
    assert not list(backups.glob("journal-*.age"))
    assert b"SITE_URL" not in b"".join(each.read_bytes() for each in backups.glob(".journal-*"))
    file = archive(old)
    assert left_in(old) == [file.name, f"{file.name}.sha256"]

    new = emptied(tmp_path)
    restoring = ("restore", "--all", str(file), "--key", str(key))
    kill_when((new.folder / ".restoring/unpacked/journal/content").exists, new, *restoring)
    assert not new.store.exists()
    said(new, *restoring)
    assert not (new.folder / ".restoring").exists()
    assert digests(new.folder)["content/large.bin"] == digests(old.folder)["content/large.bin"]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Return a member of a hostile archive."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


HOSTILE = {
    "a symbolic link": [member("journal/content", tarfile.SYMTYPE, "/etc")],
    "a hard link": [member("journal/x", tarfile.LNKTYPE, "/etc/passwd")],
    "a device": [member("journal/x", tarfile.CHRTYPE)],
    "a pipe": [member("journal/x", tarfile.FIFOTYPE)],
    "a folder above": [member("journal/../../x")],
    "an absolute path": [member("/srv/x")],
    "another folder": [member("other/x")],
    "a store": [member("journal/var/edge.db")],
    "a name twice": [member("journal/x"), member("journal/x")],
    "a file as a folder": [member("journal/x"), member("journal/x/y")],
    "a folder as a file": [member("journal/x/", tarfile.DIRTYPE), member("journal/x")],
    "a folder for a store": [member("secret.key", tarfile.DIRTYPE)],
    "too many folders": [member(f"journal{'/x' * 2000}")],
    "a key of SSH": [member("journal/.ssh/authorized_keys")],
    "an empty hidden folder": [member("journal/.config", tarfile.DIRTYPE)],
    "a build": [member("journal/build/current/site/index.html")],
    "a request": [member("journal/var/spool/x.json")],
}
MANIFEST = b'{"format": 1, "made_at": "\\u001b[2J"}'


def hostile(
    path: Path,
    members: Sequence[tarfile.TarInfo],
    rows: bytes | None,
    more: bytes = b"",
    manifest: bytes = MANIFEST,
) -> Path:
    """Write an archive that nobody's backup made, with the public key that anybody may know."""
    packed, own = io.BytesIO(), {"manifest.json": manifest, "store.db": rows}
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in own.items():
            if content is None:
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for each in members:
            tar.addfile(each)
    content = gzip.compress(packed.getvalue() + more)
    path.write_bytes(pyrage.encrypt(content, [IDENTITY.to_public()]))
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(
    name: str,
    tmp_path: Path,
    key: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is no file of a journal is named, and nothing is unpacked."""
    file, new = hostile(tmp_path / "x.age", HOSTILE[name], b""), emptied(tmp_path)
    monkeypatch.chdir(new.folder)
    for setting, value in new.settings.items():
        monkeypatch.setenv(setting, value)
    assert main(["restore", "--all", str(file), "--key", str(key)]) == 1
    assert "the archive has '" in capsys.readouterr().err
    assert not list(new.folder.iterdir())


def test_an_archive_that_is_none_is_refused(tmp_path: Path, key: Path) -> None:
    """A cut or changed archive, one that never ends, and one for another key are refused."""
    old = journal_in(tmp_path / "old")
    file, bad, new = archive(old), tmp_path / "bad.age", emptied(tmp_path)
    content = file.read_bytes()
    bad.write_bytes(content[: len(content) // 2])
    refuse(new, bad, key, "it is damaged or cut short: name another one")
    bad.write_bytes(content[:-40] + bytes(40))
    refuse(new, bad, key, "it is damaged or cut short: name another one")
    for manifest in (b"5", b"[" * 100_000, b'{"format": 2}'):
        fix = "it was made by a newer version" if manifest.startswith(b"{") else "name another one"
        why = f"no manifest that this version reads: {fix}"
        refuse(new, hostile(bad, [], b"", manifest=manifest), key, why)
    refuse(new, hostile(bad, [], None), key, "the archive has no rows")
    bad.write_bytes(b"no archive")
    refuse(new, bad, key, "is no archive of backup --all")
    hostile(bad, [], b"", bytes(1 << 24))
    refuse(new, bad, key, "goes on after its end")
    large = member("journal/large")
    large.size = 1 << 60
    bad.write_bytes(
        pyrage.encrypt(gzip.compress(large.tobuf(tarfile.GNU_FORMAT)), [IDENTITY.to_public()])
    )
    refuse(new, bad, key, "too little room")
    hostile(bad, [], b"no store")
    refuse(new, bad, key, "the archive's store.db is no SQLite database")
    server = new.changed(DATABASE_URL="postgresql://127.0.0.1/x")
    refuse(server, bad, key, "the archive has rows of SQLite, and DATABASE_URL names a store of")
    hostile(bad, [], old.store.read_bytes())
    restored = said(emptied(tmp_path / "keyless"), "restore", "--all", str(bad), "--key", str(key))
    assert "the archive has no secret key: if there was one" in restored
    assert "\x1b" not in restored
    other = tmp_path / "other.txt"
    other.write_text(f"{pyrage.x25519.Identity.generate()}\n")
    refuse(new, file, other, "name the private key it was made for")
    other.write_text("no key")
    refuse(new, file, other, "this is no private key of age")
    other.unlink()
    refuse(new, file, other, "No such file")
    (new.folder / "pelicanconf.py").write_text("mine\n")
    code, _, complained = new.run("restore", "--all", str(file), "--key", str(key))
    assert (code, (new.folder / "pelicanconf.py").read_text()) == (1, "mine\n")
    assert "pelicanconf.py is there already: restore into an empty folder" in complained


def refuse(new: Installation, file: Path, key: Path, why: str) -> None:
    """See a restore refused by one sentence, and the folder empty but for a store's."""
    code, _, complained = new.run("restore", "--all", str(file), "--key", str(key))
    assert (code, len(complained.splitlines())) == (1, 1), complained
    assert why in complained
    assert {each.name for each in new.folder.rglob("*")} <= {"var", "edge.db-lock"}


def test_a_passphrase_is_typed(tmp_path: Path, key: Path) -> None:
    """It is read from the input alone, and the wrong one opens nothing."""
    old, new = journal_in(tmp_path / "old"), emptied(tmp_path)
    talk(old, "correct horse\n", "backup", "--all", "--passphrase")
    (file,) = old.folder.glob("var/backups/*.age")
    code, complained = talk(new, "wrong\n", "restore", "--all", str(file))
    assert code == 1
    assert "this is not its passphrase: type that again" in complained
    assert talk(new, "correct horse\n", "restore", "--all", str(file))[0] == 0
    assert (new.folder / "content/images/picture.jpg").read_bytes() == PICTURE

    code, complained = talk(old, "\n", "backup", "--all", "--passphrase")
    assert (code, list(old.folder.glob("var/backups/*.age"))) == (2, [file])
    assert "--passphrase: an empty one opens to anybody: type one" in complained
    refused = ("restore", "--all", str(file), "--key", str(key))
    assert "restored without --key" in new.run(*refused)[2]
    public = archive(old)
    assert "--key names its private key" in talk(new, "x\n", "restore", "--all", str(public))[1]


def test_folders_come_back_and_keys_do_not(tmp_path: Path, key: Path) -> None:
    """Git works on a packed repository; a private key, former archives and a store stay away."""
    folder = tmp_path / "old"
    (folder / "content/empty").mkdir(parents=True)
    git = partial(subprocess.run, check=True, capture_output=True, text=True, timeout=patience())
    as_somebody = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org")
    git(["git", "init", "--quiet"], cwd=folder)
    git([*as_somebody, "commit", "--quiet", "--allow-empty", "-m", "First"], cwd=folder)
    git(["git", "gc", "--quiet"], cwd=folder)
    (folder / "content/key.txt").write_bytes(key.read_bytes())
    (folder / "content/post.md").write_text("It begins with AGE-SECRET-KEY-1 and 58 letters.\n")
    (folder / "journal-20261130T080000.000000Z.age").write_bytes(b"former")
    settings = {"DATABASE_URL": "sqlite:///data/var/edge.db", "BACKUP_RECIPIENT": RECIPIENT}
    old = installation_in(folder, **settings)
    said(old, "migrate")
    code, printed, complained = old.run("backup", "--all", "--json")
    assert (code, len(complained.splitlines())) == (0, 1)
    assert "content/key.txt is left out: it has a private key of age" in complained

    new = emptied(tmp_path, **settings)
    said(new, "restore", "--all", json.loads(printed)["file"], "--key", str(key))
    assert git(["git", "log", "--format=%s"], cwd=new.folder).stdout == "First\n"
    kept = {str(path.relative_to(new.folder)) for path in new.folder.rglob("*")}
    kept = {name for name in kept if not name.startswith(".git/")}
    assert {"content", "content/empty", "content/post.md", "data/var", "data/var/edge.db"} <= kept
    assert not {each for each in kept if "key.txt" in each or each.endswith(".age")}
    assert (new.folder / "data/var").stat().st_mode & 0o777 == 0o700
    code, _, complained = old.changed(MAIL_TEMPLATES="../mails").run("backup", "--all")
    assert code == 1
    assert "MAIL_TEMPLATES: ../mails is outside of" in complained


def talk(journal: Installation, typed: str, *words: str) -> tuple[int, str]:
    """Run a command with this input; return exit code and complaints."""
    with journal.start(*words, stdin=subprocess.PIPE) as process:
        _, complained = process.communicate(typed, timeout=patience())
    return process.returncode, complained


def test_it_is_never_unencrypted(tmp_path: Path) -> None:
    """Without a public key, or with a private one in its place, nothing is written."""
    made = installation_in(tmp_path)
    said(made, "migrate")
    code, _, complained = made.run("backup", "--all")
    assert code == 2
    assert "set BACKUP_RECIPIENT to the public key" in complained
    assert said(made, "backup", "--all", "--daily") == "BACKUP_RECIPIENT is not set: no archive\n"
    code, _, complained = made.changed(BACKUP_RECIPIENT=str(IDENTITY)).run("backup", "--all")
    assert code == 2
    assert "a private key must not be on this machine" in complained
    assert str(IDENTITY) not in complained


def test_a_timer_keeps_the_newest_and_old_ones_are_named(tmp_path: Path) -> None:
    """One is made a day, `--keep` removes older ones, and doctor reports what went wrong."""
    made = installation_in(tmp_path, BACKUP_RECIPIENT=RECIPIENT)
    (tmp_path / "content").mkdir()
    said(made, "migrate")
    rows = Path(as_json(made, "backup", "--json")["file"])
    assert "there is no archive yet: let a timer run python -m edge_api backup --all" in doctor(
        made
    )
    away = archive(made, "--to", str(tmp_path / "stick"))
    assert "there is no archive yet" in doctor(made)  # what lies elsewhere is not watched
    first = archive(made, "--to", str(tmp_path / "var/../var/backups"))
    away.unlink()
    elsewhere = made.run("backup", "--all", "--daily", "--to", str(tmp_path / "stick"))
    assert "leave --to out" in elsewhere[2]
    assert "archive" not in doctor(made).partition("looked at")[0].replace(
        "the newest archive (", ""
    )
    assert said(made, "backup", "--all", "--daily", "--keep", "1") == "no archive is due\n"
    second = archive(made, "--keep", "1")
    assert not first.exists()
    assert rows.exists()

    result = made.store.with_name("edge.db-archive.json")
    members = json.loads(result.read_bytes())
    long_ago = datetime.now(UTC) - timedelta(days=5)
    result.write_text(json.dumps({**members, "made_at": long_ago.isoformat()}))
    assert "the newest archive is older than 2 days" in doctor(made)
    with made.serving() as edge:
        check = json.loads(edge.get("/api/public/v1/readiness")[2])["checks"]["archive"]
    assert (check["status"], check["verified"]) == ("warn", False)
    assert "the newest archive is older than 2 days" in check["error"]
    assert "no archive is due" not in said(made, "backup", "--all", "--daily")
    second = max(second.parent.glob("*.age"))
    second.write_bytes(second.read_bytes()[:-1])
    assert "the newest archive was changed since it was made" in doctor(made, "--deep")
    third = due(made)
    third.unlink()
    assert "the newest archive is not where it was made" in doctor(made, "--deep")
    due(made).unlink()
    due(made)
    assert said(made, "backup", "--all", "--daily") == "no archive is due\n"


def due(made: Installation) -> Path:
    """Return the archive that the timer makes."""
    printed = said(made, "backup", "--all", "--daily")
    assert "it is on the same disk as the journal: copy it to another machine" in printed
    return Path(printed.partition(": ")[0])


def doctor(made: Installation, *words: str) -> str:
    """Return what doctor prints."""
    return made.run("doctor", *words)[1]
