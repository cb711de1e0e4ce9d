"""The service's description of itself, and the catalog that leads to its documents."""

from collections.abc import Sequence
from typing import Any

from edge_api.api.mcp import operations as mcp
from edge_api.api.operation import Operation
from edge_api.api.reply import JSON
from edge_api.domain.limits import AUTHENTICATED, NO_LIMIT, list_rates
from edge_api.domain.oauth.server import server_metadata
from edge_api.domain.oauth.tokens import Issuer
from edge_api.schema import paths
from edge_api.schema.credentials import SCOPES
from edge_api.settings import Settings

Json = dict[str, Any]

_OAUTH = (
    *("issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint"),
    *("revocation_endpoint", "jwks_uri", "grant_types_supported"),
)
LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
"""The media type of the catalog, with the profile that tells it from other linksets."""
CATALOG_LINK = (
    f'<{paths.API_CATALOG}>; rel="api-catalog"; '
    'type="application/linkset+json"; profile="https://www.rfc-editor.org/info/rfc9727"'
)
"""What the catalog says of itself, to HEAD too (RFC 9727, section 2)."""


def self_description(operations: Sequence[Operation], settings: Settings, version: str) -> Json:
    """Return what `GET /api/public/v1/` says."""
    origin = settings.site_url
    oauth = server_metadata(Issuer(origin), {})
    return {
        "name": "Public API",
        "version": version,
        "documentation": f"{origin}{paths.DOCS}",
        "openapi": f"{origin}{paths.OPENAPI}",
        "status": {
            "liveness": f"{origin}/api/public/ping",
            "readiness": f"{origin}/api/public/v1/readiness",
        },
        "endpoints": [_endpoint(operation, settings) for operation in operations],
        "authentication": _authentication(origin),
        "mcp": {
            "url": f"{origin}{mcp.PATH}",
            "transport": "streamable-http",
            "protocol_versions": list(mcp.REVISIONS),
            "server_card": f"{origin}{paths.SERVER_CARD}",
            "catalog": f"{origin}{paths.AI_CATALOG}",
        },
        "oauth": {name: oauth[name] for name in _OAUTH}
        | {
            "metadata": f"{origin}{paths.METADATA}",
            "protected_resources": [
                f"{origin}{paths.RESOURCE_METADATA}{path}" for path in paths.DOORS.values()
            ],
        },
        "limits": {
            name: None if rate == NO_LIMIT else rate for name, rate in list_rates(settings).items()
        },
        "llms_txt": f"{origin}/llms.txt",
        "sitemap": f"{origin}/sitemap.xml",
        "contact": f"{origin}/contact/",
    }


def api_catalog(settings: Settings) -> Json:
    """Return the linkset of `/.well-known/api-catalog` (RFC 9727, section 4.2)."""
    origin = settings.site_url
    rest, mcp_url = f"{origin}{paths.DOORS['rest']}/", f"{origin}{mcp.PATH}"
    described = {
        "service-doc": [_link(f"{origin}{paths.DOCS}", "text/html")],
        "describedby": [
            _link(f"{origin}/llms.txt", "text/plain"),
            _link(f"{origin}/auth.md", "text/markdown"),
        ],
        "status": [_link(f"{rest}readiness", JSON)],
    }
    protected = f"{origin}{paths.RESOURCE_METADATA}{mcp.PATH}"
    return {
        "linkset": [
            {
                "anchor": rest,
                "service-desc": [_link(f"{origin}{paths.OPENAPI}", JSON)],
                "service-meta": [_link(rest, JSON)],
                **described,
            },
            {
                "anchor": mcp_url,
                "service-desc": [_link(f"{origin}{paths.SERVER_CARD}", mcp.CARD_TYPE)],
                "service-meta": [_link(protected, JSON)],
                **described,
            },
            {
                "anchor": f"{origin}{paths.API_CATALOG}",
                "item": [{"href": rest}, {"href": mcp_url}],
            },
        ]
    }


def _link(href: str, media_type: str) -> Json:
    return {"href": href, "type": media_type}


def _endpoint(operation: Operation, settings: Settings) -> Json:
    return {
        "method": operation.method,
        "path": operation.path,
        "summary": operation.summary,
        "credential": operation.credential,
        "scope": operation.scope,
        "rate_limit": _rate(operation, settings),
    }


def _rate(operation: Operation, settings: Settings) -> str | None:
    """Return the limits of a caller without a credential, or of one with it where it is needed."""
    names = (AUTHENTICATED,) if operation.credential == "required" else operation.limits
    rates = list_rates(settings)
    return ";".join(rates[name] for name in names if rates[name] != NO_LIMIT) or None


def _authentication(origin: str) -> Json:
    return {
        "api_key": {
            "headers": ["X-API-Key: <API_KEY>", "Authorization: Bearer <API_KEY>"],
            "for": f"{origin}{paths.DOORS['rest']}/",
            "scopes": dict(SCOPES),
            "obtain": f"{origin}/contact/",
        },
        "access_token": {
            "headers": ["Authorization: Bearer <ACCESS_TOKEN>"],
            "for": f"{origin}{mcp.PATH}",
            "obtain": f"{origin}/contact/",
        },
        "auth_md": f"{origin}/auth.md",
        "access_requests": f"{origin}{paths.REQUEST_ACCESS}",
    }
