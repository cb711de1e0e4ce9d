"""A test build: the edge's own MCP handler, with the conformance suite's fixtures mounted on it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from mcp.server import Server

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.http.request import Request, mark
from edge_api.mcp.caller import Caller
from edge_api.mcp.exchange import Exchange
from edge_api.mcp.transport import McpEndpoint
from tests.edge.conftest import EdgeServer

TOKEN = "of the test build"
_TESTER = Actor("tester", "tester", "access_token", frozenset({"mcp"}))


async def admit(request: Request) -> Caller:
    """Let in whoever has the one token. Raises Problem."""
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        raise Problem("unauthenticated")

    async def holds() -> bool:
        return True

    async def count() -> None:
        pass

    return Caller(_TESTER, holds, count)


@asynccontextmanager
async def serving(server: Server[Any]) -> AsyncIterator[str]:
    """Serve an SDK server through the edge's handler; yields the origin."""
    endpoint = McpEndpoint(
        admit,
        lambda: Exchange(server),
        site_url="http://journal.test",
        is_draining=lambda: False,
    )

    async def handle(request: Request) -> web.StreamResponse:
        mark(request)
        path: Mapping[str, str] = {}
        return await endpoint.handle(request, path)

    async with EdgeServer(handle) as running:
        yield str(running.make_url(""))
