"""What the edge and its peers stand on: built sites, stores with leads, and edges over them.

Each is made once in a run, in a folder of the run's own; no two servers share a database.
"""

import asyncio
import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from benchmarks.corpus import write_posts
from benchmarks.leads import fill
from benchmarks.server import BOTH_CORES, Served, Took, free_port, look, pinned, python, served
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES

POSTS: Final = 50
"""So many that their list has some 28 kB."""
SIZES: Final = (100, 1_000, 10_000)
"""Posts of the sites on which growth is measured."""
MINUTES: Final = 20.0
"""Of mixed load, after which memory is measured."""
LEADS: Final = 10_000
MANY_LEADS: Final = 1_000_000
API: Final = "/api/public/v1"
MCP: Final = "/api/public/mcp"
PING: Final = "/api/public/ping"
SITE_URL: Final = "http://127.0.0.1:8000"
LEAD: Final = json.dumps(
    {
        "name": "Reader {n}",
        "email": "reader{n}@example.com",
        "budget_tier": "starter",
        "message": "An enquiry, number {n}.",
    }
)
"""The body of a new lead. Each has another number: the edge scores a repeated lead as spam."""


def installation(folder: Path, port: int) -> dict[str, str]:
    """Return the settings of an edge in a folder of its own, behind a proxy on this machine.

    Limits by address hold, since each request comes from another address; the limit by credential
    does not, since one key sends all requests that need one.
    """
    return {
        "RATE_AUTHENTICATED": "0",
        "TRUSTED_PROXIES": "127.0.0.1",
        "PORT": str(port),
        "BUILD_DIR": str(folder / "build"),
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
    }


@dataclass(frozen=True, slots=True)
class Edge:
    """A running edge, and a credential for each of its doors."""

    server: Served
    key: str
    token: str
    took: Took
    """Its start, to the first page."""

    @property
    def keyed(self) -> Mapping[str, str]:
        """The header that opens the API."""
        return {"X-API-Key": self.key}

    @property
    def keys(self) -> Mapping[str, str]:
        """The setting by which the peer honours the same key."""
        return {"KEYS": sha256(self.key.encode()).hexdigest()}

    def get(self, path: str) -> bytes:
        """Return what the API answers."""
        url = f"{self.server.origin}{API}{path}"
        request = Request(url, headers=dict(self.keyed))  # noqa: S310  our own
        with urlopen(request, timeout=30) as answer:  # noqa: S310  likewise
            return bytes(answer.read())

    def slugs(self) -> list[str]:
        """Return the slugs of all posts."""
        return [str(post["slug"]) for post in json.loads(self.get("/posts"))["posts"]]


class Ground:
    """The prepared parts of one run; what a folder holds from an earlier run is taken as it is."""

    def __init__(
        self,
        folder: Path,
        sizes: Sequence[int] = SIZES,
        minutes: float = MINUTES,
        **changes: str,
    ) -> None:
        """Take settings of its edges that differ from those of `installation`."""
        self.folder = folder
        self.sizes = sizes
        self.minutes = minutes
        self._changes = changes

    def site(self, posts: int = POSTS) -> Path:
        """Return the BUILD_DIR of a site with so many posts."""
        home = self.folder / f"site-{posts}"
        if not (home / "build" / "current").exists():
            shutil.rmtree(home, ignore_errors=True)
            write_posts(home / "content", posts)
            words = ["--content", str(home / "content"), "--output", str(home / "build")]
            python("-m", "site_build", "build", *words, "--site-url", SITE_URL)
        return home / "build"

    def leads(self, count: int) -> Path:
        """Return a database with so many leads: to be copied, never to be served itself."""
        file = self.folder / f"leads-{count}.db"
        if not file.exists():
            draft = self.folder / "filling.db"
            asyncio.run(fill(draft, count))
            draft.rename(file)
        return file

    def database(self, name: str, leads: int) -> Path:
        """Return a new database for one server, with so many leads."""
        home = self.folder / name
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        shutil.copyfile(self.leads(leads), home / "edge.db")
        return home / "edge.db"

    @contextmanager
    def edge(
        self,
        name: str,
        posts: int = POSTS,
        leads: int = LEADS,
        module: str = "edge_api",
        *,
        again: bool = False,
    ) -> Iterator[Edge]:
        """Run an edge over a site of its kind and a database of its own, or `again` the same."""
        port = free_port()
        home = self.folder / name if again else self.database(name, leads).parent
        settings = {
            **installation(home, port),
            "BUILD_DIR": str(self.site(posts)),
            "SITE_URL": SITE_URL,
            **self._changes,
        }
        key, token = _issue("api_key", settings), _issue("access_token", settings)
        words, began = ["-m", module, "serve"], time.perf_counter()
        with served(words, f"http://127.0.0.1:{port}/", settings) as running:
            yield Edge(running, key, token, look(running, began))

    @contextmanager
    def shared_edge(self, database_url: str, workers: int) -> Iterator[Edge]:
        """Run an edge with so many workers on the database of a server, on both cores."""
        port, source = free_port(), self.database("source", LEADS)
        settings = {
            **installation(self.folder, port),
            "DATABASE_URL": database_url,
            "SECRET_KEY": "bench" * 8,
            "BUILD_DIR": str(self.site()),
            "SITE_URL": SITE_URL,
        }
        places = ("--from", f"sqlite:///{source}", "--to", database_url)
        python("-m", "edge_api", "copy", *places, **settings)
        key, token = _issue("api_key", settings), _issue("access_token", settings)
        words = [sys.executable, "-m", "edge_api", "serve", "--workers", str(workers)]
        program, *more = [*pinned(BOTH_CORES), *words]  # in place of the one core of servers
        began = time.perf_counter()
        with served(more, f"http://127.0.0.1:{port}{PING}", settings, program) as running:
            yield Edge(running, key, token, look(running, began))


def _issue(kind: str, settings: Mapping[str, str]) -> str:
    words = ["keys", "issue", "--name", "bench", "--type", kind, "--json"]
    words += ["--scopes", " ".join((*SCOPES, PUBLISH_WITH_ENQUIRIES))]
    return str(json.loads(python("-m", "edge_api", *words, **settings))["key"])


def copy_rows(database: Path, target: Path) -> Path:
    """Return a copy of a database that nobody writes to any more, its log within it."""
    shutil.copyfile(database, target)
    with sqlite3.connect(target) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return target
