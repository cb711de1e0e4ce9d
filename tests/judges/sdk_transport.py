"""The SDK's own way from HTTP to one of its servers: Starlette under uvicorn, without sessions."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings

from tests.judges.product import MCP_PATH


@asynccontextmanager
async def serving(server: Server[Any]) -> AsyncIterator[str]:
    """Serve an SDK server; yields the origin."""
    app = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    config = uvicorn.Config(app, log_level="error", lifespan="on", access_log=False)
    running = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(running.serve(sockets=[listener]))
        try:
            # The listener takes connections from now on; they are answered as soon as it serves.
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            running.should_exit = True
            await task
