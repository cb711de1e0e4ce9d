"""Operations of the authorization server for programs: metadata, keys, tokens, registration."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final

import orjson
from pydantic import BaseModel, Field, TypeAdapter

from edge_api.auth.tokens import Issuer
from edge_api.oauth.authlib_server import GRANT_TYPES
from edge_api.oauth.client import CLIENT_NAME
from edge_api.oauth.request import MAX_URI_LENGTH, WEB_URI_PATTERN
from edge_api.oauth.server import OAuthServer, resource_metadata, server_metadata
from edge_api.operation.input import form_pairs
from edge_api.operation.model import (
    FORM,
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
    output_schema,
)
from edge_api.schema.paths import (
    AUDIENCES,
    JWKS,
    METADATA,
    REGISTER_CLIENT,
    RESOURCE_METADATA,
    REVOKE,
    TOKEN,
    Audience,
)

_TAG: Final = "oauth"

FormMembers = dict[str, str | list[str]]


class ServerMetadata(BaseModel, extra="allow"):
    """The authorization server (RFC 8414, section 2)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    response_types_supported: list[str]
    grant_types_supported: list[str]
    code_challenge_methods_supported: list[str]
    agent_auth: dict[str, Any]


class ResourceMetadata(BaseModel, extra="allow"):
    """A protected resource (RFC 9728, section 2)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]


class KeySetDocument(BaseModel):
    """Public keys (RFC 7517, section 5)."""

    keys: Annotated[list[dict[str, Any]], Field(min_length=1)]


class TokenAnswer(BaseModel, extra="forbid"):
    """The tokens issued to a client (RFC 6749, section 5.1)."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: str | None = None


class ClientAnswer(BaseModel, extra="forbid"):
    """The response to dynamic client registration (RFC 7591, section 3.2.1)."""

    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: list[str]
    token_endpoint_auth_method: str
    grant_types: list[str]
    response_types: list[str]
    scope: str


async def answer_metadata(
    make: Callable[[Issuer], Any], service: Service, _: OperationRequest[None, None]
) -> OperationResult:
    """Return metadata of the authorization server or of a resource."""
    return _json_document(make(service[OAuthServer].issuer))


async def publish_keys(service: Service, _: OperationRequest[None, None]) -> OperationResult:
    """Return the public keys that verify access tokens."""
    return _json_document(await service[OAuthServer].keys.jwks())


async def issue_token(
    service: Service, request: OperationRequest[None, FormMembers]
) -> OperationResult:
    """Issue an access token, and perhaps a refresh token."""
    server = service[OAuthServer]
    return OperationResult(await server.issue(form_pairs(request.body), request.headers))


async def revoke_token(
    service: Service, request: OperationRequest[None, FormMembers]
) -> OperationResult:
    """Revoke a token."""
    await service[OAuthServer].revoke(form_pairs(request.body), request.headers)
    return OperationResult({})


async def register_client(
    service: Service, request: OperationRequest[None, dict[str, Any]]
) -> OperationResult:
    """Register a public client."""
    answer = await service[OAuthServer].clients.register_dynamic(request.body)
    return OperationResult(answer, status=201)


def _json_document(value: Any) -> OperationResult:
    return OperationResult(Document(orjson.dumps(value), is_cached=False))


def _text(pattern: str, description: str, limit: int = 4096) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern, "maxLength": limit, "description": description}


_ASCII: Final = r"^[ !#-\[\]-~]*$"
"""Printable ASCII without quotation marks and backslashes, which descriptions of errors may repeat
(RFC 6749, section 5.2). Codes, tokens and secrets of this server match it."""
_CLIENT_MEMBERS: Final = {
    "client_id": _text(_ASCII, "Which client asks, unless its credentials say it."),
    "client_secret": _text(_ASCII, "For client_secret_post."),
    "client_assertion_type": {
        "const": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "description": "For private_key_jwt (RFC 7523).",
    },
    "client_assertion": _text(_ASCII, "For private_key_jwt: a JWT that the client signed.", 16384),
}
_BOTH_METHODS: Final = {"required": ["client_secret", "client_assertion"]}
"""A form with two authentication methods, which is refused (RFC 6749, section 2.3)."""
_TOKEN_FORM: Final = object_schema(
    {
        "grant_type": {"enum": list(GRANT_TYPES)},
        "code": _text(_ASCII, "For authorization_code: what came with the redirect."),
        "redirect_uri": _text(_ASCII, "For authorization_code: the same as when it was asked for."),
        "code_verifier": _text(_ASCII, "For authorization_code: what the challenge was made of."),
        "refresh_token": _text(_ASCII, "For refresh_token: each can be used once."),
        "scope": _text(_ASCII, "Fewer scopes than were granted; left out, all of them."),
        "resource": _text(_ASCII, "What the token is for (RFC 8707)."),
        **_CLIENT_MEMBERS,
    },
    "grant_type",
    **{"not": _BOTH_METHODS},
)
_REVOKE_FORM: Final = object_schema(
    {
        # An empty value counts as left out (RFC 6749, section 3.1).
        "token": {**_text(_ASCII, "The token to revoke.", 8192), "minLength": 1},
        "token_type_hint": {"enum": ["access_token", "refresh_token"]},
        **_CLIENT_MEMBERS,
    },
    "token",
    **{"not": _BOTH_METHODS},
)
_CLIENT_SCHEMA: Final = object_schema(
    {
        "redirect_uris": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {
                "type": "string",
                "pattern": f"^{WEB_URI_PATTERN}$",
                "maxLength": MAX_URI_LENGTH,
            },
            "description": "Where browsers may be sent back to: https, or http on a loopback "
            "address, where any port will do; or a private-use scheme that the operator allows.",
        },
        "client_name": {
            **CLIENT_NAME.json_schema("What a person is shown."),
            "type": ["string", "null"],
        },
        "scope": {
            "type": ["string", "null"],
            "maxLength": 1000,
            "description": "Scopes, separated by blanks; unknown ones are left out.",
        },
        "grant_types": {"type": ["array", "null"], "items": {"type": "string"}},
        "response_types": {
            "type": ["array", "null"],
            "items": {"const": "code"},
            "minItems": 1,
            "maxItems": 1,
        },
        "token_endpoint_auth_method": {
            "type": "string",
            "description": "It will be none, whatever is asked for.",
        },
    },
    "redirect_uris",
)


