"""The edge against its measures, in one run: ratios are what lasts.

`python -m benchmarks.edge`
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.load import Figure, free_port, load, served

HERE = Path(__file__).parent
LIMITS = ("RATE_LEADS", "RATE_LEADS_ATTEMPTS", "RATE_AUTHENTICATED", "RATE_FAILED_AUTH")
UNLIMITED = dict.fromkeys(LIMITS, "0")
PING = "/api/public/ping"


def main() -> None:
    """Measure and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder) / "build"
        port = free_port()
        environment = {
            **UNLIMITED,
            "PORT": str(port),
            "BUILD_DIR": str(build),
            "DATABASE_URL": f"sqlite:///{folder}/edge.db",
        }
        _python("-m", "site_build", "build", "--output", str(build), "--site-url", _origin(port))
        hello = _hello()
        post, page, grouped = _edge(["-m", "edge_api", "serve"], port, environment)
        single = _leads(["-m", "benchmarks.peers.one_commit_each"], port, environment)
    _print("GET /api/public/v1/posts/{slug}, keyed", post, "aiohttp hello-world", hello)
    _print("GET a page of the site", page, "aiohttp hello-world", hello)
    _print("POST /api/public/v1/leads, 64 clients", grouped, "a commit for each request", single)


def _hello() -> Figure:
    port = free_port()
    with served(["-m", "benchmarks.peers.hello", str(port)], port, "/hello", {}) as origin:
        return load(f"{origin}/hello")


def _edge(
    words: Sequence[str], port: int, environment: Mapping[str, str]
) -> tuple[Figure, Figure, Figure]:
    key = _key(environment)
    with served(words, port, PING, environment) as origin:
        slug = _newest(origin, key)
        post = load(f"{origin}/api/public/v1/posts/{slug}", {"X-API-Key": key})
        page = load(f"{origin}/journal/{slug}/")
        leads = load(f"{origin}/api/public/v1/leads", script=HERE / "leads.lua")
    return post, page, leads


def _leads(words: Sequence[str], port: int, environment: Mapping[str, str]) -> Figure:
    with served(words, port, PING, environment) as origin:
        return load(f"{origin}/api/public/v1/leads", script=HERE / "leads.lua")


def _key(environment: Mapping[str, str]) -> str:
    said = _python("-m", "edge_api", "keys", "issue", "--name", "bench", "--json", **environment)
    return str(json.loads(said)["key"])


def _newest(origin: str, key: str) -> str:
    address = f"{origin}/api/public/v1/posts?limit=1"
    request = Request(address, headers={"X-API-Key": key})  # noqa: S310  an address of our own
    with urlopen(request, timeout=5) as answer:  # noqa: S310  likewise
        return str(json.load(answer)["posts"][0]["slug"])


def _python(*words: str, **environment: str) -> str:
    command = [sys.executable, *words]
    whole = {**os.environ, **environment}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=whole).stdout


def _origin(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _print(what: str, ours: Figure, peer: str, theirs: Figure) -> None:
    ratio = ours.per_second / theirs.per_second
    print(
        f"{what:<40} {ours.per_second:>9,.0f}/s  p99 {ours.p99_ms:>6.2f} ms   "
        f"{ratio:>5.2f} x {peer} ({theirs.per_second:,.0f}/s, p99 {theirs.p99_ms:.2f} ms)"
    )


if __name__ == "__main__":
    main()
