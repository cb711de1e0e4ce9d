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
CERTIFICATE, KEY = "certificate.pem", "key.pem"
ONE_COMMIT_EACH: Final = "benchmarks.peers.one_commit_each"
"""The edge itself, with a commit for each request: what sharing commits is measured against."""
UNKEPT: Final = "a new connection for each request"
"""Fore-edge behind nginx as an earlier post configured it."""
SDK: Final = "the SDK's own server"

_APART: Final = Path(__file__).parent / "apart"
_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_PROVIDE: Final = _ROOT / "tools" / "provide"

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
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {served}
}}
"""
_FILES: Final = """server {{
    listen 127.0.0.1:{port};
    root {root};
    index index.html;
    keepalive_requests 1000000000;
    open_file_cache max=1000;
  }}
"""
SHIPPED: Final = _ROOT / "deploy" / "nginx.conf"
"""The configuration of nginx that operators take."""
_KEPT: Final = ("    keepalive 64;\n", "        proxy_http_version 1.1;\n")
_KEPT_HEADER: Final = '        proxy_set_header Connection "";\n'
"""With these lines nginx keeps its connections to the edge."""


def hello() -> AbstractContextManager[Served]:
    """Run the least that an aiohttp application can do, at `/hello`."""
    port = free_port()
    return served(["-m", "benchmarks.peers.hello", str(port)], f"http://127.0.0.1:{port}/hello")


def files(folder: Path) -> AbstractContextManager[Served]:
    """Run aiohttp's own static files."""
    port = free_port()
    return served(
        ["-m", "benchmarks.peers.files", str(port), str(folder)], f"http://127.0.0.1:{port}/"
    )


def nginx(folder: Path, root: Path) -> AbstractContextManager[Served]:
    """Run nginx with one worker on the files of `root`; `folder` is for what it writes."""
    port = free_port()
    return _run_nginx(folder, f"http://127.0.0.1:{port}/", _FILES.format(port=port, root=root))


def proxy(
    folder: Path, origin: str, *, keeps_connections: bool = True
) -> AbstractContextManager[Served]:
    """Run nginx in front of a server at `origin`, with the shipped configuration.

    Only what an operator changes is changed: ports, certificate, log and the server's address;
    without `keeps_connections` each request has a connection of its own to the server. Raises
    SystemExit where the configuration lacks one of these.
    """
    port, certificate = free_port(), make_certificate(folder)
    settings = SHIPPED.read_text(encoding="utf-8")
    live = "/etc/letsencrypt/live/journal.example"
    changes = {
        "    listen 80;\n    listen [::]:80;\n": f"    listen 127.0.0.1:{free_port()};\n",
        "    listen [::]:443 ssl http2;\n": "",
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "/var/log/nginx/access.log": f"{folder}/access.log",
        f"{live}/fullchain.pem": str(certificate),
        f"{live}/privkey.pem": str(certificate.with_name(KEY)),
        "127.0.0.1:8000": origin.removeprefix("http://"),
    }
    if not keeps_connections:
        changes |= dict.fromkeys((*_KEPT, _KEPT_HEADER), "")
    for shipped, own in changes.items():
        if shipped not in settings:
            raise SystemExit(f"{SHIPPED} has no {shipped.strip()!r}")
        settings = settings.replace(shipped, own)
    return _run_nginx(folder, f"https://127.0.0.1:{port}/", settings, certificate)


def make_certificate(folder: Path) -> Path:
    """Make a certificate for this machine in `folder`, its key beside it; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    words += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", *words, "-keyout", KEY, "-out", CERTIFICATE]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return folder / CERTIFICATE


@contextmanager
def _run_nginx(
    folder: Path, url: str, settings: str, certificate: Path | None = None
) -> Iterator[Served]:
    found = subprocess.run([str(_PROVIDE), "nginx"], check=True, capture_output=True, text=True)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""  # else it could not read our folders
    file.write_text(_NGINX.format(folder=folder, user=user, served=settings))
    words, program = ["-p", str(folder), "-c", str(file)], found.stdout.strip()
    with served(words, url, program=program, certificate=certificate) as running:
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
    return served(words, f"http://127.0.0.1:{port}/openapi.json", environment, program)


def datasette(posts: Path, leads: Path) -> AbstractContextManager[Served]:
    """Run Datasette over a database of posts, which never changes, and one of leads."""
    port = free_port()
    words = ["-m", "datasette", "serve", str(leads), "-i", str(posts), "--port", str(port)]
    for setting, value in (("sql_time_limit_ms", "30000"), ("facet_time_limit_ms", "50")):
        words += ["--setting", setting, value]
    return served(
        words, f"http://127.0.0.1:{port}/-/versions.json", program=str(prepare() / "python")
    )


def sdk(build: Path, database: Path) -> AbstractContextManager[Served]:
    """Run the MCP SDK's own server with the product's tools."""
    port = free_port()
    settings = {"BUILD_DIR": str(build), "DATABASE_URL": f"sqlite:///{database}"}
    return served(
        ["-m", "benchmarks.peers.sdk_mcp", str(port)], f"http://127.0.0.1:{port}/mcp", settings
    )


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
