"""The operations of the MCP endpoint and of its discovery, without the SDK.

The endpoint speaks JSON-RPC, and `McpEndpoint` answers it; it is declared as an operation so that
the description of the API includes it.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import orjson
from pydantic import TypeAdapter

from edge_api.analysis import operations as analyze
from edge_api.db.problems import Problem
from edge_api.journal.builds import Build, BuildManager
from edge_api.operation.model import (
    JSON,
    AnyOperation,
    Body,
    Document,
    Operation,
    OperationRequest,
    OperationResult,
    Service,
    SuccessResponse,
    cacheable,
    object_schema,
)
from edge_api.schema.environment import VERSION
from edge_api.schema.paths import AI_CATALOG, AUDIENCES, DOCS, SERVER_CARD, WELL_KNOWN_CARD
from edge_api.schema.writing import MAX_TEXT_BYTES
from edge_api.settings import is_loopback

MAX_ID_LEN: Final = 256  # characters; clients get it back, and log it
MAX_BATCH: Final = 50  # messages
ID_RANGE: Final = range(-(2**63), 2**63)
"""The numbers that an id may be; larger ones are parsed as floats (RFC 8259, section 6)."""

_URI: Final = {"type": "string", "format": "uri"}
_STRING: Final = {"type": "string"}
_MESSAGE_SCHEMA: Final = object_schema(
    {
        "jsonrpc": {"const": "2.0"},
        "id": {
            "type": ["string", "integer"],
            "maxLength": MAX_ID_LEN,
            "minimum": ID_RANGE[0],
            "maximum": ID_RANGE[-1],
            "description": "Given back.",
        },
        "method": {"type": "string", "description": "Such as `tools/list` or `tools/call`."},
        "params": {"type": ["object", "null"], "description": "As the method wants them."},
    },
    "jsonrpc",
    "method",
    description="A JSON-RPC 2.0 request, or without `id` a notification.",
)
_RESPONSE_SCHEMA: Final = object_schema(
    {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "result": {"type": "object"},
        "error": object_schema(
            {"code": {"type": "integer"}, "message": _STRING, "data": {}}, "code", "message"
        ),
    },
    "jsonrpc",
    "id",
    description="A JSON-RPC 2.0 response: a result, or an error of the method.",
    oneOf=[{"required": ["result"]}, {"required": ["error"]}],
    additionalProperties=False,
)
_STRINGS: Final = {"type": "array", "items": _STRING}
_REMOTE_MEMBERS: Final = {
    "type": {"const": "streamable-http"},
    "url": _URI,
    "supportedProtocolVersions": _STRINGS,
}
_CARD_MEMBERS: Final = {
    "$schema": _URI,
    "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
    "version": _STRING,
    "title": _STRING,
    "description": {"type": "string", "maxLength": 100},
    "websiteUrl": _URI,
    "icons": {"type": "array", "items": object_schema({"src": _URI}, "src")},
    "remotes": {"type": "array", "items": object_schema(_REMOTE_MEMBERS, *_REMOTE_MEMBERS)},
}
_CARD_REQUIRED: Final = ("$schema", "name", "version", "description", "remotes")
_DRAFT_MEMBERS: Final = {
    key: {"type": "object"} for key in ("serverInfo", "transport", "capabilities")
}
"""Members of the server card that only drafts of the extension define."""
_CATALOG_ENTRY: Final = object_schema(
    {
        "identifier": {"type": "string", "pattern": "^urn:air:"},
        **dict.fromkeys(("displayName", "type"), _STRING),
        "url": _URI,
        **dict.fromkeys(("description", "version"), _STRING),
        "tags": _STRINGS,
        "representativeQueries": {**_STRINGS, "minItems": 2, "maxItems": 5},
    },
    "identifier",
    "displayName",
    "type",
    "url",
)
CATALOG_SCHEMA: Final = object_schema(
    {
        "specVersion": _STRING,
        "host": object_schema(
            {
                **dict.fromkeys(("displayName", "identifier"), _STRING),
                **dict.fromkeys(("documentationUrl", "logoUrl"), _URI),
            },
            "displayName",
        ),
        "entries": {"type": "array", "items": _CATALOG_ENTRY},
    },
    "specVersion",
    "entries",
)


PATH: Final = AUDIENCES["mcp"]
CARD_TYPE: Final = "application/mcp-server-card+json"
CATALOG_TYPE: Final = "application/ai-catalog+json"
REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Supported revisions of the protocol, the oldest first."""
PRODUCT_NAME: Final = "fore-edge"
SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
DEFAULT_TITLE: Final = "Journal"  # the title while there is no build that names the site
SERVER_DESCRIPTION: Final = (
    "Read and search a journal's posts; create and list leads; read administrative tables."
)

