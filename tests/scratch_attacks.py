"""Attacks of the journal's user while root works, in the scratch root of test_deploy.py."""

import os
import subprocess
from pathlib import Path
from threading import Event, Thread

from tests.scratch_machine import JOURNAL, PATIENCE, PROGRAMS, UNITS, run_block, wait_for

SECRETS = Path("/etc/letsencrypt/live")
"""A folder of root's that a link leads to."""
SECRET = Path("/etc/secret")
RACES = 4
TRAP = """
import os
for name in ("/srv/journal/var/who", "/srv/who"):
    try:
        with open(name, "a") as file:
            file.write(f"{os.geteuid()}\\n")
    except OSError:
        pass
"""
"""A program that tells who ran it."""
EARLY = """
import os, signal, subprocess, sys

class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        print(self.pid, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen = Popen
sys.argv = ["/usr/local/lib/fore-edge/current/bin/fore-edge", "publish"]
from site_build.__main__ import fore_edge
fore_edge()
"""
"""Root's command, ended in the instant in which it starts the one of the journal's user."""


def as_journal(command: str) -> None:
    """Run a command as the journal's user, in its folder."""
    words = ["runuser", "-u", "journal", "--", "sh", "-euc", command]
    subprocess.run(words, cwd=JOURNAL, check=True)


def attack(deploy: str, folder: Path) -> None:
    """See that nothing that the journal's user does becomes root's deed."""
    SECRETS.chmod(0o700)
    SECRET.write_text("SECRET=of-root\n", "utf-8")
    SECRET.chmod(0o600)
    settings = (JOURNAL / ".env").read_bytes()
    name_folders(deploy, folder)
    (JOURNAL / ".env").write_bytes(settings)
    lay_links(deploy, folder)
    lay_programs(deploy, folder)
    end_as_root()
    race(deploy, folder)
    assert (SECRETS.stat().st_mode & 0o777, SECRETS.owner()) == (0o700, "root")
    assert (SECRET.stat().st_mode & 0o777, SECRET.owner()) == (0o600, "root")
    assert "of-root" not in (JOURNAL / ".env").read_text("utf-8")
    run_block(deploy, folder)


def name_folders(deploy: str, folder: Path) -> None:
    """Name folders that become the user's where root makes them, in `.env` and beside links."""
    place = UNITS / "nginx.service.d"
    for name in (place, f"{JOURNAL}/var/../../../{place}"):
        as_journal(f"echo LITESTREAM_REPLICA=file://{name} >>.env")
        run_block(deploy, folder, refused=f"the edge may not write {place}: type --replica")
        assert not place.exists()
        as_journal("sed -i /^LITESTREAM_REPLICA/d .env")

    typed = f"{deploy.rstrip()} --replica file://"
    as_journal(f"mkdir var/open; ln -s {UNITS} var/open/units")
    Path("/srv/shared").mkdir()
    Path("/srv/shared").chmod(0o777)
    Path("/srv/link").symlink_to(UNITS)
    Path("/srv/other").mkdir(mode=0o750)
    for name, refused in {
        "/srv/shared/replica": "others than root may write /srv/shared",
        "/srv/link/nginx.service.d": "others than root may write /srv/link",
        "/srv/link": "/srv/link is a link",
        "/srv/other": "the user journal cannot write /srv/other: run chown",
    }.items():
        run_block(f"{typed}{name}\n", folder, refused=refused)
    assert not place.exists()
    assert (Path("/srv/other").owner(), Path("/srv/other").stat().st_mode & 0o777) == (
        "root",
        0o750,
    )


def lay_links(deploy: str, folder: Path) -> None:
    """Have links, pipes and other names of root's files where root works."""
    as_journal(f"mv build former; ln -s {SECRETS} build")
    run_block(deploy, folder, refused="the user journal cannot work in /srv/journal")
    as_journal("rm build; mv former build; mv var former; ln -s /etc var")
    run_block(deploy, folder, refused="the user journal cannot work in /srv/journal")
    as_journal(f"rm var; mv former var; ln -s {SECRETS} var/.deploy")
    run_block(deploy, folder)
    os.link(SECRET, JOURNAL / "var/name")  # where fs.protected_hardlinks is 0, anybody can
    run_block(deploy, folder)
    as_journal("rm var/name; mv .env former; mkfifo .env")
    run_block(deploy, folder, refused=".env is no file: remove it")
    as_journal(f"rm .env; ln -s {SECRET} .env")
    run_block(deploy, folder)
    assert SECRET.read_text("utf-8") == "SECRET=of-root\n"
    as_journal("mv former .env; head -c 3000000 /dev/zero | tr '\\0' '#' >>.env; echo >>.env")
    run_block(deploy, folder)
    as_journal(r"sed -i '/^##/d' .env; printf 'PORT=\033]0;title\007\n' >>.env")
    assert "\033" not in run_block(deploy, folder, refused="PORT: must be")
    as_journal("sed -i /^PORT/d .env; ln -s /etc/secret var/aside.db")
    place = f"{deploy.rstrip()} --restore {JOURNAL}/var/aside.db\n"
    run_block(place, folder, refused="/srv/journal/var/aside.db is no file: name the file itself")
    as_journal("rm var/aside.db; cp .env var/aside.db")
    run_block(
        place, folder, refused="others than root may write where /srv/journal/var/aside.db is"
    )


