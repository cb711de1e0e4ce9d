"""The stage of a play: a built site, a store with credentials, and edges that serve both."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from shutil import copytree
from subprocess import PIPE
from typing import Any, Protocol

from joserfc.jwk import ECKey, KeySet

from tests.edge.edge_process import ROOT, Installation, free_port
from tests.patience import patience

CONTENT = Path(__file__).parent / "content"
NOW = "2025-06-01T00:00:00Z"
SITE_URL = "http://journal.test"
SECRET_KEY = "the secret of a replay, which is no secret"
HOOK_SECRET = "whsec_" + "c2VjcmV0" * 4
ALL = "posts:read stats:read leads:read leads:write admin:read admin:write mcp"
LARGE = "large.txt"
"""A file of the site that is too large to be kept in memory."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "all": ("--scopes", ALL),
    "posts": ("--scopes", "posts:read"),
    "leads": ("--scopes", "leads:read leads:write"),
    "no admin": ("--scopes", "posts:read stats:read leads:read leads:write mcp"),
    "reading": ("--scopes", "admin:read"),
    "writing": ("--scopes", "admin:write"),
    "one table": ("--scopes", ALL, "--tables", "suppressed_emails"),
    "revoked": ("--scopes", ALL),
    "token": ("--scopes", ALL, "--type", "access_token"),
    "reader token": ("--scopes", "mcp posts:read", "--type", "access_token"),
    "bare token": ("--scopes", "mcp", "--type", "access_token"),
    "draft": ("--scopes", "posts:draft"),
    "editor": ("--scopes", "posts:publish"),
    "draft token": ("--scopes", "mcp posts:draft", "--type", "access_token"),
    "editor token": ("--scopes", "mcp posts:publish", "--type", "access_token"),
    "one table token": ("--scopes", ALL, "--tables", "suppressed_emails", "--type", "access_token"),
}
"""The keys that walks use, and how each is issued."""
CALLBACK = "https://client.example/callback"
CLIENTS: Mapping[str, tuple[str, ...]] = {
    "app": ("--redirect-uri", CALLBACK, "--scopes", ALL),
    "two": ("--redirect-uri", CALLBACK, "--redirect-uri", f"{CALLBACK}/2"),
    "local": ("--redirect-uri", "http://127.0.0.1:8765/callback"),
    "cursor": ("--redirect-uri", "cursor://callback"),
    "robot": ("--scopes", "posts:read stats:read leads:read admin:write mcp"),
    "poster": ("--auth", "client_secret_post", "--scopes", "posts:read"),
    "signer": (
        "--auth",
        "private_key_jwt",
        "--scopes",
        "posts:read stats:read mcp",
        "--jwks",
        "jwks.json",
    ),
}
"""The OAuth clients that walks use, and how each is registered."""

LIMITLESS = {
    f"RATE_{name}": "0"
    for name in (
        "LEADS",
        "LEADS_ATTEMPTS",
        "AUTHENTICATED",
        "FAILED_AUTH",
        "TOKEN",
        "ANALYZE",
        "SEARCH",
    )
}
KINDS: Mapping[str, Mapping[str, str]] = {
    "plain": {**LIMITLESS, "EMAIL_HOOK_SECRET": HOOK_SECRET},
    "limited": {"TRUSTED_PROXIES": "127.0.0.1/32"},
    "tight": {
        "RATE_LEADS": "2/hour",
        "RATE_LEADS_ATTEMPTS": "4/hour",
        "RATE_AUTHENTICATED": "3/hour",
        "RATE_FAILED_AUTH": "2/hour",
        "RATE_TOKEN": "2/hour",
        "RATE_ANALYZE": "1/hour",
        "RATE_SEARCH": "2/hour",
        "TRUSTED_PROXIES": "127.0.0.1/32",
    },
    "closed": {
        **LIMITLESS,
        "SITE_URL": "https://journal.example",
        "LEADS_REQUIRE_CREDENTIAL": "true",
        "ANALYZE_FETCH": "off",
        "ACCESS_REQUESTS": "off",
    },
    "loopback": {**LIMITLESS, "SITE_URL": "http://localhost:8000"},
    "empty": {**LIMITLESS, "BUILD_DIR": "nothing"},
    "writing": {**LIMITLESS, "WRITING": "on", "BUILD_DIR": "builds"},
    "mail": {
        **LIMITLESS,
        "EMAIL_HOOK_SECRET": HOOK_SECRET,
        "OWNER_EMAIL": "owner@journal.example",
        "SMTP_URL": "smtp://127.0.0.1:9",
        "ACKNOWLEDGE_LEADS": "true",
        "MAIL_DISPATCHER": "off",
    },
    "newsletter": {
        **LIMITLESS,
        "SITE_URL": "https://journal.example",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "post@journal.example",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street",
        "OWNER_EMAIL": "owner@journal.example",
        "SMTP_URL": "smtp://127.0.0.1:9",
        "MAIL_DISPATCHER": "off",
        "RATE_SUBSCRIBE": "0",
    },
}
"""The settings of each kind of edge; what is not said has its default."""


