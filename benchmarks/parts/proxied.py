"""The edge behind nginx with the shipped configuration."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from benchmarks import peers
from benchmarks.ground import API, LEAD, Ground
from benchmarks.load import Load
from benchmarks.peers import FASTAPI, UNKEPT
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Section, compare
from benchmarks.server import Served

DIRECT: Final = "Fore-edge without nginx"
_ABOUT = (
    "64 connections by TLS to nginx, with one worker and the configuration of deploy/, in front of "
    "the edge and of FastAPI. nginx sets an id for each request, writes its log, and "
    "appends its client's address; it has the same core as the server behind it. Processor time "
    "and memory are the servers', without nginx's."
)

Doors = Mapping[str, tuple[Served, str]]
"""Servers by name, each with the origin to which requests to it are sent."""


def measure(ground: Ground) -> Section:
    """Measure pages, posts and new leads."""
    index = ground.site() / "current" / "posts.json"
    database = ground.database("proxied-peer", 10_000)
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("proxied"))
        peer = stack.enter_context(peers.fastapi(index, database, edge.keys))
        proxies = [
            stack.enter_context(peers.proxy(ground.folder / f"proxied-{name}", server.origin))
            for name, server in ((EDGE, edge.server), (FASTAPI, peer))
        ]
        folder = ground.folder / "proxied-anew"
        unkept = peers.proxy(folder, edge.server.origin, keeps_connections=False)
        doors = {
            EDGE: (edge.server, proxies[0].origin),
            UNKEPT: (edge.server, stack.enter_context(unkept).origin),
            DIRECT: (edge.server, edge.server.origin),
            FASTAPI: (peer, proxies[1].origin),
        }
        slugs, ours = edge.slugs(), {name: doors[name] for name in (EDGE, DIRECT)}
        page = _race("A page of 50", ours, [f"/journal/{slug}/" for slug in slugs])
        posts, leads = [f"/posts/{slug}" for slug in slugs], [f"/leads {LEAD}"]
        post = _race("One post of 50, keyed", doors, posts, edge.keyed)
        del doors[UNKEPT]
        lead = _race("New leads, 64 clients", doors, leads)
    reached = {
        "proxied post/kept": compare(post, UNKEPT),
        f"proxied post/{FASTAPI}": compare(post, FASTAPI),
        f"proxied lead/{FASTAPI}": compare(lead, FASTAPI),
    }
    return Section("Behind nginx", _ABOUT, (page, post, lead), reached=reached)


def _race(
    title: str, doors: Doors, paths: Sequence[str], headers: Mapping[str, str] | None = None
) -> Race:
    runners = []
    for name, (server, origin) in doors.items():
        root = "" if name == FASTAPI or paths[0].startswith("/journal/") else API
        requests = [f"{root}{path}" for path in paths]
        runners.append(Runner(name, server, Load(origin, requests, headers or {})))
    return race(title, runners)