# The headers are documented in prose: as OpenAPI parameters they would be combined with every
# example body.
_ABOUT: Final = f"""\
One JSON-RPC message. The protocol's two eras are supported: revisions {REVISIONS[0]} to
{REVISIONS[-2]} without a session, so that every request stands alone, and {REVISIONS[-1]}, whose
requests say revision, capabilities and method in `params._meta` and again in the headers
`MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name`. Without `MCP-Protocol-Version` the
revision is 2025-03-26, the one that has batches: an array of up to {MAX_BATCH} messages, each of
which counts as a request, is answered with an array.

The answer is JSON; with `subscriptions/listen`, or where progress is reported, a stream of events,
for which `Accept` has to name `text/event-stream` beside `application/json`. Only access tokens are
taken. Each tool needs a scope of its own beside `mcp`: without it a tool is not listed, and calling
it is 403."""


def server_name(site_url: str) -> str:
    """Return the name of the server: the reversed domain, a slash, the product."""
    return f"{'.'.join(reversed(_host_name(site_url).split('.')))}/{PRODUCT_NAME}"


class Identity(NamedTuple):
    """The site as agents see it; `icon` is the URL of the theme's icon, `""` without one."""

    site_url: str
    title: str = DEFAULT_TITLE
    icon: str = ""

    @property
    def icons(self) -> list[dict[str, Any]]:
        """The icon in MCP's format, in a list that is empty without one."""
        return (
            [{"src": self.icon, "mimeType": "image/svg+xml", "sizes": ["any"]}] if self.icon else []
        )


_identities: WeakKeyDictionary[Build, Identity] = WeakKeyDictionary()


def identify(service: Service) -> Identity:
    """Return the identity of the site in the current build."""
    build, site_url = service[BuildManager].current, service.settings.site_url
    if build is None:
        return Identity(site_url)
    if build not in _identities:
        icons = [
            f"{site_url}{path}"
            for path in build.files
            if re.fullmatch(r"/theme/icon(\.[0-9a-f]+)?\.svg", path)
        ]
        _identities[build] = Identity(site_url, build.head.site_title, *icons[:1])
    return _identities[build]


def _host_name(site_url: str) -> str:
    """Return the host of the site, with hyphens for the colons of an IPv6 address."""
    return (urlsplit(site_url).hostname or "localhost").replace(":", "-")


def server_card(site: Identity) -> Document:
    """Return the server card (SEP-2127), which describes how to connect."""
    return Document(orjson.dumps(_describe_server(site)), CARD_TYPE, is_cached=False)


def well_known_card(site: Identity) -> Document:
    """Return the card with members for clients of drafts of the extension."""
    card = _describe_server(site)
    info = ("name", "title", "version", "icons")
    earlier = {
        "serverInfo": {name: card[name] for name in info if name in card},
        "transport": {"type": "streamable-http", "endpoint": f"{site.site_url}{PATH}"},
        "capabilities": {
            **{name: {} for name in ("tools", "resources", "prompts", "completions")},
            "extensions": {SKILLS_EXTENSION: {}},
        },
    }
    return Document(orjson.dumps({**card, **earlier}), is_cached=False)


def _describe_server(site: Identity) -> dict[str, Any]:
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": server_name(site.site_url),
        "version": VERSION,
        "title": site.title,
        "description": SERVER_DESCRIPTION,
        "websiteUrl": f"{site.site_url}/",
        **({"icons": site.icons} if site.icons else {}),
        "remotes": [
            {
                "type": "streamable-http",
                "url": f"{site.site_url}{PATH}",
                "supportedProtocolVersions": list(REVISIONS),
            }
        ],
    }


def ai_catalog(site: Identity) -> Document:
    """Return the catalog that links to the server card."""
    host = _host_name(site.site_url)
    entry = {
        "identifier": f"urn:air:{host}:mcp:{PRODUCT_NAME}",
        "displayName": site.title,
        "type": CARD_TYPE,
        "url": f"{site.site_url}{SERVER_CARD}",
        "description": SERVER_DESCRIPTION,
        "tags": ["journal", "search", "reading"],
        "representativeQueries": [  # by which catalogs find the server
            "Which posts of this journal are about search?",
            "Fetch the newest post and sum it up.",
            "What does this journal say about keeping data safe?",
        ],
        "version": VERSION,
    }
    catalog = {
        "specVersion": "1.0",
        "host": {
            "displayName": site.title,
            "identifier": host,
            "documentationUrl": f"{site.site_url}{DOCS}",
            **({"logoUrl": site.icon} if site.icon else {}),
        },
        "entries": [entry],
    }
    return Document(orjson.dumps(catalog), CATALOG_TYPE, is_cached=False)


