"""The authorization server: its parts, its metadata, and the deletion of expired rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from edge_api.auth.actor import Clock
from edge_api.auth.tokens import AccessTokenValidator, Issuer, SigningKeys
from edge_api.db.internal_tables import (
    AUTHORIZATION_CODES,
    OAUTH_CLIENTS,
    OAUTH_GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
)
from edge_api.db.query import Delete, Filter, Read, Store
from edge_api.db.table import Table
from edge_api.db.transfer import read_pages
from edge_api.db.types import format_instant
from edge_api.oauth.authlib_server import (
    ASSERTION_ALGORITHMS,
    AUTH_METHODS,
    GRANT_TYPES,
    REFRESH_TOKEN_LIFETIME,
)
from edge_api.oauth.client import Fetch
from edge_api.oauth.clients import NOT_REVOKED, UNUSED, UNVETTED, Clients, delete_clients
from edge_api.oauth.consents import Consents
from edge_api.oauth.request import ConsentCsrf
from edge_api.oauth.token_endpoint import TokenEndpoint
from edge_api.schema.credentials import SCOPES
from edge_api.schema.paths import (
    AUDIENCES,
    AUTHORIZE,
    CLAIM_CREDENTIAL,
    JWKS,
    REGISTER_CLIENT,
    REQUEST_ACCESS,
    REVOKE,
    TOKEN,
    Audience,
)

RETENTION_AFTER_EXPIRY: Final[Mapping[Table, timedelta]] = {
    # As long as something that a replay would revoke may live.
    AUTHORIZATION_CODES: REFRESH_TOKEN_LIFETIME,
    REFRESH_TOKENS: REFRESH_TOKEN_LIFETIME,
    REVOKED_TOKENS: timedelta(0),
    USED_ASSERTIONS: timedelta(0),
}
"""The time that a row is stored after it expired."""
UNUSED_CLIENT_RETENTION: Final = timedelta(days=1)
"""The time that an unvetted client without a token is stored."""
IDLE_CLIENT_RETENTION: Final = timedelta(days=180)
"""The time that an unvetted client is stored after its last token."""
GRANT_BATCH: Final = 500


async def _delete_expired(store: Store, now: datetime) -> None:
    for table, retention in RETENTION_AFTER_EXPIRY.items():
        expired = (Filter("expires_at", "lte", format_instant(now - retention)),)
        (result,) = await store.run(Read(table, ("id",), expired, limit=1))
        if result.rows:  # no write without need
            await store.run(Delete(table, expired))


async def _delete_idle_clients(store: Store, now: datetime) -> None:
    never = (*UNUSED, Filter("created_at", "lt", format_instant(now - UNUSED_CLIENT_RETENTION)))
    last_used = Filter("last_used_at", "lt", format_instant(now - IDLE_CLIENT_RETENTION))
    for where in (never, (UNVETTED, NOT_REVOKED, last_used)):
        (result,) = await store.run(Read(OAUTH_CLIENTS, ("id",), where, limit=1))
        if result.rows:
            await delete_clients(store, where, now)


async def _delete_grants(store: Store, now: datetime) -> None:
    """Delete old grants without codes and refresh tokens."""
    old = Filter("created_at", "lte", format_instant(now - 2 * REFRESH_TOKEN_LIFETIME))
    async for rows in read_pages(store, Read(OAUTH_GRANTS, ("id",), (old,)), GRANT_BATCH):
        grants = [row["id"] for row in rows]
        theirs = (Filter("grant_id", "in", tuple(grants)),)
        tables = (AUTHORIZATION_CODES, REFRESH_TOKENS)
        found = await store.run(*(Read(table, ("grant_id",), theirs) for table in tables))
        in_use = {row["grant_id"] for each in found for row in each.rows}
        unused = tuple(grant for grant in grants if grant not in in_use)
        if unused:
            await store.run(Delete(OAUTH_GRANTS, (Filter("id", "in", unused),)))


@dataclass(frozen=True, slots=True)
class OAuthConfig:
    """The configuration of an authorization server."""

    store: Store
    clock: Clock
    site_url: str
    secret: bytes
    fetch: Fetch  # fetches documents of clients
    redirect_schemes: tuple[str, ...] = ()  # private-use schemes that redirects may have


class OAuthServer:
    """One authorization server."""

    def __init__(self, config: OAuthConfig) -> None:
        store, clock = config.store, config.clock
        self.issuer = Issuer(config.site_url)
        self.clients = Clients(store, clock, config.fetch, config.redirect_schemes)
        self.keys = SigningKeys(store, clock, config.secret)
        self.tokens = TokenEndpoint(self.issuer, store, clock, self.clients, self.keys)
        self.consents = Consents(self.issuer, store, clock, self.clients.find)
        self.csrf = ConsentCsrf(config.secret)
        self.token_validator = AccessTokenValidator(self.issuer, store, self.keys)
        self._store = store
        self._clock = clock

    async def delete_expired(self) -> None:
        """Rotate signing keys, and delete idle clients and expired rows. Raises Problem."""
        await self.keys.maintain()
        await _delete_idle_clients(self._store, self._clock())
        await _delete_expired(self._store, self._clock())

    async def sweep(self) -> None:
        """Delete unused grants. This reads all grants, so run it seldom. Raises Problem."""
        await _delete_grants(self._store, self._clock())


_NAMES: dict[Audience, str] = {"rest": "Public API", "mcp": "Model Context Protocol endpoint"}


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
        "grant_types_supported": list(GRANT_TYPES),
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
    """Return the metadata for agents without an account, with the members of auth.md."""
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


def resource_metadata(issuer: Issuer, audience: Audience | None = None) -> dict[str, Any]:
    """Return the metadata of one audience, or of the whole origin (RFC 9728, section 2)."""
    return {
        "resource": f"{issuer.url}{AUDIENCES[audience]}" if audience else issuer.url,
        "resource_name": _NAMES[audience] if audience else "Fore-edge",
        "authorization_servers": [issuer.url],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{issuer.url}/auth.md",
    }
