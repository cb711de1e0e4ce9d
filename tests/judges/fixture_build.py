"""A test build: the edge's own MCP handler, with the conformance suite's fixtures mounted on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from mcp.server import Server

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.http.admission import Admitted
from edge_api.http.errors import error_answer
from edge_api.http.request import Request, mark
from edge_api.http.response import PreparedResponse, send
from edge_api.mcp.exchange import Exchange
from edge_api.mcp.transport import McpEndpoint
from edge_api.operation.model import AnyOperation
from tests.edge.conftest import EdgeServer

TOKEN = "of the test build"
_TESTER = Actor("tester", "tester", "access_token", frozenset({"mcp"}))


class Anybody:
    """Lets each request go on for as long as it likes."""

    async def still_holds(self, _operation: AnyOperation, _secret: str) -> bool:
        """Tell that the credential is good."""
        return True

    def count(self, _request: Request, _actor: Actor) -> None:
        """Count nothing."""


@asynccontextmanager
async def serving(server: Server[Any]) -> AsyncIterator[str]:
    """Serve an SDK server through the edge's handler; yields the origin."""
    endpoint = McpEndpoint(Anybody(), lambda: Exchange(server), is_draining=lambda: False)

    async def handle(request: Request) -> web.StreamResponse:
        mark(request)
        try:
            if request.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Problem("unauthenticated")  # noqa: TRY301  as the door does
            answer = await endpoint.answer(request, {}, Admitted(_TESTER))
        except Problem as problem:
            answer = error_answer(problem, "jsonrpc")
        return send(answer, request) if isinstance(answer, PreparedResponse) else answer

    async with EdgeServer(handle) as running:
        yield str(running.make_url(""))
