"""A program of test_deploy.py: content is pushed to a server, by its owner and by attackers.

It ends with a line `deployed`. Its arguments are those of `scratch_server`.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.scratch_machine import (
    DOMAIN,
    JOURNAL,
    PATIENCE,
    UNITS,
    fetch,
    prepare,
    run_block,
    start,
    wait_for,
)

BARE = Path("/srv/journal.git")
HOME = Path("/srv/journal-git")
CLONE = Path("/srv/clone")
KEY = Path("/srv/key")
SOCKET = Path("/run/fore-edge-git.sock")
SSH = f"ssh -i {KEY} -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
ADDRESS = f"journal-git@{DOMAIN}"
POST = "---\ntitle: {0}\nslug: {0}\ndate: 2026-01-02T08:00:00Z\ndescription: {1}\n---\n\n{2}\n"
Files = Mapping[str, tuple[str, bytes]]
"""Modes and bytes by paths."""


def git(*words: str, given: bytes = b"", folder: Path = CLONE) -> str:
    """Run git, which must succeed; return what it prints."""
    ended = try_git(*words, given=given, folder=folder)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode().strip()


def try_git(
    *words: str, given: bytes = b"", folder: Path = CLONE
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in a folder, by default in the clone of the one who pushes."""
    names = {
        f"GIT_{who}_{key}": "ann" for who in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    environment = {**os.environ, **names, "GIT_SSH_COMMAND": SSH, "LC_ALL": "C"}
    return subprocess.run(
        ["git", *words],  # noqa: S607
        cwd=folder,
        input=given,
        env=environment,
        check=False,
        capture_output=True,
        timeout=PATIENCE * 4,
    )


def as_user(user: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user, in the journal."""
    command = ["runuser", "-u", user, "--", *words]
    return subprocess.run(command, cwd=JOURNAL, check=False, capture_output=True, text=True)


def say(result: "subprocess.CompletedProcess[bytes]") -> str:
    """Return what a push told, in one line."""
    text = result.stderr.decode().replace("remote: ", "")
    print(text, flush=True)
    return " ".join(text.split())


def take_connections(unit: str = "fore-edge-receive") -> None:
    """Do what systemd does by the socket of a unit."""
    text = (UNITS / f"{unit}.socket").read_text("utf-8")
    place, group = (
        text.partition(f"\n{key}=")[2].partition("\n")[0] for key in ("ListenStream", "SocketGroup")
    )
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    shutil.chown(place, "root", group)
    Path(place).chmod(0o660)
    listening.listen()

    def accept() -> None:
        while True:
            connection, _ = listening.accept()
            start(f"{unit}@", streams=connection)
            connection.close()

    Thread(target=accept, daemon=True).start()


@contextmanager
def carrying_commits() -> Iterator[None]:
    """Do what systemd does by the unit `fore-edge-push.path`."""
    branch, is_over = JOURNAL / ".git/refs/heads/main", Event()

    def watch() -> None:
        known = branch.read_text("utf-8")
        while not is_over.wait(0.02):
            if (found := branch.read_text("utf-8")) != known:
                known = found
                start("fore-edge-push").wait()

    thread = Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def state() -> tuple[str, str, str]:
    """Return the commits of both repositories, and what is changed in the journal."""
    return (
        as_user("journal", "git", "rev-parse", "HEAD").stdout,
        as_user("journal-git", "git", "-C", str(BARE), "rev-parse", "main").stdout,
        as_user("journal", "git", "status", "--porcelain", "--ignored").stdout,
    )


def write(files: Files, *, base: str = "origin/main") -> str:
    """Commit files upon a commit without looking at their names; return the new commit."""
    git("read-tree", base)
    for path, (mode, raw) in files.items():
        blob = git("hash-object", "-w", "--stdin", given=raw) if mode != "160000" else "1" * 40
        git("update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
    tree = git("write-tree")
    return git("commit-tree", tree, "-p", base, given=b"Write")


def push_well(origin: str) -> None:
    """See posts published, findings printed, and files with errors held back."""
    files = {
        "content/posts/pushed.md": ("100644", POST.format("pushed", "One.", "Words.").encode()),
        "content/images/a b.txt": ("100755", b"text"),
    }
    said = say(try_git("push", "origin", f"{write(files)}:main"))
    assert "0 errors" in said, said
    assert "rejected" not in said, said
    wait_for(lambda: fetch(f"{origin}/journal/pushed/")[0] == 200, "a pushed post is published")
    assert (JOURNAL / "content/posts/pushed.md").owner() == "journal"
    assert state()[0] == state()[1]

    broken = "---\ntitle: {0}\nslug: {0}\ndate: soon\n---\nSilence.\n"
    bad = {
        "content/posts/broken.md": ("100644", broken.format("broken").encode()),
        "content/posts/pushed.md": ("100644", broken.format("pushed").encode()),
        "content/posts/other.md": ("100644", POST.format("other", "Two.", "[a](/none/)").encode()),
    }
    said = say(try_git("push", "origin", f"{write(bad)}:main"))
    assert "content/posts/broken.md:4:7 error" in said, said
    assert "content/posts/pushed.md:4:7 error" in said, said
    assert "content/posts/other.md:8:5 warning broken link: no page at `/none/`" in said, said
    assert "held back until that is fixed" in said, said
    wait_for(lambda: fetch(f"{origin}/journal/other/")[0] == 200, "what is good is published")
    assert fetch(f"{origin}/journal/broken/")[0] == 404
    assert "Words" in fetch(f"{origin}/journal/pushed/")[1], "the former version is shown"

    removed = git(
        "commit-tree", f"{write(files, base='origin/main~1')}^{{tree}}", "-p", "origin/main"
    )
    assert try_git("push", "origin", f"{removed}:main").returncode == 0
    assert not (JOURNAL / "content/posts/broken.md").exists()
    wait_for(lambda: fetch(f"{origin}/journal/other/")[0] == 404, "a removed post is gone")


def work_on_both_sides() -> None:
    """See that commits of the server reach the clone, and that nobody's changes are lost."""
    place = JOURNAL / "content/posts/pushed.md"
    ended = as_user("journal", "/usr/local/bin/fore-edge", "post", "withdraw", "pushed")
    assert ended.stdout.endswith("by itself\n"), ended
    late = write({"content/posts/late.md": ("100644", POST.format("late", "A.", "B.").encode())})
    before = state()
    assert before[2].startswith("!!"), before
    assert "git pull --rebase" in say(try_git("push", "origin", f"{late}:main"))
    assert start("fore-edge-push").wait(PATIENCE) == 0
    assert state()[1] == before[0]
    git("fetch")
    assert git("log", "-1", "--format=%an %s", "origin/main") == "owner Withdraw pushed"

    edited = place.read_bytes() + b"\nThe owner's.\n"
    place.write_bytes(edited)
    pushed = {"content/posts/pushed.md": ("100644", b"another text")}
    assert "commit or undo that first: content/posts/pushed.md" in say(
        try_git("push", "origin", f"{write(pushed)}:main")
    )
    assert place.read_bytes() == edited
    beside = {"content/posts/beside.md": ("100644", POST.format("beside", "A.", "B.").encode())}
    assert try_git("push", "origin", f"{write(beside)}:main").returncode == 0
    assert place.read_bytes() == edited
    as_user("journal", "git", "checkout", "content")


def push_on() -> None:
    """See commits pushed to WRITING_PUSH, without a program that the repository's settings name."""
    trap = "#!/bin/sh\ntouch /srv/journal/var/trapped\n"
    elsewhere = JOURNAL / "var/elsewhere.git"
    script = f"""
        cd {JOURNAL}
        git init --quiet --bare --initial-branch=main {elsewhere}
        git remote add backup {elsewhere}
        printf '{trap}' >var/trap
        chmod 755 var/trap
        for name in pre-push post-commit reference-transaction; do
            cp var/trap .git/hooks/$name
        done
        for name in core.sshCommand core.askPass credential.helper core.fsmonitor gpg.program; do
            git config $name {JOURNAL}/var/trap
        done
        git config remote.backup.receivepack {JOURNAL}/var/trap
        git config push.gpgSign true
    """
    assert as_user("journal", "sh", "-euc", script).returncode == 0
    settings = (JOURNAL / ".env").read_text("utf-8")
    for address, status in {
        "backup": 0,
        f"'{elsewhere}'": 0,
        "ssh://git@127.0.0.1:1/journal.git": 1,
        f"ext::{JOURNAL}/var/trap": 1,
        "--receive-pack=/srv/journal/var/trap": 1,
    }.items():
        (JOURNAL / ".env").write_text(f"{settings}WRITING_PUSH={address}\n", "utf-8")
        for action in ("publish", "withdraw"):
            as_user("journal", "/usr/local/bin/fore-edge", "post", action, "pushed")
        (JOURNAL / "var/trapped").unlink(missing_ok=True)
        assert start("fore-edge-push").wait(PATIENCE) == status, address
        assert not (JOURNAL / "var/trapped").exists(), address
        assert state()[0] == state()[1]
        pushed = as_user("journal", "git", "-C", str(elsewhere), "rev-parse", "HEAD").stdout
        assert (pushed == state()[0]) == (status == 0)
    (JOURNAL / ".env").write_text(settings, "utf-8")
    as_user("journal", "sh", "-c", "rm -rf .git/hooks var/elsewhere.git var/trap")
    undo = (
        "for name in core.fsmonitor push.gpgSign core.sshCommand; do git config --unset $name; done"
    )
    as_user("journal", "sh", "-c", undo)
    tidy = ("env", f"HOME={HOME}", "git", "-C", str(BARE), "repack", "-adq")
    assert as_user("journal-git", *tidy).returncode == 0
    git("pull", "--quiet", "--ff-only")


HOSTILE: Mapping[str, Files] = {
    "no links": {"content/a.md": ("120000", b"/etc/passwd")},
    "no links,": {"content/aside": ("120000", b"/etc")},
    "a push brings files of the content": {"content/sub": ("160000", b"")},
    "names that begin with a dot": {"content/.htaccess": ("100644", b"")},
    "begin with a dot": {"content/.a/b.md": ("100644", b"")},
    "content alone": {"pelicanconf.py": ("100644", b"import os\n")},
    "settings, theme": {"theme/templates/base.html": ("100644", b"{{ 1 }}")},
    "theme and plugins": {"plugins/a.py": ("100644", b"import os\n")},
    "content alone,": {".env": ("100644", b"SMTP_URL=smtp://evil.example\n")},
    "brings files": {".gitattributes": ("100644", b"* filter=evil\n")},
    "a push brings": {".github/workflows/a.yml": ("100644", b"on: push\n")},
    "push brings": {"var/edge.db": ("100644", b"")},
    "deploy --trust-settings": {"build/current/site/index.html": ("100644", b"")},
    "rename them: content/a\\x0ab.md": {"content/a\nb.md": ("100644", b"")},
    "rename them: content/a\\x1bb.md": {"content/a\x1bb.md": ("100644", b"")},
    "go: content.md, contents/a.md": {
        "content.md": ("100644", b""),
        "contents/a.md": ("100644", b""),
    },
    "and 256 MiB at most": {"content/huge.bin": ("100644", bytes(300 * 1024 * 1024))},
    "File name too long": {f"content/{'a' * 256}.md": ("100644", b"")},
}


def push_badly(deploy: str, folder: Path) -> None:
    """See every hostile push refused, with both repositories and the journal as they were."""
    git("fetch")
    before, refused = state(), 0
    for reason, files in HOSTILE.items():
        said = say(try_git("push", "origin", f"{write(files)}:main"))
        assert "rejected" in said, said
        assert reason.lower() in said.lower(), (reason, said)
        refused += 1
    blob = git("hash-object", "-w", "--stdin", given=b"[core]\n\tfsmonitor = evil\n")
    tree = git("mktree", given=f"100644 blob {blob}\tconfig\n".encode())
    for name in (".git", ".GIT", "git~1", "..", "a", "posts"):
        entry = f"120000 blob {blob}" if name == "posts" else f"040000 tree {tree}"
        inner = git("mktree", given=f"{entry}\t{name}\n".encode())
        outer = git("mktree", given=f"040000 tree {inner}\tcontent\n".encode())
        commit = git("commit-tree", outer, "-p", "origin/main", given=b"All is new")
        assert "rejected" in say(try_git("push", "origin", f"{commit}:main"))
        refused += 1
    good = write({"content/posts/good.md": ("100644", POST.format("good", "A.", "B.").encode())})
    loose = git("commit-tree", f"{good}^{{tree}}", given=b"Without a past")
    for words in (
        (f"+{loose}:main",),
        ("+origin/main~1:main",),
        (":main",),
        (f"{good}:refs/heads/other",),
        (f"{good}:refs/tags/v1",),
        (f"{good}:refs/heads/main", f"{good}:refs/heads/other"),
        (f"{good}:refs/meta/config",),
        ("--atomic", f"{good}:main", f"{good}:refs/replace/{good}"),
    ):
        said = say(try_git("push", "origin", *words))
        assert "rejected" in said or "refused" in said, said
        refused += 1
    assert state() == before
    refused += reach_further(good)
    assert state() == before

    (JOURNAL / "content/posts").rename(JOURNAL / "content/aside")
    (JOURNAL / "content/posts").symlink_to("/srv")
    assert "are links or folders there" in say(try_git("push", "origin", f"{good}:main"))
    assert not Path("/srv/good.md").exists()
    (JOURNAL / "content/posts").unlink()
    (JOURNAL / "content/aside").rename(JOURNAL / "content/posts")
    assert state() == before
    print(f"{refused + 1} hostile pushes, 0 taken")

    settings = (JOURNAL / "pelicanconf.py").read_bytes() + b"# pushed\n"
    trusted = write({"pelicanconf.py": ("100644", settings)})
    run_block(f"{deploy.rstrip()} --trust-settings\n", folder, b"")
    assert try_git("push", "origin", f"{trusted}:main").returncode == 0
    assert (JOURNAL / "pelicanconf.py").read_bytes() == settings
    assert "rejected" in say(try_git("push", "origin", f"{write({'.env': ('100644', b'')})}:main"))
    run_block(deploy, folder, b"")
    again = write({"theme/a.html": ("100644", b"")}, base=trusted)
    assert "rejected" in say(try_git("push", "origin", f"{again}:main"))


def reach_further(good: str) -> int:
    """See that the repository's user has no right but that repository; return the attempts."""
    attempts = 0
    ssh = [*SSH.split(), ADDRESS]
    for command in (
        "id",
        "git-upload-pack '/srv/journal'",
        "git-receive-pack '/srv/journal'",
        "git-receive-pack '/srv/journal/.git'",
        "git-shell-commands/id",
        "git upload-pack --upload-pack=id /srv/journal.git",
        "scp -t /tmp",
        "",
    ):
        ended = subprocess.run(
            [*ssh, *filter(None, [command])], check=False, capture_output=True, input=b""
        )
        assert ended.returncode != 0, (command, ended.stdout)
        assert b"uid=" not in ended.stdout
        attempts += 1
    forward = [*SSH.split(), "-W", "127.0.0.1:8000", ADDRESS]
    ended = subprocess.run(
        forward, check=False, capture_output=True, input=b"GET / HTTP/1.0\r\n\r\n"
    )
    assert b"HTTP" not in ended.stdout
    for user in ("journal", "journal-git"):
        for place in (BARE / "hooks/pre-receive", BARE / "config", HOME, HOME / ".ssh"):
            assert as_user(user, "test", "-w", str(place)).returncode == 1
            assert as_user(user, "mv", str(place), f"{place}.former").returncode == 1
        assert as_user(user, "rm", "-rf", str(BARE / "hooks")).returncode == 1
    assert as_user("journal-git", "test", "-r", f"{JOURNAL}/.env").returncode == 1
    assert as_user("nobody", "test", "-w", str(SOCKET)).returncode == 1
    # Past the hook, straight to the journal.
    for sent in (
        b"",
        b"x" * 40,
        good.encode(),
        good.encode() + b"PACK",
        b"--output=/srv/journal/x",
    ):
        with socket.socket(socket.AF_UNIX) as journal:
            journal.connect(str(SOCKET))
            journal.sendall(sent)
            journal.shutdown(socket.SHUT_WR)
            said = journal.makefile("rb").read()
        assert b"\0" not in said, said
        assert b"Traceback" not in said
        attempts += 1
    return attempts + 1


def main() -> None:
    """Deploy with `--git`, and push."""
    page, folder, _, libraries = map(Path, sys.argv[1:])
    deploy, *after = prepare(page, folder, libraries)
    run_block(deploy, folder)
    for words in ("--git-key x", "--git --git-key 'ssh-ed25519 AAAA\n ssh-rsa AAAA'"):
        run_block(f"{deploy.rstrip()} {words}\n", folder, b"", "is no public key")
    for words in ("--trust-settings", "--git-key 'ssh-ed25519 AAAAC3'"):
        run_block(f"{deploy.rstrip()} {words}\n", folder, b"", "belong to --git: name that too")
    assert not BARE.exists()
    (block,) = (each for each in after if "--git-key" in each)
    run_block(block, folder)
    make_key = ["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(KEY)]
    subprocess.run(make_key, check=True)
    key = KEY.with_suffix(".pub").read_text("utf-8").strip()
    run_block(f"{deploy.rstrip()} --git --git-key '{key}'\n", folder, b"")
    run_block(f"{deploy.rstrip()} --git-key '{key}'\n", folder, b"")
    keys = (HOME / ".ssh/authorized_keys").read_text("utf-8").splitlines()
    assert len(keys) == 2
    assert keys[1] == f"restrict {key}"

    Path("/run/sshd").mkdir()
    subprocess.run(["/usr/sbin/sshd"], check=True)
    take_connections()
    listening = socket.create_server(("127.0.0.1", 8000), backlog=1024)
    start("fore-edge", listening)
    start("fore-edge-publish")
    subprocess.run(["/usr/sbin/nginx"], check=True)
    origin = f"https://{DOMAIN}"
    wait_for(lambda: fetch(f"{origin}/")[0] == 200, "the first page is served")
    git("clone", "--quiet", f"{ADDRESS}:{BARE}", str(CLONE), folder=Path("/srv"))
    assert git("ls-files", ".env", "var") == ""
    with carrying_commits():
        push_well(origin)
    work_on_both_sides()
    push_on()
    push_badly(deploy, folder)
    print("deployed")


if __name__ == "__main__":
    main()