def _resource_metadata(name: str, path: str, audience: Audience | None) -> AnyOperation:
    return Operation(
        name=name,
        path=path,
        summary="Which server issues tokens for this resource (RFC 9728)",
        tag=_TAG,
        handler=partial(answer_metadata, partial(resource_metadata, audience=audience)),
        responses=cacheable("The metadata", output_schema(ResourceMetadata)),
    )


def _form(schema: Mapping[str, Any], example: Mapping[str, str]) -> Body[Any]:
    return Body(TypeAdapter(FormMembers), schema, {"example": example}, media_type=FORM)


OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="oauth_metadata",
        path=METADATA,
        summary="What the authorization server can do (RFC 8414)",
        tag=_TAG,
        handler=partial(answer_metadata, server_metadata),
        responses=cacheable("The metadata", output_schema(ServerMetadata)),
    ),
    _resource_metadata("oauth_resource", RESOURCE_METADATA, None),
    _resource_metadata("oauth_rest_resource", f"{RESOURCE_METADATA}{AUDIENCES['rest']}", "rest"),
    _resource_metadata("oauth_mcp_resource", f"{RESOURCE_METADATA}{AUDIENCES['mcp']}", "mcp"),
    Operation(
        name="oauth_keys",
        path=JWKS,
        summary="The keys that access tokens are signed with (RFC 7517)",
        tag=_TAG,
        handler=publish_keys,
        responses=cacheable("The key set", output_schema(KeySetDocument)),
        problems=("unavailable",),
    ),
    Operation(
        name="oauth_token",
        method="POST",
        path=TOKEN,
        summary="Issue an access token (OAuth 2.1, section 3.2)",
        description="Clients authenticate by HTTP Basic, by form members, or by an assertion.",
        tag=_TAG,
        error_format="oauth",
        limit="token",
        handler=issue_token,
        returns_secret=True,
        body=_form(_TOKEN_FORM, {"grant_type": "client_credentials"}),
        responses=(SuccessResponse(200, "The token", output_schema(TokenAnswer)),),
        problems=("unauthenticated", "unavailable"),
    ),
    Operation(
        name="oauth_revoke",
        method="POST",
        path=REVOKE,
        summary="Revoke a token (RFC 7009)",
        description="A refresh token ends with all that its grant gave, an access token alone.",
        tag=_TAG,
        error_format="oauth",
        limit="token",
        handler=revoke_token,
        body=_form(_REVOKE_FORM, {"token": "fe_rt_..."}),
        responses=(SuccessResponse(200, "The token is revoked", {"type": "object"}),),
        problems=("unauthenticated", "unavailable"),
    ),
    Operation(
        name="oauth_register",
        method="POST",
        path=REGISTER_CLIENT,
        summary="Register a public client (RFC 7591)",
        description="Clients that can should name themselves by the URL of a document instead. "
        "One that never gets a token is forgotten after a day.",
        tag=_TAG,
        error_format="oauth",
        limit="token",
        handler=register_client,
        body=Body(
            TypeAdapter(dict[str, Any]),
            _CLIENT_SCHEMA,
            {
                "agent": {
                    "client_name": "An agent",
                    "redirect_uris": ["http://127.0.0.1/callback"],
                    "token_endpoint_auth_method": "none",
                }
            },
        ),
        responses=(SuccessResponse(201, "The client", output_schema(ClientAnswer)),),
        problems=("unavailable",),
    ),
)