def lay_programs(deploy: str, folder: Path) -> None:
    """Have programs where root works: settings, modules, and commands for a careless PATH."""
    (JOURNAL / "trap.py").write_text(TRAP, "utf-8")
    os.chown(JOURNAL / "trap.py", JOURNAL.stat().st_uid, JOURNAL.stat().st_gid)
    as_journal("cp pelicanconf.py former; cat trap.py >>pelicanconf.py")
    as_journal("for each in site_build edge_api pip dotenv os signal; do cp trap.py $each.py; done")
    as_journal(
        "for each in sh id find grep sed cat runuser setsid nginx; do"
        " printf '#!/bin/sh\\nid -u >>/srv/journal/var/who\\n' >$each; chmod 755 $each; done"
    )
    here = f"cd {JOURNAL}; PATH=:$PATH\n"
    run_block(here + deploy, folder)
    (program,) = PROGRAMS.glob("[0-9]*")
    commands = ("check", "build", "keys list", "backup", "settings", "doctor || true")
    run_block(here + "\n".join(f"{program}/bin/fore-edge {each}" for each in commands), folder)
    site = Path("/srv/site")
    (site / "content").mkdir(parents=True)
    (site / "pelicanconf.py").write_text(f"{TRAP}SITENAME = 'Site'\n", "utf-8")
    (site / "content/a.md").write_text("Title: A\nDate: 2026-01-02\n\nA text.\n", "utf-8")
    os.chown(site / "pelicanconf.py", 65534, 65534)
    take_over = f"{program}/bin/fore-edge init /srv/new --from {site}"
    trusted = f"{take_over} --trust"
    run_block(trusted, folder, refused="is a program of another user: run this as that user")
    # Without --trust the settings are read and not run.
    run_block(take_over, folder)
    at_terminal = "python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))'"
    run_block(f"{here}{at_terminal} {program}/bin/fore-edge check", folder)
    foreign = Path("/srv/foreign")
    foreign.touch()
    os.chown(foreign, 65534, 65534)
    as_journal(f"mv .env settings; ln -s {foreign} .env")
    run_block(f"{here}{program}/bin/fore-edge check", folder)
    as_journal("mv settings .env")
    assert set((JOURNAL / "var/who").read_text("utf-8").split()) == {str(JOURNAL.stat().st_uid)}
    assert not Path("/srv/who").exists()
    as_journal("rm *.py sh id find grep sed cat runuser setsid nginx; mv former pelicanconf.py")


def end_as_root() -> None:
    """See that what ends root's command ends the one that runs as the journal's user."""
    command = ["/usr/local/bin/fore-edge", "publish"]
    with subprocess.Popen(command, cwd=JOURNAL) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(lambda: children.read_text().split(), "it runs as the journal's user")
        (child,) = children.read_text().split()
        wait_for(lambda: Path(f"/proc/{child}").owner() == "journal", "that user is another")
        wait_for(lambda: b"publish" in Path(f"/proc/{child}/cmdline").read_bytes(), "it began")
        process.terminate()
        assert process.wait(PATIENCE) != 0
    assert not Path(f"/proc/{child}").exists()
    (python,) = PROGRAMS.glob("[0-9]*/bin/python3")
    ended = subprocess.run(
        [python, "-P", "-c", EARLY],
        cwd=JOURNAL,
        check=False,
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
    )
    child, *_ = ended.stdout.decode().split()  # what the other command prints comes after it
    assert not Path(f"/proc/{child}").exists()


def race(deploy: str, folder: Path) -> None:
    """Exchange files and links all the while that root works."""
    ended = Event()
    swap = f"""
        rm -rf former; mv build former; ln -s {SECRETS} build; rm build; mv former build
        cp .env aside; ln -sf {SECRET} .env; mv aside .env
        rm -rf var/.deploy; ln -s {SECRETS} var/.deploy; rm var/.deploy
    """

    def go_on() -> None:
        words = ["runuser", "-u", "journal", "--", "sh", "-c"]
        while not ended.is_set():
            subprocess.run([*words, swap], cwd=JOURNAL, check=False, capture_output=True)

    rival = Thread(target=go_on)
    rival.start()
    try:
        for _ in range(RACES):  # it may be held up, and leads root nowhere
            subprocess.run(["/bin/sh", "-c", deploy], cwd=folder, check=False, input=b"\n")
    finally:
        ended.set()
        rival.join()
    as_journal("[ -d build ] || mv former build; rm -rf former aside var/.deploy")