class Engine(Protocol):
    """The engine on which stores are."""

    def template(self, folder: Path) -> str:
        """Return the URL of the store that others are copies of."""

    def copy(self, folder: Path) -> str:
        """Return the URL of a new copy of it, below a folder."""


class Sqlite:
    """Stores in files."""

    def __init__(self) -> None:
        self._template = Path()

    def template(self, folder: Path) -> str:
        """Return the URL of the store that others are copies of."""
        self._template = folder / "store"
        self._template.mkdir()
        return f"sqlite:///{self._template}/edge.db"

    def copy(self, folder: Path) -> str:
        """Return the URL of a new copy of it, below a folder."""
        copytree(self._template, folder / "store")
        return f"sqlite:///{folder}/store/edge.db"


class Postgres:
    """Stores in a server, which is `tests.edge.postgresql.PostgreSQL`."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._template = ""

    def template(self, folder: Path) -> str:  # noqa: ARG002  it is in the server
        """Return the URL of the store that others are copies of."""
        self._template = self._server.make_empty()
        return str(self._server.url(self._template))

    def copy(self, folder: Path) -> str:  # noqa: ARG002  likewise
        """Return the URL of a new copy of it."""
        words = f"TEMPLATE {self._template} STRATEGY file_copy"
        return str(self._server.url(self._server.make_empty(words)))


def build_site(output: Path) -> None:
    """Build the journal of the replay with the product's own command, and add a large file."""
    options = {
        "--content": CONTENT,
        "--output": output,
        "--site-url": SITE_URL,
        "--now": NOW,
        "--jobs": 1,
    }
    words = [str(word) for option in options.items() for word in option]
    command = [sys.executable, "-m", "site_build", "build", *words]
    environment = {**os.environ, "ACCESS_REQUESTS": "on"}
    subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=patience(600)
    )
    (output / "current" / "site" / LARGE).write_text("A line of a large file.\n" * 60_000)


