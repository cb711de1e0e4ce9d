"""The SDK's own server, Starlette on uvicorn, with the product's tools: our handler's measure.

It asks for no credential and counts nothing.
"""

import asyncio
import os
import sys
from typing import Any

import orjson
import uvicorn
import uvloop
from mcp.server import Server
from mcp_types import CallToolResult, TextContent

from edge_api.app import assemble
from edge_api.auth.actor import Actor
from edge_api.mcp.tools import bind_tools
from edge_api.operation.model import Service
from edge_api.operations import OPERATIONS
from edge_api.schema.credentials import SCOPES
from edge_api.settings import read_settings

ANYBODY = Actor("anybody", "anybody", "access_token", frozenset(SCOPES))


def make_server(service: Service) -> Server[Any]:
    """Return an SDK server whose tools are the product's."""
    tools = bind_tools(OPERATIONS)

    async def call(_context: Any, params: Any) -> CallToolResult:
        result = await tools[params.name].call(service, ANYBODY, params.arguments or {})
        text = TextContent(text=orjson.dumps(result).decode())
        return CallToolResult(content=[text], structured_content=result)

    return Server("peer", get_tool_input_schema=lambda _name: None, on_call_tool=call)


async def main(port: int) -> None:
    """Serve on 127.0.0.1:`port` until told to end."""
    async with assemble(read_settings(os.environ), exclusive=True) as assembly:
        app = make_server(assembly.service).streamable_http_app(
            streamable_http_path="/mcp", json_response=True, stateless_http=True
        )
        config = uvicorn.Config(app, port=port, access_log=False, log_level="error")
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
