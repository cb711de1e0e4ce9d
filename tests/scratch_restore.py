"""A program of test_deploy.py: a new machine serves what the former one has left.

It ends with a line `deployed`. Its arguments are those of `scratch_server`.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import termios
from contextlib import closing
from pathlib import Path

import pyrage

from edge_api.db.sqlite.processes import sync_replica
from tests.scratch_machine import (
    DOMAIN,
    JOURNAL,
    PATIENCE,
    PROGRAMS,
    UNITS,
    fetch,
    prepare,
    run_block,
    start,
    wait_for,
)

HOME = Path("/srv/restored")
"""The path of root's backup."""
OLD = Path("/srv/old")
"""The journal of the former machine, which is root's own."""
REPLICA = Path("/mnt/elsewhere/journal")
PRIVATE_KEY = HOME / "journal-key.txt"
LEADS = f"https://{DOMAIN}/api/public/v1/leads"
LEAD = b'{"name": "Ann", "email": "ann@example.org", "budget_tier": "starter", "message": "Hi"}'


def make_former(program: Path, litestream: Path) -> str:
    """Have a journal with a lead, its backup and its replica; return a key that reads it."""
    (program / "bin/litestream").symlink_to(litestream)
    command = [program / "bin/fore-edge"]
    subprocess.run([*command, "init", OLD], check=True)
    identity = pyrage.x25519.Identity.generate()
    PRIVATE_KEY.write_text(f"# public key: {identity.to_public()}\n{identity}\n", "ascii")
    with (OLD / ".env").open("a", encoding="utf-8") as settings:
        settings.write(f"RATE_LEADS=7/minute\nBACKUP_RECIPIENT={identity.to_public()}\n")
    (OLD / "content/images").mkdir()
    (OLD / "content/images/picture.bin").write_bytes(os.urandom(3_000_000))
    (OLD / "theme/static").mkdir(parents=True)
    (OLD / "theme/static/own.txt").write_text("the owner's", "ascii")
    (OLD / "var/drafts").mkdir(parents=True)
    (OLD / "var/drafts/note.md").write_text("not public", "ascii")
    environment = {
        **os.environ,
        "SITE_URL": f"https://{DOMAIN}",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LITESTREAM_REPLICA": f"file://{REPLICA}",
    }
    subprocess.run([*command, "build"], cwd=OLD, env=environment, check=True)
    with subprocess.Popen([*command, "serve"], cwd=OLD, env=environment) as edge:
        wait_for(lambda: fetch("http://127.0.0.1:8000/api/public/ping")[0] == 200, "it serves")
        status, text = fetch("http://127.0.0.1:8000/api/public/v1/leads", LEAD)
        assert status == 201, text
        words = ["keys", "issue", "--name", "reader", "--scopes", "leads:read", "--json"]
        issued = subprocess.run(
            [*command, *words], cwd=OLD, env=environment, check=True, capture_output=True
        )
        for more in ([], ["--all"]):
            words = ["backup", "--to", str(HOME), *more]
            subprocess.run([*command, *words], cwd=OLD, env=environment, check=True)
        wait_for(lambda: sync_replica(OLD / "var/edge.db", 10.0), "the replica has it")
        edge.send_signal(signal.SIGTERM)
    shutil.copy(OLD / "var/edge.key", HOME / "edge.key")
    return str(json.loads(issued.stdout)["key"])


def expect_nothing() -> None:
    """See that a refused restore leaves no store, no copy, and nothing that runs."""
    assert not [each for each in JOURNAL.glob("var/*edge.db*") if "lock" not in each.name]
    assert not list(JOURNAL.glob("var/.deploy"))
    assert not (PROGRAMS / "current").exists()
    for secret in (HOME / "edge.key", *HOME.glob("edge-*"), *HOME.glob("journal-*Z.age")):
        assert secret.stat().st_uid == 0
        assert secret.stat().st_mode & 0o077 == 0


def restore_wrongly(deploy: str, backup: Path) -> None:
    """See what cannot be restored refused, with what to do."""
    bad = HOME / "bad.db"
    typed = f"{deploy.rstrip()} --restore "

    def refuse(place: str, why: str, key: str = "") -> None:
        said = run_block(f"{typed}{place}{key}\n", HOME, refused=why)
        assert "Traceback" not in said
        expect_nothing()

    refuse("missing.db", "there is no file /srv/restored/missing.db: name a backup")
    bad.write_text("no database", "utf-8")
    refuse(bad.name, "is no SQLite database: name another backup")
    bad.write_bytes(b"")
    refuse(bad.name, "is no store of Fore-edge: name another backup")
    content = bytearray(backup.read_bytes())
    content[len(content) // 2 :] = os.urandom(len(content) - len(content) // 2)
    bad.write_bytes(content)
    refuse(bad.name, "is damaged")
    shutil.copy(f"{backup}.sha256", f"{bad}.sha256")
    shutil.copy(backup, bad)
    with closing(sqlite3.connect(bad)) as connection:
        connection.execute("UPDATE leads SET message = 'Ho'")
        connection.commit()
    refuse(bad.name, "was changed since it was made")
    Path(f"{bad}.sha256").unlink()
    with closing(sqlite3.connect(bad)) as connection:
        connection.execute("PRAGMA user_version = 99")
    refuse(bad.name, "99")
    bad.unlink()
    bad.symlink_to(backup)
    refuse(bad.name, "/srv/restored/bad.db is no file: name the file itself")
    bad.unlink()
    (JOURNAL / "edge.db").write_bytes(backup.read_bytes())
    refuse("/srv/journal/edge.db", "others than root may write where /srv/journal/edge.db is: copy")
    (JOURNAL / "edge.db").unlink()
    refuse(backup.name, "holds no secret key: name a saved var/edge.key", " --key /etc/hostname")
    other = HOME / "edge-other.key"
    other.write_text("a" * 64, "ascii")
    other.chmod(0o600)
    refuse(backup.name, "this is not the key that the store was used with", f" --key {other}")
    refuse("file:///mnt/nowhere", "there is no folder /mnt/nowhere: copy the replica there first")
    refuse("file:///etc", "--replica: choose a folder below /srv, /mnt or /media")
    refuse("s4://bucket/journal", "LITESTREAM_REPLICA")
    empty = Path("/mnt/empty")
    empty.mkdir()
    refuse(f"file://{empty}", f"the user journal cannot write {empty}: run chown -hR journal")
    shutil.chown(empty, "journal", "journal")
    refuse(f"file://{empty}", "the replica cannot be restored: ")
    assert b"\nLITESTREAM_REPLICA" not in (JOURNAL / ".env").read_bytes()
    assert b"\nSITE_URL" not in (JOURNAL / ".env").read_bytes()


def serve(key: str, listening: socket.socket, page: str = "/api/public/ping") -> None:
    """Start the edge of the unit, read the lead of the former machine with its key, and end it."""
    edge = start("fore-edge", listening)
    wait_for(lambda: fetch(f"https://{DOMAIN}{page}")[0] == 200, "it serves again")
    status, text = fetch(LEADS, key=key)
    assert (status, json.loads(text)["count"]) == (200, 1), text
    edge.send_signal(signal.SIGTERM)
    edge.wait(PATIENCE)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a journal, but for the store's, builds and settings."""
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in (str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
        if not name.startswith(("build/", ".env", "__pycache__/", "var/"))
        or name.startswith(("var/edge.key", "var/drafts/"))
    }


def interrupt(typed: str) -> None:
    """See the terminal show what is typed again after Ctrl-C at the question for a passphrase."""
    terminal, slave = os.openpty()
    command = ["setsid", "--ctty", "--wait", "/bin/bash", "-c", typed]
    with subprocess.Popen(command, cwd=HOME, stdin=slave, stdout=slave, stderr=slave) as asking:
        wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ECHO, "it asks")
        os.write(terminal, b"\x03")
        assert asking.wait(PATIENCE) == 130
    assert termios.tcgetattr(slave)[3] & termios.ECHO
    said = os.read(terminal, 1 << 16)
    assert b"Passphrase of" in said
    assert b"Traceback" not in said
    for each in (terminal, slave):
        os.close(each)


