"""`tools/list` and `tools/call`."""

from typing import Final

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from edge_api.api.mcp.context import Context, actor_of, refuse_cursor
from edge_api.api.mcp.toolbox import BoundTool, Toolbox
from edge_api.api.service import Service
from edge_api.schema.problems import Code, Problem

_ABOUT_THE_CALLER: Final[tuple[Code, ...]] = ("unauthenticated", "insufficient_scope")
"""Problems that no other arguments would mend: HTTP tells them to the client, not to the model."""


class ToolHandlers:
    """Lists and calls the tools of a toolbox."""

    def __init__(self, service: Service, toolbox: Toolbox) -> None:
        self._service = service
        self._toolbox = toolbox
        self._listed = {name: _describe(tool) for name, tool in toolbox.tools.items()}

    async def list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """List the tools that the caller may call."""
        refuse_cursor(params)
        offered = self._toolbox.offered(actor_of(context))
        return ListToolsResult(tools=[self._listed[item.tool.name] for item in offered])

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool; what is wrong with the arguments is told to the model.

        Raises MCPError for an unknown tool, Problem for a scope that is lacking.
        """
        tool = self._toolbox.tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        try:
            result = await tool.call(self._service, actor_of(context), params.arguments or {})
        except Problem as problem:
            if problem.code in _ABOUT_THE_CALLER:
                raise
            return CallToolResult(content=[TextContent(text=problem.sentence)], is_error=True)
        text = TextContent(text=orjson.dumps(result).decode())
        return CallToolResult(content=[text], structured_content=result)


def _describe(bound: BoundTool) -> Tool:
    tool, hints = bound.tool, bound.tool.hints
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=bound.input_schema,
        output_schema=bound.output_schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )
