"""Agents of both eras."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.edge.conftest import EdgeMaker
from tests.edge.mcp.agents import ERAS, MODERN, Agent
from tests.edge.writing_process import writing


@pytest.fixture
def make_agent(edge: Any) -> Callable[..., Awaitable[Agent]]:
    """Return a maker of agents: with these scopes, or all, in one era."""

    async def make(*scopes: str, version: str = MODERN, tables: tuple[str, ...] = ()) -> Agent:
        return Agent(edge, await edge.token(*scopes, tables=tables), version)

    return make


@pytest.fixture(params=ERAS)
async def agent(request: pytest.FixtureRequest, edge: Any) -> Agent:
    """Return an agent that may do everything, once in each era."""
    return Agent(edge, await edge.token(), request.param)


@pytest.fixture(params=ERAS)
async def writer(
    request: pytest.FixtureRequest, make_edge: EdgeMaker, tmp_path: Path
) -> AsyncIterator[Agent]:
    """Return an agent that may do everything where writing is on, once in each era."""
    (tmp_path / "content/posts").mkdir(parents=True)
    async with make_edge(WRITING="on") as running:
        with writing(tmp_path, tmp_path / "content", tmp_path / "build"):
            yield Agent(running, await running.token(), request.param)
