"""What more content costs: memory and speed with 100 to 10,000 posts, and up to a million leads."""

import asyncio
import time
from typing import Final

from aiohttp import ClientSession

from benchmarks.ground import API, LEADS, MANY_LEADS, MCP, Edge, Ground
from benchmarks.load import Load, run
from benchmarks.parts.rows import NEWEST, filtered
from benchmarks.parts.tools import OLDER, call_of, headers_of
from benchmarks.section import Grid, Reached, Section

_SETTLED: Final = 2.0
"""Seconds after which an edge has done what it does at the start."""
_ABOUT = (
    "Memory is what the process holds (RSS) after the MCP part was loaded by a call and every "
    "load below was answered; 64 connections, all posts in random order, their first 10 to 30, the "
    "newest 40 to 60 leads, and 100 leads of a tier before an instant. No two requests are equal."
)
_POST_COLUMNS: Final = (
    "posts",
    "memory MiB",
    "start s",
    "again s",
    "one post /s",
    "us",
    "first 20 /s",
    "us",
)
_LEAD_COLUMNS: Final = ("leads", "newest 50 /s", "us", "filtered 100 /s", "us")


def measure(ground: Ground) -> Section:
    """Measure each size."""
    weights: dict[str, Reached] = {}
    posts = []
    for count in ground.sizes:
        row, weight = _with_posts(ground, count)
        posts.append(row)
        weights[f"memory, {count:,} posts"] = Reached([weight])
    leads = [_with_leads(ground, count) for count in (LEADS, MANY_LEADS)]
    grids = (Grid("Posts", _POST_COLUMNS, posts), Grid("Leads", _LEAD_COLUMNS, leads))
    return Section("Growth", _ABOUT, grids=grids, reached=weights)


def _with_posts(ground: Ground, count: int) -> tuple[tuple[str, ...], float]:
    with ground.edge("growth", posts=count, leads=0) as edge:
        asyncio.run(load_mcp(edge))
        loads = (
            [f"/posts/{slug}" for slug in edge.slugs()],
            [f"/posts?limit={limit}" for limit in range(10, 31)],
        )
        speeds = [cell for paths in loads for cell in _speed(edge, paths)]
        time.sleep(_SETTLED)
        weight = edge.server.resident_mib()
    with ground.edge("growth", posts=count, again=True) as again:
        starts = (f"{each.took.seconds:.2f}" for each in (edge, again))
    return (f"{count:,}", f"{weight:.0f}", *starts, *speeds), weight


def _with_leads(ground: Ground, count: int) -> tuple[str, ...]:
    with ground.edge("growth", leads=count) as edge:
        speeds = [cell for paths in (NEWEST, filtered(count)) for cell in _speed(edge, paths)]
    return (f"{count:,}", *speeds)


def _speed(edge: Edge, paths: list[str]) -> tuple[str, str]:
    load = Load(edge.server.origin, [f"{API}{path}" for path in paths], edge.keyed)
    run(load, edge.server, 1)
    figure = run(load, edge.server)
    return f"{figure.per_second:,.0f}", f"{figure.cpu_us:.0f}"


async def load_mcp(edge: Edge) -> None:
    """Call a tool once: the SDK is loaded with the first message."""
    headers = {**headers_of(OLDER), "Authorization": f"Bearer {edge.token}"}
    async with (
        ClientSession(headers=headers) as session,
        session.post(f"{edge.server.origin}{MCP}", json=call_of(OLDER)) as answer,
    ):
        await answer.read()
        answer.raise_for_status()
