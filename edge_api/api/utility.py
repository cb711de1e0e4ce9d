"""The operations that need no credential: liveness, readiness, and what describes the service."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field

from edge_api.api.operation import UNCHANGED, Ask, Operation, Success, output_schema
from edge_api.api.reply import Reply
from edge_api.api.service import Service
from edge_api.schema.paths import API_CATALOG, OPENAPI

PREFIX = "/api/public/v1"
VERSION = "1.0.0"
RETRY_SECONDS = 5
"""After which a client that was told 503 may look again."""

State = Literal["pass", "warn", "fail"]


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
    """What the API is and where everything about it stands."""

    name: Literal["Public API"]
    version: str
    documentation: str
    endpoints: list[EndpointDescription]
    authentication: dict[str, Any]
    oauth: dict[str, Any]
    limits: dict[str, str | None]


class ApiDocument(BaseModel, extra="allow"):
    """An OpenAPI document."""

    openapi: Annotated[str, Field(pattern=r"^3\.1\.\d+$")]
    info: dict[str, Any]
    paths: dict[str, Any]


class Linkset(BaseModel):
    """Links in the form of RFC 9264, section 4.2."""

    linkset: list[dict[str, Any]]


async def ping(_service: Service, _ask: Ask) -> Reply:
    """Say that the process runs, without looking at anything."""
    return Reply({"status": "ok"})


async def readiness(service: Service, _ask: Ask) -> Reply:
    """Say whether every part can do its work; 503 when one cannot."""
    report = await service.health.report()
    if report["ready"]:
        return Reply(report)
    return Reply(report, status=503, headers={"Retry-After": str(RETRY_SECONDS)})


async def describe(service: Service, _ask: Ask) -> Reply:
    """Give the service's description of itself."""
    return Reply(service.papers.description)


async def openapi(service: Service, _ask: Ask) -> Reply:
    """Give the OpenAPI document."""
    edition = service.shelf.current
    return Reply(service.papers.openapi(edition.newest_slug if edition else None))


async def api_catalog(service: Service, _ask: Ask) -> Reply:
    """Give the catalog that leads to the OpenAPI document (RFC 9727)."""
    return Reply(service.papers.api_catalog)


_DESCRIPTION = Success(200, "API info", output_schema(Description))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="ping",
        path="/api/public/ping",
        summary="Liveness: the process runs",
        do=ping,
        successes=(Success(200, "It runs", output_schema(Alive), {"status": "ok"}),),
    ),
    Operation(
        name="readiness",
        path=f"{PREFIX}/readiness",
        summary="Readiness: store, posts index and configuration are in order",
        do=readiness,
        successes=(
            Success(200, "Ready", output_schema(ReadinessReport)),
            Success(
                503,
                "Not ready: a check fails, or the process is shutting down",
                output_schema(ReadinessReport),
                headers={"Retry-After": "Seconds until another look makes sense."},
            ),
        ),
    ),
    Operation(
        name="describe_api",
        path=f"{PREFIX}/",
        summary="What this API is: endpoints, authentication, limits",
        do=describe,
        successes=(_DESCRIPTION, UNCHANGED),
    ),
    Operation(
        name="describe_api_without_slash",
        path=PREFIX,
        summary="The same as with a slash behind it",
        do=describe,
        successes=(_DESCRIPTION, UNCHANGED),
    ),
    Operation(
        name="openapi",
        path=OPENAPI,
        summary="The OpenAPI 3.1 description of every operation",
        do=openapi,
        successes=(Success(200, "The document", output_schema(ApiDocument)), UNCHANGED),
    ),
    Operation(
        name="api_catalog",
        path=API_CATALOG,
        summary="Where the API's descriptions stand (RFC 9727)",
        do=api_catalog,
        successes=(
            Success(
                200, "A linkset", output_schema(Linkset), media_types=("application/linkset+json",)
            ),
            UNCHANGED,
        ),
    ),
)
