"""What the authorization server and its resources say of themselves (RFC 8414, RFC 9728)."""

from typing import Any

from edge_api.domain.oauth.grants import ASSERTION_ALGORITHMS, AUTH_METHODS, GRANTS
from edge_api.domain.oauth.issuer import Issuer
from edge_api.schema.credentials import SCOPES
from edge_api.schema.paths import (
    AUTHORIZE,
    CLAIM_CREDENTIAL,
    DOORS,
    JWKS,
    REGISTER_CLIENT,
    REQUEST_ACCESS,
    REVOKE,
    TOKEN,
    Door,
)

_NAMES: dict[Door, str] = {"rest": "Public API", "mcp": "Model Context Protocol endpoint"}


def server_metadata(issuer: Issuer, agent_auth: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of the server (RFC 8414, section 2)."""
    url = issuer.url
    return {
        "issuer": url,
        "authorization_endpoint": f"{url}{AUTHORIZE}",
        "token_endpoint": f"{url}{TOKEN}",
        "registration_endpoint": f"{url}{REGISTER_CLIENT}",
        "revocation_endpoint": f"{url}{REVOKE}",
        "jwks_uri": f"{url}{JWKS}",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANTS),
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "token_endpoint_auth_signing_alg_values_supported": list(ASSERTION_ALGORITHMS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_signing_alg_values_supported": list(ASSERTION_ALGORITHMS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "service_documentation": f"{url}/auth.md",
        "agent_auth": agent_auth,
    }


def agent_auth(issuer: Issuer) -> dict[str, Any]:
    """Return how an agent without an account asks for a credential, in the words of auth.md."""
    requests, claims = f"{issuer.url}{REQUEST_ACCESS}", f"{issuer.url}{CLAIM_CREDENTIAL}"
    return {
        "skill": f"{issuer.url}/auth.md",
        "register_uri": requests,
        "claim_uri": claims,
        # The same two, as later drafts of auth.md call them.
        "identity_endpoint": requests,
        "claim_endpoint": claims,
        "identity_types_supported": ["anonymous"],
        "anonymous": {"credential_types_supported": ["api_key", "access_token"]},
    }


def resource_metadata(issuer: Issuer, door: Door | None = None) -> dict[str, Any]:
    """Return the metadata of one door, or of the whole origin (RFC 9728, section 2)."""
    return {
        "resource": f"{issuer.url}{DOORS[door]}" if door else issuer.url,
        "resource_name": _NAMES[door] if door else "Fore-edge",
        "authorization_servers": [issuer.url],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{issuer.url}/auth.md",
    }
