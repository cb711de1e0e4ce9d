"""A real IMAP server of the tests' own: Debian's Dovecot, with one mailbox in a folder."""

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from imaplib import IMAP4, IMAP4_SSL
from pathlib import Path
from ssl import create_default_context
from typing import Any, Final

from tests.edge.certificates import write_certificate
from tests.edge.edge_process import ROOT, free_port
from tests.patience import patience

PASSWORD: Final = "a p@ss/word of 100%, \u00fc"
QUOTED_PASSWORD: Final = "a%20p%40ss%2Fword%20of%20100%25,%20%C3%BC"
_CONFIGURATION: Final = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
ssl = yes
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
mail_location = maildir:{folder}/mail
mail_uid = {user}
mail_gid = {group}
first_valid_uid = 0
first_valid_gid = 0
mail_max_userip_connections = 100
auth_failure_delay = 0
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
passdb {{
  driver = passwd-file
  args = username_format=%u {folder}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/home
}}
"""


class ImapServer:
    """A server that can be stopped and started again; it keeps its messages meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.tls_port = free_port(), free_port()
        self.certificate, _ = write_certificate(folder)
        self._process: subprocess.Popen[bytes] | None = None
        user, group = ("nobody", "nogroup") if os.geteuid() == 0 else (getpass.getuser(),) * 2
        names = {"folder": folder, "user": user, "group": group}
        ports = {"port": self.port, "tls_port": self.tls_port}
        (folder / "dovecot.conf").write_text(_CONFIGURATION.format(**names, **ports))
        self.set_password(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(folder, user, group)
            folder.chmod(0o755)

    def set_password(self, password: str) -> None:
        """Let the mailbox have another password."""
        (self.folder / "users").write_text(f"ann@work:{{PLAIN}}{password}::::::\n")

    def url(self, scheme: str = "imaps", folder: str = "", password: str = QUOTED_PASSWORD) -> str:
        """Return what `MAILBOX_URL` says of it."""
        port = self.tls_port if scheme == "imaps" else self.port
        return f"{scheme}://ann%40work:{password}@localhost:{port}{folder}"

    def start(self) -> None:
        """Start, and return when it answers."""
        found = subprocess.run(
            [ROOT / "tools/provide", "dovecot"], check=True, capture_output=True, text=True
        )
        command = [found.stdout.strip(), "-F", "-c", str(self.folder / "dovecot.conf")]
        with (self.folder / "said").open("ab") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said)
        for _ in range(round(patience(60) / 0.05)):
            try:
                IMAP4("127.0.0.1", self.port, 5).logout()
            except (OSError, IMAP4.error):
                assert self._process.poll() is None, (self.folder / "said").read_text()
            else:
                return
        raise TimeoutError((self.folder / "log").read_text())

    def end(self) -> None:
        """End with all its processes."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    @contextmanager
    def opened(self, folder: str = "INBOX") -> Iterator[IMAP4]:
        """Give a connection as a mail program has it."""
        trust = create_default_context(cafile=self.certificate)
        client = IMAP4_SSL("localhost", self.tls_port, ssl_context=trust, timeout=60)
        client.authenticate("PLAIN", lambda _: f"\0ann@work\0{PASSWORD}".encode())
        client.select(f'"{folder}"')
        try:
            yield client
        finally:
            client.logout()

    def put(self, *messages: bytes, folder: str = "INBOX") -> None:
        """Add messages to a folder, as a delivery does."""
        with self.opened() as client:
            for message in messages:
                said, _ = client.append(f'"{folder}"', "", None, message)
                assert said == "OK"

    def flags(self, folder: str = "INBOX") -> Sequence[str]:
        """Return the flags of all messages, in order."""
        with self.opened(folder) as client:
            found: Any = client.fetch("1:*", "(FLAGS)")[1]
        return [each.decode().partition("FLAGS (")[2].partition(")")[0] for each in found if each]


@contextmanager
def serving_imap() -> Iterator[ImapServer]:
    """Give a running server, and leave nothing of it."""
    # Not in a folder of pytest's: root's are closed to the user whom mail belongs to.
    folder = Path(tempfile.mkdtemp(prefix="fore-edge-imap-"))
    server = ImapServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.end()
        shutil.rmtree(folder)
