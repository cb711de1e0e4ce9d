"""The utility operations, open to all: liveness, readiness, and descriptions of the API."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field

from edge_api.auth.rate_limits import AUTHENTICATED, NO_LIMIT, list_rates
from edge_api.auth.tokens import Issuer
from edge_api.health import Health, State
from edge_api.journal.builds import BuildManager
from edge_api.mcp import operations as mcp
from edge_api.oauth.server import server_metadata
from edge_api.operation.model import (
    JSON,
    AnyOperation,
    Json,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    cacheable,
    output_schema,
)
from edge_api.schema import paths
from edge_api.schema.credentials import CREDENTIAL_SCOPES, SCOPES
from edge_api.settings import Settings


class Alive(BaseModel):
    """The process runs."""

    status: Literal["ok"]


class CheckReport(BaseModel, extra="allow"):
    """What one look at one part found; further members are facts about the part."""

    status: State
    error: str | None = Field(default=None, description="What is wrong; absent where nothing is.")


class ReadinessReport(BaseModel):
    """Whether requests should come here."""

    status: State
    ready: bool
    version: str
    time: AwareDatetime
    checks: dict[str, CheckReport]
    error: str | None = Field(default=None, description="Why not; absent when ready.")


class EndpointDescription(BaseModel):
    """One operation, in brief."""

    method: str
    path: str
    summary: str
    credential: Literal["none", "optional", "required"]
    scope: str | None
    rate_limit: Annotated[
        str | None, Field(description="Windows that must all have room; `null`: unlimited.")
    ]


class Description(BaseModel, extra="allow"):
    """What the API is, and where its parts are described."""

    name: Literal["Public API"]
    version: str
    documentation: str
    endpoints: list[EndpointDescription]
    authentication: dict[str, Any]
    oauth: dict[str, Any]
    limits: dict[str, str | None]


class OpenApiDocument(BaseModel, extra="allow"):
    """An OpenAPI document."""

    openapi: Annotated[str, Field(pattern=r"^3\.1\.\d+$")]
    info: dict[str, Any]
    paths: dict[str, Any]


class Linkset(BaseModel):
    """Links in the form of RFC 9264, section 4.2."""

    linkset: list[dict[str, Any]]


async def ping(_service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Report that the process runs, without a check."""
    return OperationResult({"status": "ok"})


async def readiness(service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Report whether every part works; 503 when one does not."""
    report = await service[Health].report()
    if report["ready"]:
        return OperationResult(report)
    return OperationResult(report, status=503, headers={"Retry-After": "5"})


async def describe(service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Return the service's description of itself."""
    return OperationResult(service.documents.description)


async def openapi(service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Return the OpenAPI document."""
    build = service[BuildManager].current
    return OperationResult(service.documents.openapi(build.newest_slug if build else None))


async def get_catalog(service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Return the catalog that links to the OpenAPI document (RFC 9727)."""
    return OperationResult(service.documents.api_catalog)


_DESCRIPTION_RESPONSES = cacheable("API info", output_schema(Description))

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="ping",
        path="/api/public/ping",
        summary="Liveness: the process runs",
        handler=ping,
        responses=(SuccessResponse(200, "It runs", output_schema(Alive), {"status": "ok"}),),
    ),
    Operation(
        name="readiness",
        path=f"{paths.REST_PREFIX}/readiness",
        summary="Readiness: store, posts index and configuration are in order",
        handler=readiness,
        responses=(
            SuccessResponse(200, "Ready", output_schema(ReadinessReport)),
            SuccessResponse(
                503,
                "Not ready: a check fails, or the process is shutting down",
                output_schema(ReadinessReport),
                headers={"Retry-After": "Seconds until another look makes sense."},
            ),
        ),
    ),
    Operation(
        name="describe_api",
        path=f"{paths.REST_PREFIX}/",
        summary="What this API is: endpoints, authentication, limits",
        handler=describe,
        responses=_DESCRIPTION_RESPONSES,
    ),
    Operation(
        name="describe_api_without_slash",
        path=paths.REST_PREFIX,
        summary="The same as with a trailing slash",
        handler=describe,
        responses=_DESCRIPTION_RESPONSES,
    ),
    Operation(
        name="openapi",
        path=paths.OPENAPI,
        summary="The OpenAPI 3.1 description of every operation",
        handler=openapi,
        responses=cacheable("The document", output_schema(OpenApiDocument)),
    ),
    Operation(
        name="api_catalog",
        path=paths.API_CATALOG,
        summary="Where the API is described (RFC 9727)",
        handler=get_catalog,
        responses=cacheable(
            "A linkset", output_schema(Linkset), media_types=("application/linkset+json",)
        ),
    ),
)


LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
"""The media type of the catalog, with its profile of linksets."""
CATALOG_LINK = (
    f'<{paths.API_CATALOG}>; rel="api-catalog"; '
    'type="application/linkset+json"; profile="https://www.rfc-editor.org/info/rfc9727"'
)
"""The catalog's `Link` header to itself, for HEAD as well (RFC 9727, section 2)."""


def self_description(operations: Sequence[AnyOperation], settings: Settings, version: str) -> Json:
    """Return the answer of `GET /api/public/v1/`."""
    origin = settings.site_url
    oauth = server_metadata(Issuer(origin))
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
        "authentication": {
            "api_key": {
                "headers": ["X-API-Key: <API_KEY>", "Authorization: Bearer <API_KEY>"],
                "for": f"{origin}{paths.AUDIENCES['rest']}/",
                "scopes": {name: SCOPES[name] for name in CREDENTIAL_SCOPES["api_key"]},
                "obtain": f"{origin}/contact/",
            },
            "access_token": {
                "headers": ["Authorization: Bearer <ACCESS_TOKEN>"],
                "for": f"{origin}{mcp.PATH}",
                "scopes": {name: SCOPES[name] for name in CREDENTIAL_SCOPES["access_token"]},
                "obtain": f"{origin}/contact/",
            },
            "auth_md": f"{origin}/auth.md",
            "access_requests": f"{origin}{paths.REQUEST_ACCESS}",
        },
        "mcp": {
            "url": f"{origin}{mcp.PATH}",
            "transport": "streamable-http",
            "protocol_versions": list(mcp.REVISIONS),
            "server_card": f"{origin}{paths.SERVER_CARD}",
            "catalog": f"{origin}{paths.AI_CATALOG}",
        },
        "oauth": {
            "issuer": oauth["issuer"],
            "authorization_endpoint": oauth["authorization_endpoint"],
            "token_endpoint": oauth["token_endpoint"],
            "registration_endpoint": oauth["registration_endpoint"],
            "revocation_endpoint": oauth["revocation_endpoint"],
            "jwks_uri": oauth["jwks_uri"],
            "grant_types_supported": oauth["grant_types_supported"],
            "metadata": f"{origin}{paths.METADATA}",
            "protected_resources": [
                f"{origin}{paths.RESOURCE_METADATA}{path}" for path in paths.AUDIENCES.values()
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
    rest, mcp_url = f"{origin}{paths.AUDIENCES['rest']}/", f"{origin}{mcp.PATH}"
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
            {"anchor": f"{origin}{paths.API_CATALOG}", "item": [{"href": rest}, {"href": mcp_url}]},
        ]
    }


def _link(href: str, media_type: str) -> Json:
    return {"href": href, "type": media_type}


def _endpoint(operation: AnyOperation, settings: Settings) -> Json:
    names = (AUTHENTICATED,) if operation.credential == "required" else operation.limits
    rates = list_rates(settings)
    return {
        "method": operation.method,
        "path": operation.path,
        "summary": operation.summary,
        "credential": operation.credential,
        "scope": operation.scope,
        "rate_limit": ";".join(rates[name] for name in names if rates[name] != NO_LIMIT) or None,
    }
