"""The list of everything that is offered. What is not in it is not served."""

from edge_api.api import (
    access_requests,
    admin,
    analyze,
    authorize,
    hooks,
    leads,
    oauth,
    other_tables,
    posts,
    search,
    unsubscribe,
    utility,
)
from edge_api.api.mcp import operations as mcp
from edge_api.api.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *posts.OPERATIONS,
    *search.OPERATIONS,
    *leads.OPERATIONS,
    *analyze.OPERATIONS,
    *admin.OPERATIONS,
    *utility.OPERATIONS,
    *oauth.OPERATIONS,
    *authorize.OPERATIONS,
    *access_requests.OPERATIONS,
    *unsubscribe.OPERATIONS,
    *hooks.OPERATIONS,
    *mcp.OPERATIONS,
)

ROUTED: tuple[Operation, ...] = (*OPERATIONS, *other_tables.OPERATIONS)
"""What the application routes: the list, and the refusals of every other table."""