def restore_archive(block: str, key: str, listening: socket.socket) -> None:
    """See a whole journal come back by one command, and nothing by a wrong one."""
    (archive,) = HOME.glob("journal-*.age")
    typed = block.replace("journal-INSTANT.age", archive.name)
    other = HOME / "other.txt"
    other.write_text(f"{pyrage.x25519.Identity.generate()}\n", "ascii")
    locked = HOME / "locked.txt"
    locked.write_bytes(pyrage.passphrase.encrypt(PRIVATE_KEY.read_bytes(), "correct horse"))
    for wrong, why in (
        (typed.replace("journal-key", "locked"), "has a passphrase: type age --decrypt"),
        (typed.replace("journal-key", "other"), "name the private key it was made for"),
        (typed.replace(" --key journal-key.txt", ""), "--key names its private key"),
        (typed.replace(archive.name, "missing.age"), "there is no file"),
    ):
        run_block(wrong, HOME, refused=why)
        expect_nothing()
    interrupt(typed.replace(" --key journal-key.txt", ""))
    expect_nothing()
    run_block(typed, HOME)
    subprocess.run(["/usr/sbin/nginx"], check=True)
    foreign = [str(path) for path in JOURNAL.rglob("*") if path.owner() != "journal"]
    assert not foreign, foreign
    private = PRIVATE_KEY.read_bytes().split()[-1]
    assert not [e for e in JOURNAL.rglob("*") if e.is_file() and private in e.read_bytes()]
    there, here = digests(OLD), digests(JOURNAL)
    assert here == there, (here, there)
    assert len(here) > 8, here
    settings = (JOURNAL / ".env").read_text("utf-8").splitlines()
    assert set((OLD / ".env").read_text("utf-8").splitlines()) <= {*settings}
    assert f"SITE_URL=https://{DOMAIN}" in settings
    assert (JOURNAL / ".env").stat().st_mode & 0o777 == 0o600
    publishing = start("fore-edge-publish")
    serve(key, listening, "/")
    assert start("fore-edge-backup").wait(PATIENCE) == 0
    assert list(JOURNAL.glob("var/backups/journal-*.age"))
    assert list(JOURNAL.glob("var/backups/edge-*.db"))
    publishing.terminate()
    publishing.wait(PATIENCE)
    run_block(typed, HOME, refused="there is a store in /srv/journal/var, and --restore is for a")
    forget()


def forget() -> None:
    """Be an empty server again, but for the program."""
    shutil.rmtree(JOURNAL)
    (PROGRAMS / "current").unlink()
    for unit in UNITS.glob("fore-edge*"):
        shutil.rmtree(unit) if unit.is_dir() else unit.unlink()


def main() -> None:
    """Restore from a backup, then on another machine from a replica."""
    page, folder, litestream, libraries = map(Path, sys.argv[1:])
    HOME.mkdir(mode=0o700)
    deploy, *others = prepare(page, folder, libraries)
    from_archive, from_backup, from_replica = (each for each in others if "--restore" in each)
    (program,) = PROGRAMS.glob("[0-9]*")
    key = make_former(program, litestream)
    (backup,) = HOME.glob("edge-*.db")
    (HOME / "edge-INSTANT.db").hardlink_to(backup)
    restore_wrongly(deploy, backup)
    (HOME / "edge-INSTANT.db").unlink()
    shutil.rmtree(JOURNAL)
    listening = socket.create_server(("127.0.0.1", 8000), backlog=1024)
    restore_archive(from_archive, key, listening)
    subprocess.run(["/usr/sbin/nginx", "-s", "reload"], check=True)
    said = run_block(from_backup.replace("edge-INSTANT", backup.stem), HOME)
    assert "the secret key is in its place: var/edge.key" in said
    assert "content, theme, pelicanconf.py and the other settings of .env are in no backup" in said
    assert "without the former secret key" not in said
    assert not (JOURNAL / "var/.deploy").exists()
    foreign = [str(path) for path in JOURNAL.rglob("*") if path.owner() != "journal"]
    assert not foreign, foreign
    secret = (OLD / "var/edge.key").read_bytes()
    assert (JOURNAL / "var/edge.key").read_bytes() == secret
    serve(key, listening)
    rows = (JOURNAL / "var/edge.db").read_bytes()
    again = from_backup.replace("edge-INSTANT", backup.stem)
    run_block(again, HOME, refused="there is a store in /srv/journal/var, and --restore is for a")
    assert (JOURNAL / "var/edge.db").read_bytes() == rows

    forget()
    REPLICA.parent.chmod(0o755)
    subprocess.run(["/bin/chown", "-hR", "journal:journal", REPLICA], check=True)
    assert "without the former secret key" in run_block(
        from_replica.replace(" --key edge.key", ""), HOME
    )
    forget()
    said = run_block(from_replica, HOME)
    assert "the secret key is in its place: var/edge.key" in said
    assert (JOURNAL / "var/edge.key").read_bytes() == secret
    assert f"\nLITESTREAM_REPLICA=file://{REPLICA}\n" in (JOURNAL / ".env").read_text("utf-8")
    serve(key, listening)
    print("deployed")


if __name__ == "__main__":
    main()
