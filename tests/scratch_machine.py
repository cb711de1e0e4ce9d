"""The machine of test_deploy.py's programs: a scratch root, where blocks of a page are run.

The programs run as root, in namespaces of their own.
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
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from tests.patience import patience

DOMAIN = "journal.example"
JOURNAL = Path("/srv/journal")
PROGRAMS = Path("/usr/local/lib/fore-edge")
UNITS = Path("/etc/systemd/system")
CERTIFICATE = Path(f"/etc/letsencrypt/live/{DOMAIN}")
BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANSWER = b"maildir:/srv/journal/var/mail\n"
"""The answer to the question of `fore-edge deploy` for SMTP_URL."""
TOOLS = Path("/srv/tools")
"""Comes first on the PATH."""
PATIENCE = patience(180.0)
"""Seconds until waiting is given up; nothing is measured by it."""


def bring_loopback_up() -> None:
    """Do what `ip link set lo up` does (SIOCSIFFLAGS, netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))


def make_certificate(domain: str = DOMAIN, *others: str) -> None:
    """Make the certificate that Certbot would have fetched, for a domain and other names."""
    folder = CERTIFICATE.parent / domain
    folder.mkdir(parents=True, exist_ok=True)
    key, chain = folder / "privkey.pem", folder / "fullchain.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "60"]
    alternatives = ",".join(f"DNS:{each}" for each in (domain, *others))
    names = ["-subj", f"/CN={domain}", "-addext", f"subjectAltName={alternatives}"]
    subprocess.run(
        [*command, *names, "-keyout", key, "-out", chain], check=True, capture_output=True
    )


class Stay(HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: object) -> None:
        """Return none."""


def fetch(url: str, data: bytes | None = None, key: str = "") -> tuple[int, str]:
    """Return status and text of an answer; of a redirect, where it leads."""
    context = ssl.create_default_context()
    for chain in CERTIFICATE.parent.glob("*/fullchain.pem"):
        context.load_verify_locations(chain)
    headers = {"Content-Type": "application/json"} | ({"X-API-Key": key} if key else {})
    request = Request(url, data, headers)  # noqa: S310
    try:
        with build_opener(Stay, HTTPSHandler(context=context)).open(
            request, timeout=PATIENCE
        ) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.headers["Location"] or error.read().decode()


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


def start(
    unit: str, listening: socket.socket | None = None, *, streams: socket.socket | None = None
) -> "subprocess.Popen[bytes]":
    """Start what a unit starts, as its user and in its folder, with its socket as descriptor 3.

    The connection `streams` is its standard input and output.
    """
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    text = (UNITS / f"{unit}.service").read_text("utf-8")
    read.read_string(text)
    service = read["Service"]
    user = service["User"]
    leave = f"setpriv --reuid={user} --regid={user} --init-groups"
    lines = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    commands = [f"{leave} {line.partition('=')[2].replace('$$', '$')}" for line in lines]
    command = " && ".join([*commands[:-1], f"exec {commands[-1]}"])
    descriptors: tuple[int, ...] = ()
    if listening:
        descriptors = (listening.fileno(),)
        command = f"exec 3<&{descriptors[0]}; export LISTEN_FDS=1 LISTEN_PID=$$; {command}"
    return subprocess.Popen(
        ["/bin/bash", "--norc", "-c", command],
        cwd=service["WorkingDirectory"],
        umask=int(service["UMask"], 8),
        pass_fds=descriptors,
        stdin=streams.fileno() if streams else None,
        stdout=streams.fileno() if streams else None,
        env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
    )


def run_block(block: str, folder: Path, typed: bytes = ANSWER, refused: str = "") -> str:
    """Run a block of the page as a shell would; return what it prints.

    It must succeed, or be refused with a sentence that holds `refused`.
    """
    print(f"$ {block}", end="", flush=True)
    environment = {
        "PATH": f"{TOOLS}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
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


def prepare(page: Path, folder: Path, libraries: Path) -> list[str]:
    """Make what the page does not: network, certificate, Python; return all blocks after the first.

    The first one, which installs the program, is run.
    """
    bring_loopback_up()
    with Path("/etc/hosts").open("a", encoding="utf-8") as hosts:
        hosts.write(f"127.0.0.1 localhost {DOMAIN}\n")
    make_certificate()
    TOOLS.mkdir()
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (TOOLS / "python3").symlink_to(base)
    for parent in base.parents:  # Python may be in a home that the journal's user cannot enter
        parent.chmod(parent.stat().st_mode | 0o111)
    install, *others = BLOCK.findall(page.read_text(encoding="utf-8"))
    run_block(install, folder)
    (packages,) = PROGRAMS.glob("*/lib/*/site-packages")
    (packages / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return others
