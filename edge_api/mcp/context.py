"""What the SDK hands to each handler, and what a problem becomes in the protocol's words."""

from typing import Any, NoReturn

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem

Context = ServerRequestContext[Any, Any]

NOT_FOUND = -32002
"""A resource that is not there, up to 2025-11-25; later revisions call it bad parameters."""


def actor_of(context: Context) -> Actor:
    """Return who asks: whoever let the request in put that beside it."""
    holder: Any = context.request
    actor: Actor = holder.actor
    return actor


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor where everything is in the first answer."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "cursor: no answer gave this one")


def refuse(problem: Problem, context: Context, *, is_resource: bool = False) -> NoReturn:
    """Raise what a client did wrong as MCPError, anything else as it is."""
    if problem.code == "not_found" and is_resource:
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(INVALID_PARAMS if is_modern else NOT_FOUND, problem.sentence) from None
    if problem.code in ("invalid", "not_found"):
        raise MCPError(INVALID_PARAMS, problem.sentence) from None
    raise problem
