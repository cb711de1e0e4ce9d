"""A test build: the product's application, with the conformance suite's fixtures on its MCP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mcp.server import Server

from edge_api.app import assemble
from edge_api.auth.actor import system_clock
from edge_api.auth.keys import Keys, NewKey
from edge_api.http.dispatch import App
from edge_api.http.endpoint import Admission
from edge_api.http.site import Site
from edge_api.mcp.exchange import answer_message
from edge_api.mcp.transport import McpEndpoint
from edge_api.operations import ROUTED
from edge_api.settings import Settings, read_settings
from tests.edge.conftest import EdgeServer


@dataclass(frozen=True, slots=True)
class FixtureBuild:
    """A serving test build."""

    origin: str
    token: str
    """An access token for its MCP endpoint."""
    mcp: McpEndpoint


@asynccontextmanager
async def serving(server: Server[Any], folder: Path) -> AsyncIterator[FixtureBuild]:
    """Serve an SDK server through the product's application, with a store in `folder`."""
    async with assemble(_settings(folder)) as assembly:
        service = assembly.service
        mcp = McpEndpoint(
            Admission(service),
            lambda: partial(answer_message, lambda: server),
            is_draining=lambda: False,
        )
        app = App(service, ROUTED, Site(service).answer, {"mcp": mcp.answer})
        order = NewKey("tester", type="access_token", scopes=("mcp",))
        issued = await Keys(service.store, system_clock).issue(order)
        async with EdgeServer(app.handle, app.reject_malformed) as running:
            yield FixtureBuild(str(running.make_url("")), str(issued.secret), mcp)


def _settings(folder: Path) -> Settings:
    given = {
        "SITE_URL": "http://localhost",
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
        "BUILD_DIR": str(folder / "build"),
        "RATE_AUTHENTICATED": "0",
        "RATE_FAILED_AUTH": "0",
    }
    return read_settings(given, dotenv=None)
