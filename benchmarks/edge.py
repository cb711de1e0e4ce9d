"""The edge against its measures, in one run: ratios are what lasts.

`python -m benchmarks.edge`
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.load import Comparison, Load, compare, free_port, middle, served

LEADS = Path(__file__).with_name("leads.lua")
LIMITS = ("RATE_LEADS", "RATE_LEADS_ATTEMPTS", "RATE_AUTHENTICATED", "RATE_FAILED_AUTH")
UNLIMITED = dict.fromkeys(LIMITS, "0")
PING = "/api/public/ping"


def main() -> None:
    """Measure and print the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = free_port()
        environment = installation(folder, port)
        python("-m", "site_build", "build", "--site-url", _origin(port), **environment)
        key = _key(environment)
        serving = served(["-m", "edge_api", "serve"], port, PING, environment)
        edge = stack.enter_context(serving).origin
        _compare_reading(stack, edge, key)
        _compare_writing(stack, edge, folder)


def _compare_reading(stack: ExitStack, edge: str, key: str) -> None:
    port = free_port()
    peer = served(["-m", "benchmarks.peers.hello", str(port)], port, "/hello", {})
    hello = Load(f"{stack.enter_context(peer).origin}/hello")
    slug, keyed = _newest(edge, key), {"X-API-Key": key}
    for what, load in (
        ("GET posts/{slug}, keyed", Load(f"{edge}/api/public/v1/posts/{slug}", keyed)),
        ("GET posts, keyed", Load(f"{edge}/api/public/v1/posts", keyed)),
        ("GET a page of the site", Load(f"{edge}/journal/{slug}/")),
    ):
        _print(what, "aiohttp hello-world", compare(load, hello))


def _compare_writing(stack: ExitStack, edge: str, folder: Path) -> None:
    port = free_port()
    peer = served(
        ["-m", "benchmarks.peers.one_commit_each"], port, PING, installation(folder / "peer", port)
    )
    path = "/api/public/v1/leads"
    ours = Load(f"{edge}{path}", script=LEADS)
    theirs = Load(f"{stack.enter_context(peer).origin}{path}", script=LEADS)
    _print("POST leads, 64 clients", "a commit for each request", compare(ours, theirs))


def installation(folder: Path, port: int) -> dict[str, str]:
    """Return the settings of an edge in a folder of its own, without limits."""
    return {
        **UNLIMITED,
        "PORT": str(port),
        "BUILD_DIR": str(folder / "build"),
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
    }


def _key(environment: Mapping[str, str]) -> str:
    said = python("-m", "edge_api", "keys", "issue", "--name", "bench", "--json", **environment)
    return str(json.loads(said)["key"])


def _newest(origin: str, key: str) -> str:
    address = f"{origin}/api/public/v1/posts?limit=1"
    request = Request(address, headers={"X-API-Key": key})  # noqa: S310  an address of our own
    with urlopen(request, timeout=5) as answer:  # noqa: S310  likewise
        return str(json.load(answer)["posts"][0]["slug"])


def python(*words: str, **environment: str) -> str:
    """Run a command of Python's; return what it prints."""
    command = [sys.executable, *words]
    whole = {**os.environ, **environment}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=whole).stdout


def _origin(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _print(what: str, peer: str, seen: Comparison) -> None:
    ours, theirs = middle(seen.ours), middle(seen.theirs)
    print(
        f"{what:<24} {ours.per_second:>8,.0f}/s  p99 {ours.p99_ms:>6.2f} ms   {seen.ratio:>5.2f} x "
        f"{peer} ({theirs.per_second:,.0f}/s, p99 {theirs.p99_ms:.2f} ms)"
    )


if __name__ == "__main__":
    main()