async def answer_document(
    make: Callable[[Identity], Document], service: Service, _: OperationRequest[None, None]
) -> OperationResult:
    """Return a document about the site."""
    return OperationResult(make(identify(service)))


def check_origin(service: Service, headers: Mapping[str, str], _peer: str) -> None:
    """Raise Problem `forbidden` for a request from a page of another origin.

    Pages of the site and of this machine may call the endpoint; programs send no origin (MCP
    2026-07-28, transports, security).
    """
    for origin in headers.get("Origin", service.settings.site_url).split(", "):
        if origin != service.settings.site_url and not _is_local(origin):
            raise Problem("forbidden", "Pages of this origin may not call the MCP endpoint")


def _is_local(origin: str) -> bool:
    try:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and is_loopback(parts.hostname or "")
    except ValueError:
        return False


async def reject_direct_call(
    _service: Service, _request: OperationRequest[Any, Any]
) -> OperationResult:
    """Raise Problem `internal`: `McpEndpoint` handles this operation."""
    raise Problem("internal")


MAX_MESSAGE_BYTES: Final = analyze.MAX_BODY + 16 * 1024
"""The size of the largest argument of a tool and of the message around it."""
MAX_DRAFT_MESSAGE_BYTES: Final = 3 * MAX_TEXT_BYTES + 16 * 1024
"""The same where drafts may be written: a text of 1 MiB, whose letters JSON may escape."""
BODY: Final = Body(
    TypeAdapter(dict[str, Any]),
    # One message, or a batch; an invalid item of a batch gets an error.
    {
        "anyOf": [
            _MESSAGE_SCHEMA,
            {"type": "array", "minItems": 1, "maxItems": MAX_BATCH, "items": {}},
        ]
    },
    {
        "list": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        "call": {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "journal"}},
        },
    },
    max_bytes=MAX_MESSAGE_BYTES,
)

MCP: Final = Operation(
    name="mcp",
    method="POST",
    path=PATH,
    summary="The Model Context Protocol: tools, resources and prompts for agents",
    description=_ABOUT,
    tag="mcp",
    credential="required",
    scope="mcp",
    audience="mcp",
    error_format="jsonrpc",
    handler=reject_direct_call,
    check_sender=check_origin,
    body=BODY,
    responses=(
        SuccessResponse(
            200,
            "The response, or a stream of events with the response last",
            {"anyOf": [_RESPONSE_SCHEMA, {"type": "array", "items": _RESPONSE_SCHEMA}]},
            media_types=(JSON, "text/event-stream"),
        ),
        SuccessResponse(202, "The notification is taken"),
    ),
    problems=("forbidden", "not_found", "not_acceptable"),
)
OPERATIONS: tuple[AnyOperation, ...] = (
    MCP,
    Operation(
        name="mcp_server_card",
        path=SERVER_CARD,
        summary="How to connect to the MCP endpoint (SEP-2127)",
        tag="mcp",
        handler=partial(answer_document, server_card),
        responses=cacheable(
            "The card",
            object_schema(_CARD_MEMBERS, *_CARD_REQUIRED, additionalProperties=False),
            media_types=(CARD_TYPE,),
        ),
    ),
    Operation(
        name="mcp_well_known_server_card",
        path=WELL_KNOWN_CARD,
        summary="The server card for clients that look for it in the root",
        tag="mcp",
        handler=partial(answer_document, well_known_card),
        responses=cacheable(
            "The card",
            object_schema(
                {**_CARD_MEMBERS, **_DRAFT_MEMBERS},
                *_CARD_REQUIRED,
                *_DRAFT_MEMBERS,
                additionalProperties=False,
            ),
        ),
    ),
    Operation(
        name="ai_catalog",
        path=AI_CATALOG,
        summary="What this site offers to agents (AI Catalog)",
        tag="mcp",
        handler=partial(answer_document, ai_catalog),
        responses=cacheable("The catalog", CATALOG_SCHEMA, media_types=(CATALOG_TYPE,)),
    ),
)
