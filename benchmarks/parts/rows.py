"""Lists of leads: the newest fifty, and what administrators ask of a million."""

from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import peers
from benchmarks.ground import LEADS, MANY_LEADS, Edge, Ground
from benchmarks.load import Load
from benchmarks.peers import DATASETTE, FASTAPI
from benchmarks.race import EDGE, Race, Runner, ask_anew, race
from benchmarks.section import Section, compare
from benchmarks.server import Served

FILTERED: Final = "/admin/leads?budget_tier=eq.starter&order=created_at.desc&limit=100"
_PUBLIC: Final = ("id", "name", "email", "budget_tier", "message", "created_at")
_HIDDEN: Final = "dedupe_hash"
_ABOUT = (
    "64 connections. The peers have a copy of the edge's database, indexes included; Datasette "
    "checks no key, counts nothing and suggests nothing."
)
_PLAIN: Final = "_nocount=1&_nofacet=1&_nosuggest=1&_shape=objects"


def measure(ground: Ground) -> Section:
    """Measure both lists."""
    races = {"leads": _measure_newest(ground), "rows": _measure_filtered(ground)}
    reached = {
        f"{name}/{peer}": compare(held, peer)
        for name, held in races.items()
        for peer in (FASTAPI, DATASETTE)
    }
    return Section("Lists of leads", _ABOUT, tuple(races.values()), reached=reached)


def _measure_newest(ground: Ground) -> Race:
    columns = "".join(f"&_col={name}" for name in _PUBLIC)
    query = f"_size=50&_sort_desc=created_at&status__not=spam{columns}&{_PLAIN}"
    paths = {FASTAPI: "/leads?limit=50", DATASETTE: f"/edge/leads.json?{query}"}
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("newest", leads=LEADS))
        servers = _start(stack, ground, edge, LEADS)
        ours, *theirs = _runners(edge, "/leads?limit=50", servers, paths)
        return race("The newest 50 of 10,000 leads", [ours, *theirs])


def _measure_filtered(ground: Ground) -> Race:
    query = f"_size=100&budget_tier=starter&_sort_desc=created_at&_nocol={_HIDDEN}&{_PLAIN}"
    paths = {
        FASTAPI: "/admin/leads?budget_tier=starter&order=desc&limit=100",
        DATASETTE: f"/edge/leads.json?{query}",
    }
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("filtered", leads=MANY_LEADS))
        servers = _start(stack, ground, edge, MANY_LEADS)
        ours, *theirs = _runners(edge, FILTERED, servers, paths)
        return race("Filter and order, 100 of 1,000,000 leads", [ours, ask_anew(ours), *theirs])


def _start(stack: ExitStack, ground: Ground, edge: Edge, count: int) -> dict[str, Served]:
    index = ground.site() / "current" / "posts.json"
    usual = ground.database(f"rows-{count}-fastapi", count)
    tables = ground.database(f"rows-{count}-datasette", count)
    posts = _some_posts(ground, index)
    return {
        FASTAPI: stack.enter_context(peers.fastapi(index, usual, edge.keys)),
        DATASETTE: stack.enter_context(peers.datasette(posts, tables)),
    }


def _some_posts(ground: Ground, index: Path) -> Path:
    file = ground.folder / "posts.db"
    if not file.exists():
        peers.write_posts(index, file)
    return file


def _runners(
    edge: Edge, path: str, servers: dict[str, Served], paths: dict[str, str]
) -> list[Runner]:
    theirs = [
        Runner(name, server, Load(f"{server.origin}{paths[name]}", edge.keyed))
        for name, server in servers.items()
    ]
    return [Runner(EDGE, edge.server, Load(edge.url(path), edge.keyed)), *theirs]
