"""Every operation that the service offers; one that is not listed here is not served."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from edge_api import utility
from edge_api.access import operations as access_requests
from edge_api.admin import operations as admin
from edge_api.analysis import operations as analyze
from edge_api.journal import operations as posts
from edge_api.journal import search
from edge_api.leads import operations as leads
from edge_api.mail import operations as mail
from edge_api.mcp import operations as mcp
from edge_api.oauth import authorize
from edge_api.oauth import operations as oauth
from edge_api.operation.model import (
    ETAG,
    NOT_MODIFIED,
    VERSION,
    AnyOperation,
    Operation,
    SuccessResponse,
)
from edge_api.operation.openapi import openapi_document
from edge_api.settings import Settings

OPERATIONS: tuple[AnyOperation, ...] = (
    *posts.OPERATIONS,
    *search.OPERATIONS,
    *leads.OPERATIONS,
    *analyze.OPERATIONS,
    *admin.OPERATIONS,
    *utility.OPERATIONS,
    *oauth.OPERATIONS,
    *authorize.OPERATIONS,
    *access_requests.OPERATIONS,
    *mail.OPERATIONS,
    *mcp.OPERATIONS,
)

_SITE_FILES: Final = (
    ("home_page", "/", "The home page, as HTML or Markdown", ("text/html", "text/markdown")),
    ("llms_txt", "/llms.txt", "What the site has, for language models", ("text/plain",)),
    ("sitemap", "/sitemap.xml", "The addresses of all pages", ("application/xml",)),
)
DOCUMENTED: tuple[AnyOperation, ...] = (
    *OPERATIONS,
    *(
        Operation(
            name=name,
            path=path,
            summary=summary,
            handler=mcp.exchange,
            responses=(
                SuccessResponse(
                    200, "The file", {"type": "string"}, headers=ETAG, media_types=types
                ),
                NOT_MODIFIED,
            ),
            problems=("not_found", "unavailable"),
            error_format="page",
        )
        for name, path, summary, types in _SITE_FILES
    ),
)
"""The operations of the OpenAPI document: the list, and public files of the site."""

ROUTED: tuple[AnyOperation, ...] = (
    *OPERATIONS,
    *leads.FORMS,
    *access_requests.FORMS,
    *admin.UNKNOWN_TABLES,
)
"""The routed operations: the list, the contact page's forms, and 403 for unknown tables."""


def offered(operations: Iterable[AnyOperation], settings: Settings) -> tuple[AnyOperation, ...]:
    """Return operations as the settings change them, such as leads that need a credential."""
    closed = ("create_lead",) if settings.leads_require_credential else ()
    return tuple(
        leads.with_credential(each) if each.name in closed else each for each in operations
    )


def describe(
    operations: Sequence[AnyOperation], settings: Settings, samples: Mapping[str, str]
) -> dict[str, Any]:
    """Return the OpenAPI document, with what it says of the administrative tables as a whole."""
    document = openapi_document(operations, settings.site_url, VERSION, samples)
    document["paths"] = {admin.PATH: admin.TABLES_PATH_ITEM, **document["paths"]}
    for tag in document["tags"]:
        if tag["name"] == admin.TAG:
            tag["description"] = admin.ABOUT
    return document
