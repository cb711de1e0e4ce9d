"""Every operation that the service offers; one that is not listed here is not served."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from edge_api import utility
from edge_api.access import operations as access_requests
from edge_api.admin import operations as admin
from edge_api.analysis import operations as analyze
from edge_api.desk import access, message, sign_in, tables, today
from edge_api.desk import leads as desk_leads
from edge_api.desk import newsletter as desk_newsletter
from edge_api.desk import posts as desk_posts
from edge_api.desk import settings as desk_settings
from edge_api.desk import stats as desk_stats
from edge_api.desk.screens import operations
from edge_api.journal import operations as posts
from edge_api.journal import search
from edge_api.leads import operations as leads
from edge_api.mail import operations as mail
from edge_api.mcp import operations as mcp
from edge_api.newsletter import operations as newsletter
from edge_api.oauth import authorize
from edge_api.oauth import operations as oauth
from edge_api.operation.model import (
    API_VERSION,
    ETAG,
    AnyOperation,
    Operation,
    cacheable,
)
from edge_api.operation.openapi import openapi_document
from edge_api.settings import Settings
from edge_api.stats import operations as stats
from edge_api.writing import operations as writing

OPERATIONS: tuple[AnyOperation, ...] = (
    *posts.OPERATIONS,
    *search.OPERATIONS,
    *writing.OPERATIONS,
    *leads.OPERATIONS,
    *analyze.OPERATIONS,
    *admin.OPERATIONS,
    *utility.OPERATIONS,
    *oauth.OPERATIONS,
    *authorize.OPERATIONS,
    *access_requests.OPERATIONS,
    *newsletter.OPERATIONS,
    *stats.OPERATIONS,
    *mail.OPERATIONS,
    *mcp.OPERATIONS,
)

DOCUMENTED: tuple[AnyOperation, ...] = (
    *OPERATIONS,
    *(
        Operation(
            name=name,
            path=path,
            summary=summary,
            handler=mcp.reject_direct_call,  # never called: these paths are served as files
            responses=cacheable("The file", {"type": "string"}, headers=ETAG, media_types=types),
            problems=("not_found", "unavailable"),
            error_format="page",
        )
        for name, path, summary, types in (
            (
                "home_page",
                "/",
                "The home page, as HTML or Markdown",
                ("text/html", "text/markdown"),
            ),
            ("llms_txt", "/llms.txt", "What the site has, for language models", ("text/plain",)),
            ("sitemap", "/sitemap.xml", "The addresses of all pages", ("application/xml",)),
        )
    ),
)
"""The operations in the OpenAPI document: OPERATIONS, and some files of the site."""

ROUTED: tuple[AnyOperation, ...] = (
    *OPERATIONS,
    *leads.FORMS,
    *access_requests.FORMS,
    *newsletter.FORMS,
    *admin.UNKNOWN_TABLE_OPERATIONS,
)
"""The operations with routes: OPERATIONS, the site's forms, and answers for unknown tables."""


_DESK: Final = (
    today,
    desk_posts,
    desk_leads,
    message,
    desk_newsletter,
    desk_stats,
    desk_settings,
    tables,
    access,
)
DESK: tuple[AnyOperation, ...] = (
    *sign_in.OPERATIONS,
    *operations(
        [each for part in _DESK for each in part.SCREENS],
        [each for part in _DESK for each in part.ACTIONS],
    ),
)
"""The owner's pages, in the order of the navigation; the settings may switch them off."""


def configure(operations: Iterable[AnyOperation], settings: Settings) -> tuple[AnyOperation, ...]:
    """Return the operations that the settings allow, with the credentials that they demand.

    Leads may require a credential, and the form that requests access may be switched off. The form
    for claim tokens stays, since access can be requested through the API too. Without the
    newsletter nobody subscribes; the links that were mailed still end subscriptions.
    """
    restricted = ("create_lead",) if settings.leads_require_credential else ()
    access = () if settings.access_requests == "on" else ("access_form", "send_access_form")
    subscribing = () if settings.newsletter == "on" else newsletter.FORMS
    switched_off = {*access, *(each.name for each in subscribing)}
    return tuple(
        leads.with_credential(each) if each.name in restricted else each
        for each in operations
        if each.name not in switched_off
    )


def offer(operations: Iterable[AnyOperation], settings: Settings) -> list[AnyOperation]:
    """Return the operations that documents and tools name, without what is switched off."""
    tags = {
        writing.TAG: settings.writing,
        newsletter.TAG: settings.newsletter,
        stats.TAG: settings.stats,
    }
    return [each for each in operations if tags.get(each.tag) != "off"]


def make_openapi(
    operations: Sequence[AnyOperation], settings: Settings, samples: Mapping[str, str]
) -> dict[str, Any]:
    """Return the OpenAPI document, with the path item and tag of the administrative tables."""
    document = openapi_document(operations, settings.site_url, API_VERSION, samples)
    document["paths"] = {admin.TABLE_PATH: admin.TABLES_PATH_ITEM, **document["paths"]}
    for tag in document["tags"]:
        if tag["name"] == admin.TAG:
            tag["description"] = admin.TAG_DESCRIPTION
    return document
