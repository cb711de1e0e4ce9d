"""The list of everything that is offered. What is not in it is not served."""

from collections.abc import Iterable

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
from edge_api.settings import Settings

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


def offered(operations: Iterable[Operation], settings: Settings) -> tuple[Operation, ...]:
    """Return operations as the settings have them: creating a lead may need a credential."""
    closed = ("create_lead",) if settings.leads_require_credential else ()
    return tuple(
        leads.with_credential(each) if each.name in closed else each for each in operations
    )
