"""Agents of both eras."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.edge.mcp.agents import ERAS, MODERN, Agent


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
