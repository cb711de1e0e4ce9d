"""Lists of leads: the newest, and what administrators ask of a million."""

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Final

from benchmarks import peers
from benchmarks.ground import API, LEADS, MANY_LEADS, Ground
from benchmarks.leads import FIRST, TIERS
from benchmarks.load import Load
from benchmarks.peers import DATASETTE, FASTAPI
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Section, compare
from edge_api.db.types import format_instant

NEWEST: Final = [f"/leads?limit={limit}" for limit in range(40, 61)]
"""What API clients ask: 50 leads on average."""
_QUESTIONS: Final = 2_000
"""Instants before which each tier is asked for: too many for their answers to be kept."""
_PUBLIC: Final = ("id", "name", "email", "budget_tier", "message", "created_at")
_HIDDEN: Final = "dedupe_hash"
_ABOUT = (
    "64 connections. Newest leads: limits of 40 to 60 in random order, which the edge answers from "
    f"memory until a lead comes. Filter and order: 100 leads of one of {len(TIERS)} tiers before "
    f"one of {_QUESTIONS:,} instants, so that each question has to be put to the store. The peers "
    "have a copy of the edge's database, indexes included; Datasette checks no key, counts nothing "
    "and suggests nothing."
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


def filters(count: int) -> list[tuple[str, str]]:
    """Return each tier with each of many instants within the time in which so many leads came."""
    first = FIRST + timedelta(seconds=min(count, 100 * len(TIERS)))
    step = timedelta(seconds=count) / _QUESTIONS
    instants = [format_instant(first + number * step) for number in range(_QUESTIONS)]
    return [(tier, instant) for tier in TIERS for instant in instants]


def filtered(count: int) -> list[str]:
    """Return what administrators ask of so many leads."""
    return [
        f"/admin/leads?budget_tier=eq.{tier}&created_at=lt.{instant}"
        "&order=created_at.desc&limit=100"
        for tier, instant in filters(count)
    ]


def _measure_newest(ground: Ground) -> Race:
    columns = "".join(f"&_col={name}" for name in _PUBLIC)
    query = f"_sort_desc=created_at&status__not=spam{columns}&{_PLAIN}"
    tables = [f"/edge/leads.json?{query}&_size={path.partition('=')[2]}" for path in NEWEST]
    paths = {FASTAPI: NEWEST, DATASETTE: tables}
    return _race("The newest 50 of 10,000 leads", ground, LEADS, NEWEST, paths)


def _measure_filtered(ground: Ground) -> Race:
    query = f"_size=100&_sort_desc=created_at&_nocol={_HIDDEN}&{_PLAIN}"
    paths = {
        FASTAPI: [
            f"/admin/leads?budget_tier={tier}&before={instant}&order=desc&limit=100"
            for tier, instant in filters(MANY_LEADS)
        ],
        DATASETTE: [
            f"/edge/leads.json?{query}&budget_tier={tier}&created_at__lt={instant}"
            for tier, instant in filters(MANY_LEADS)
        ],
    }
    title = "Filter and order, 100 of 1,000,000 leads"
    return _race(title, ground, MANY_LEADS, filtered(MANY_LEADS), paths)


def _race(
    title: str, ground: Ground, count: int, asked: list[str], paths: dict[str, list[str]]
) -> Race:
    index = ground.site() / "current" / "posts.json"
    usual = ground.database(f"rows-{count}-fastapi", count)
    tables = ground.database(f"rows-{count}-datasette", count)
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge(f"rows-{count}", leads=count))
        servers = {
            FASTAPI: stack.enter_context(peers.fastapi(index, usual, edge.keys)),
            DATASETTE: stack.enter_context(peers.datasette(_some_posts(ground, index), tables)),
        }
        ours = Load(edge.server.origin, [f"{API}{path}" for path in asked], edge.keyed)
        theirs = [
            Runner(name, server, Load(server.origin, paths[name], edge.keyed))
            for name, server in servers.items()
        ]
        return race(title, [Runner(EDGE, edge.server, ours), *theirs])


def _some_posts(ground: Ground, index: Path) -> Path:
    file = ground.folder / "posts.db"
    if not file.exists():
        peers.write_posts(index, file)
    return file
