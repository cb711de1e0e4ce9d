"""The peers: what the edge is measured against, each started as its own authors would."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import orjson

from benchmarks.peers.environment import prepare
from benchmarks.server import Served, free_port, served

HELLO: Final = "aiohttp hello-world"
STATIC: Final = "aiohttp static files"
FASTAPI: Final = "FastAPI"
DATASETTE: Final = "Datasette"
NGINX: Final = "nginx"
ONE_COMMIT_EACH: Final = "benchmarks.peers.one_commit_each"
"""The edge itself, with a commit for each request: what sharing commits is measured against."""
SDK: Final = "the SDK's own server"

_APART: Final = Path(__file__).parent / "apart"
_PROVIDE: Final = Path(__file__).resolve().parent.parent.parent / "tools" / "provide"

_NGINX: Final = """\
worker_processes 1;
{user}daemon off;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  default_type text/html;
  types {{ application/json json; }}
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=1000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {root};
    index index.html;
  }}
}}
"""


def hello() -> AbstractContextManager[Served]:
    """Run the least that an aiohttp application can do, at `/hello`."""
    port = free_port()
    return served(["-m", "benchmarks.peers.hello", str(port)], port, "/hello")


def files(folder: Path) -> AbstractContextManager[Served]:
    """Run aiohttp's own static files."""
    port = free_port()
    return served(["-m", "benchmarks.peers.files", str(port), str(folder)], port, "/")


@contextmanager
def nginx(folder: Path, root: Path) -> Iterator[Served]:
    """Run nginx with one worker; `folder` is for what it writes."""
    found = subprocess.run([str(_PROVIDE), "nginx"], check=True, capture_output=True, text=True)
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""  # else it could not read our folders
    settings.write_text(_NGINX.format(folder=folder, port=port, root=root, user=user))
    words = ["-p", str(folder), "-c", str(settings)]
    with served(words, port, "/", program=found.stdout.strip()) as running:
        yield running


def fastapi(
    posts: Path, database: Path, keys: Mapping[str, str] | None = None
) -> AbstractContextManager[Served]:
    """Run the FastAPI application over a posts index and a database of its own."""
    port = free_port()
    words = ["-m", "uvicorn", "--app-dir", str(_APART), "fastapi_app:app"]
    words += ["--port", str(port), "--no-access-log", "--log-level", "error"]
    environment = {"POSTS": str(posts), "DATABASE": str(database), **(keys or {})}
    program = str(prepare() / "python")
    return served(words, port, "/openapi.json", environment, program)


def datasette(posts: Path, leads: Path) -> AbstractContextManager[Served]:
    """Run Datasette over a database of posts, which never changes, and one of leads."""
    port = free_port()
    words = ["-m", "datasette", "serve", str(leads), "-i", str(posts), "--port", str(port)]
    for setting, value in (("sql_time_limit_ms", "30000"), ("facet_time_limit_ms", "50")):
        words += ["--setting", setting, value]
    return served(words, port, "/-/versions.json", program=str(prepare() / "python"))


def sdk(build: Path, database: Path) -> AbstractContextManager[Served]:
    """Run the MCP SDK's own server with the product's tools."""
    port = free_port()
    settings = {"BUILD_DIR": str(build), "DATABASE_URL": f"sqlite:///{database}"}
    return served(["-m", "benchmarks.peers.sdk_mcp", str(port)], port, "/mcp", settings)


def write_posts(index: Path, database: Path) -> None:
    """Put the posts of an index into a database, as Datasette serves them."""
    posts = orjson.loads(index.read_bytes())["posts"]
    names = list(posts[0])
    with sqlite3.connect(database) as connection:
        columns = ", ".join(f'"{name}"' for name in names)
        connection.execute(f'CREATE TABLE posts ({columns}, PRIMARY KEY ("slug"))')
        marks = ", ".join("?" * len(names))
        rows = [[_flat(post[name]) for name in names] for post in posts]
        connection.executemany(f"INSERT INTO posts VALUES ({marks})", rows)  # noqa: S608
    connection.close()


def _flat(value: object) -> object:
    return orjson.dumps(value).decode() if isinstance(value, list) else value