@dataclass
class Stage:
    """One engine with its template store, and the site that all edges serve."""

    engine: Engine
    folder: Path
    builds: Path
    secrets: dict[str, str] = field(default_factory=dict)
    """The keys by their names, and the secrets of clients."""
    clients: dict[str, str] = field(default_factory=dict)
    """The ids of OAuth clients."""
    ids: dict[str, str] = field(default_factory=dict)
    """The ids of keys."""
    signing_key: Any = None
    """Signs for the client `signer`."""
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def site(self) -> Path:
        """The folder of the files that are served."""
        return self.builds / "current" / "site"

    def prepare(self) -> None:
        """Make the template store, with the credentials that walks use."""
        made = self._installation("plain", self.engine.template(self.folder), self.folder)
        self.signing_key = ECKey.generate_key("P-256", {"kid": "replay"})
        jwks = KeySet([self.signing_key]).as_dict(private=False)
        (self.folder / "jwks.json").write_text(json.dumps(jwks))
        issued = [["keys", "issue", "--name", name, *words] for name, words in KEYS.items()]
        registered = [
            ["clients", "register", "--name", name, *words] for name, words in CLIENTS.items()
        ]
        commands = [[*words, "--json"] for words in (*issued, *registered)]
        printed = iter(run_all(made, [["migrate"], *commands])[1:])
        for name in KEYS:
            answer = json.loads(next(printed))
            self.secrets[name], self.ids[name] = answer["key"], answer["id"]
        for name in CLIENTS:
            answer = json.loads(next(printed))
            self.clients[name] = answer["client_id"]
            if answer.get("client_secret"):
                self.secrets[f"{name} secret"] = answer["client_secret"]
        run_all(made, [["keys", "revoke", self.ids["revoked"]]])

    @contextmanager
    def edge(self, kind: str) -> Iterator[Installation]:
        """Serve a fresh copy of the template from an edge of some kind."""
        folder = self.folder / f"edge-{next(self._numbers)}"
        folder.mkdir()
        (folder / "builds").symlink_to(self.builds)
        installed = self._installation(kind, self.engine.copy(folder), folder)
        with (folder / "log").open("w") as log, installed.start("serve", stderr=log) as process:
            try:
                assert process.stdout is not None
                if not process.stdout.readline():
                    raise RuntimeError(f"the edge does not start: {(folder / 'log').read_text()}")
                if "WRITING" in installed.settings:
                    with self._writing(installed):
                        yield installed
                else:
                    yield installed
            finally:
                process.kill()

    @contextmanager
    def _writing(self, installed: Installation) -> Iterator[None]:
        """Run the process that writes in a copy of the content, which is in a repository of git."""
        content = copytree(CONTENT, installed.folder / "content")
        people = [
            f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        ]
        for words in (
            ["init", "--quiet"],
            ["add", "content"],
            ["commit", "--quiet", "-m", "Begin"],
        ):
            subprocess.run(
                ["git", *words],  # noqa: S607
                cwd=installed.folder,
                env={**installed.environment, **dict.fromkeys(people, "owner")},
                check=True,
            )
        given = (str(content), installed.settings["BUILD_DIR"], SITE_URL)
        process = installed.start(*given, module="site_build.writing.process", stdin=PIPE)
        with process:  # at the end it gets the end of its standard input
            self._await_texts(int(installed.settings["PORT"]))
            yield

    def _await_texts(self, port: int) -> None:
        """Wait until a check knows all texts, as that of a link to none of them shows."""
        deadline = time.monotonic() + patience()
        markdown = "---\ntitle: A\ndate: 2025-01-01\n---\n\n[A link](/journal/none/).\n"
        text = json.dumps({"markdown": markdown})
        key = {"X-API-Key": self.secrets["draft"]}
        headers = {"Host": "journal.test", "Content-Type": "application/json", **key}
        body = b""
        while b"/journal/none/" not in body:
            if time.monotonic() > deadline:
                raise RuntimeError(f"nobody writes: {body.decode()}")
            time.sleep(0.1)
            connection = HTTPConnection("127.0.0.1", port, timeout=patience())
            connection.request("POST", "/api/public/v1/sources/check", text, headers)
            body = connection.getresponse().read()
            connection.close()

    def fixed_names(self) -> dict[str, str]:
        """Return the names of all that was made for this stage alone."""
        named = {secret: f"<{name}>" for name, secret in self.secrets.items()}
        named |= {text: f"<client {name}>" for name, text in self.clients.items()}
        named |= {text: f"<id of {name}>" for name, text in self.ids.items()}
        return {**named, str(self.folder): "<folder>"}

    def _installation(self, kind: str, url: str, folder: Path) -> Installation:
        settings = {
            "SITE_URL": SITE_URL,
            "DATABASE_URL": url,
            "SECRET_KEY": SECRET_KEY,
            "BUILD_DIR": str(self.builds),
            "PORT": str(free_port()),
            "TZ": "UTC",
            "ACCESS_REQUESTS": "on",
            **KINDS[kind],
        }
        return Installation(folder, settings)


def run_all(installed: Installation, commands: list[list[str]]) -> list[str]:
    """Return what each of the commands prints. Raises CalledProcessError if one fails."""
    program = Path(__file__).with_name("commands.py")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=installed.folder,
        env=installed.environment,
        input=json.dumps(commands),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=patience(600),
    )
    printed: list[str] = json.loads(done.stdout)
    return printed
