"""A served journal whose reference is read over HTTP, and what its examples take from a reader."""

import json
import os
import re
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest

from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from edge_api.schema.paths import DOCS_PAGES, REQUEST_ACCESS, TOKEN
from tests.content.fences import Fence, read_fences
from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import Headers, Installation, ServedEdge, free_port
from tests.edge.writing_process import writing
from tests.patience import patience
from tools.judges import NODE

_SECTION = re.compile(r'^<a id="(\w+)"></a>$', re.MULTILINE)
_NO_LIMITS = ("LEADS", "LEADS_ATTEMPTS", "ANALYZE", "AUTHENTICATED", "TOKEN")
_ALL = " ".join((*SCOPES, PUBLISH_WITH_ENQUIRIES))
_TOKEN_OPTIONS = ("--type", "access_token", "--scopes", "mcp posts:read")
_JSON = {"Content-Type": "application/json"}
_COMMANDS = {"bash": ("bash", "-eu"), "python": ("python",), "js": (str(NODE),)}
_ENDINGS = {"bash": "sh", "python": "py", "js": "mjs"}


@dataclass(frozen=True)
class Reader:
    """A reader of the reference who runs its examples."""

    edge: ServedEdge
    folder: Path
    environment: Mapping[str, str]

    def page(self, path: str, headers: Headers | None = None) -> str:
        """Return a page, which must be there."""
        status, _, body = self.edge.get(path, headers)
        assert status == 200, body
        return body.decode()

    def examples(self, language: str) -> Iterator[tuple[str, Fence]]:
        """Yield the examples in a language, each with the operation's name, page after page."""
        for path in DOCS_PAGES:
            names_and_texts = _SECTION.split(self.page(f"{path}index.md"))[1:]
            for name, text in zip(names_and_texts[::2], names_and_texts[1::2], strict=True):
                for fence in read_fences(text):
                    if fence.language == language:
                        yield name, fence

    def run(self, name: str, fence: Fence) -> tuple[str, str]:
        """Run an example unchanged; return the status it got, and all that it printed.

        Where it is told to come again later (503), as by a busy machine, it does.
        """
        deadline = time.monotonic() + patience()
        while True:
            process = self._start(name, fence)
            printed = process.stdout + process.stderr
            words = process.stdout.split()
            status = words[-1 if fence.language == "bash" else 0] if words else ""
            is_later = status == "503" or "HTTP Error 503" in printed
            if not is_later or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert process.returncode == 0, f"{name}: {printed}"
        return status, printed

    def _start(self, name: str, fence: Fence) -> subprocess.CompletedProcess[str]:
        # A folder of its own: the edge would take `mcp.py` beside it for a library.
        folder = self.folder / "examples"
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.{_ENDINGS[fence.language]}"
        file.write_text(fence.code, encoding="utf-8")
        return subprocess.run(
            [*_COMMANDS[fence.language], file.name],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patience(),
            check=False,
        )

    def documented(self) -> Mapping[str, list[str]]:
        """Return the statuses of success of every operation, by its name."""
        document = json.loads(self.page("/api/public/v1/openapi.json"))
        return {
            entry["operationId"]: [status for status in entry["responses"] if status < "300"]
            for methods in document["paths"].values()
            for entry in methods.values()
            if isinstance(entry, dict) and "operationId" in entry
        }


@contextmanager
def read_reference(folder: Path) -> Iterator[Reader]:
    """Serve a journal that can be written from `folder` to a reader who holds every credential."""
    port = free_port()
    site_url, content = f"http://127.0.0.1:{port}", folder / "content"
    copytree(CONTENT, content)
    run_build(content, folder / "build", site_url=site_url)
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{folder}/var/edge.db",
        "BUILD_DIR": str(folder / "build"),
        "ACCESS_REQUESTS": "on",
        "WRITING": "on",
        # Its operations are in the reference only if it is on. Nothing listens at the relay.
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "post@journal.example",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Fore Edge Lane, London",
        "OWNER_EMAIL": "owner@journal.example",
        "SMTP_URL": f"smtp://127.0.0.1:{free_port()}",
        **{f"RATE_{name}": "0" for name in _NO_LIMITS},
    }
    installation = Installation(folder, settings)
    process = writing(folder / "var", content, folder / "build", site_url)
    with installation.serving() as edge, process:
        key = _issue(installation, "keys", "issue", "--name", "Reader", "--scopes", _ALL)["key"]
        # What curl prints is the body alone, unless its user has asked for more.
        (folder / ".curlrc").write_text('silent\nwrite-out = "\\n%{http_code}"\n')
        yield Reader(edge, folder, {**_credentials(installation, edge), "KEY": key})


def _credentials(installation: Installation, edge: ServedEdge) -> Mapping[str, str]:
    """Return what the examples take from the environment, each of it issued by this edge."""
    client = _issue(installation, "clients", "register", "--name", "Reader", "--scopes", "mcp")
    agent = _issue(installation, "keys", "issue", "--name", "Agent", *_TOKEN_OPTIONS)
    asked = _post(edge, REQUEST_ACCESS, b'{"type": "api_key", "name": "A", "purpose": "Read."}')
    pair = f"{client['client_id']}:{client['client_secret']}".encode()
    form = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Authorization": f"Basic {b64encode(pair).decode()}",
    }
    granted = _post(edge, TOKEN, b"grant_type=client_credentials", form)
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(installation.folder),
        "CLIENT_ID": client["client_id"],
        "CLIENT_SECRET": client["client_secret"],
        "ACCESS_TOKEN": agent["key"],
        "CLAIM_TOKEN": asked["claim_token"],
        "TOKEN": granted["access_token"],
    }


def _issue(installation: Installation, *words: str) -> dict[str, str]:
    status, said, complained = installation.run(*words, "--json")
    assert status == 0, complained
    return dict(json.loads(said))


def _post(edge: ServedEdge, path: str, body: bytes, headers: Headers = _JSON) -> dict[str, str]:
    status, _, answer = edge.post(path, body, headers)
    assert status < 300, answer
    return dict(json.loads(answer))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Return a reader of a served journal."""
    with read_reference(tmp_path_factory.mktemp("reference")) as one:
        yield one
