"""An edge that counts, and ways to send requests to it and to read its counts."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.query import Read, read_all
from edge_api.db.stats_tables import DAILY_FIGURES, PAGE_VIEWS
from edge_api.stats.counter import Stats
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.domain.conftest import MovableClock
from tests.edge.edge_process import Installation, free_port
from tests.edge.small_builds import make_post, point_at, write_build

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
POST = "/journal/first-edge/"


@dataclass
class Counting:
    """A running edge that counts behind a trusted proxy."""

    edge: RunningEdge
    clock: MovableClock

    async def get(
        self, path: str, agent: str = CHROME, address: str = "198.51.100.7", **more: Any
    ) -> int:
        """Send a request as a proxy does, and return the status."""
        headers = {"User-Agent": agent, "X-Forwarded-For": address, **more.pop("headers", {})}
        async with self.edge.ask(
            more.pop("method", "GET"), path, headers=headers, **more
        ) as answer:
            return int(answer.status)

    async def store(self) -> None:
        """Store what was counted, as happens every ten seconds."""
        await self.edge.service[Stats].flush()

    async def views(self) -> Counter[tuple[str, ...]]:
        """Return the views by path, kind and agent, of all days."""
        await self.store()
        found: Counter[tuple[str, ...]] = Counter()
        for row in await read_all(self.edge.service.store, Read(PAGE_VIEWS)):
            found[row["path"], row["kind"], row["agent"]] += row["count"]
        return found

    async def figures(self, figure: str) -> dict[str, int]:
        """Return the numbers of a figure by name."""
        await self.store()
        rows = await read_all(self.edge.service.store, Read(DAILY_FIGURES))
        return {row["name"]: row["count"] for row in rows if row["figure"] == figure}


@pytest.fixture
async def counting(make_edge: EdgeMaker) -> AsyncIterator[Counting]:
    """Return an edge that counts."""
    clock = MovableClock()
    async with make_edge(clock, TRUSTED_PROXIES="127.0.0.1") as edge:
        yield Counting(edge, clock)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a store in a file."""
    port, builds = free_port(), tmp_path / "build"
    url = f"http://127.0.0.1:{port}"
    point_at(builds, write_build(builds, posts=[make_post("a")], site_url=url))
    store = f"sqlite:///{tmp_path}/edge.db"
    return Installation(
        tmp_path, {"PORT": str(port), "BUILD_DIR": str(builds), "DATABASE_URL": store}
    )
