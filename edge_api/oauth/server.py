"""One authorization server: its parts, put together, what it forgets in time, and its metadata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from edge_api.auth.actor import Clock
from edge_api.auth.signing_keys import AccessTokenValidator, SigningKeys
from edge_api.auth.tokens import Issuer
from edge_api.db.oauth_tables import (
    AUTHORIZATION_CODES,
    OAUTH_CLIENTS,
    OAUTH_GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
)
from edge_api.db.query import Delete, Filter, Read, Store
from edge_api.db.table import Table
from edge_api.db.transfer import pages
from edge_api.db.types import spell_instant
from edge_api.oauth.authlib_server import REFRESH_LIFE
from edge_api.oauth.client_rows import STRANGERS, UNUSED, forget
from edge_api.oauth.clients import Clients, Fetch
from edge_api.oauth.consents import Consents
from edge_api.oauth.grants import ASSERTION_ALGORITHMS, AUTH_METHODS, GRANTS
from edge_api.oauth.request import FormGuard
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

KEPT_AFTER: Final[Mapping[Table, timedelta]] = {
    # As long as something that a replay would revoke may live.
    AUTHORIZATION_CODES: REFRESH_LIFE,
    REFRESH_TOKENS: REFRESH_LIFE,
    REVOKED_TOKENS: timedelta(0),
    USED_ASSERTIONS: timedelta(0),
}
"""How long a row is kept after it expired."""


UNUSED_FOR: Final = timedelta(days=1)
"""How long a client that made itself known is kept without ever getting a token."""
IDLE_FOR: Final = timedelta(days=180)
"""How long one that had tokens is kept without getting another."""

GRANTS_AT_ONCE: Final = 500
"""Grants that are looked at together."""


async def forget_expired(store: Store, now: datetime) -> None:
    """Delete what expired long enough ago; nothing is written for nothing. Raises Problem."""
    for table, kept in KEPT_AFTER.items():
        expired = (Filter("expires_at", "lte", spell_instant(now - kept)),)
        (outcome,) = await store.run(Read(table, ("id",), expired, limit=1))
        if outcome.rows:
            await store.run(Delete(table, expired))


async def forget_strangers(store: Store, now: datetime) -> None:
    """Delete clients that nobody looked at and that are not used. Raises Problem."""
    never = (*UNUSED, Filter("created_at", "lt", spell_instant(now - UNUSED_FOR)))
    idle = (
        STRANGERS,
        Filter("revoked_at", "is", None),
        Filter("last_used_at", "lt", spell_instant(now - IDLE_FOR)),
    )
    for where in (never, idle):
        (outcome,) = await store.run(Read(OAUTH_CLIENTS, ("id",), where, limit=1))
        if outcome.rows:
            await forget(store, where, now)


async def forget_grants(store: Store, now: datetime) -> None:
    """Delete old grants of which no code and no refresh token is left. Raises Problem."""
    old = Filter("created_at", "lte", spell_instant(now - 2 * REFRESH_LIFE))
    async for rows in pages(store, Read(OAUTH_GRANTS, ("id",), (old,)), GRANTS_AT_ONCE):
        await _forget_unused(store, [row["id"] for row in rows])


async def _forget_unused(store: Store, grants: Sequence[str]) -> None:
    of_them = (Filter("grant_id", "in", tuple(grants)),)
    tables = (AUTHORIZATION_CODES, REFRESH_TOKENS)
    found = await store.run(*(Read(table, ("grant_id",), of_them) for table in tables))
    in_use = {row["grant_id"] for each in found for row in each.rows}
    gone = tuple(grant for grant in grants if grant not in in_use)
    if gone:
        await store.run(Delete(OAUTH_GRANTS, (Filter("id", "in", gone),)))


@dataclass(frozen=True, slots=True)
class OAuthConfig:
    """What a server stands on."""

    store: Store
    clock: Clock
    site_url: str
    secret: bytes
    fetch: Fetch
    """How documents of clients are fetched."""
    redirect_schemes: tuple[str, ...] = ()
    """Private-use schemes that redirects may have."""


class OAuthServer:
    """One authorization server."""

    def __init__(self, ground: OAuthConfig) -> None:
        store, clock = ground.store, ground.clock
        self.issuer = Issuer(ground.site_url)
        self.clients = Clients(store, clock, ground.fetch, ground.redirect_schemes)
        self.keys = SigningKeys(store, clock, ground.secret)
        self.tokens = TokenEndpoint(self.issuer, store, clock, self.clients, self.keys)
        self.consents = Consents(self.issuer, store, clock, self.clients.find)
        self.guard = FormGuard(ground.secret)
        self.bearers = AccessTokenValidator(self.issuer, store, self.keys)
        self._store = store
        self._clock = clock

    async def keep_house(self) -> None:
        """Rotate what has had its time and forget what nobody needs. Raises Problem."""
        await self.keys.tend()
        await forget_strangers(self._store, self._clock())
        await forget_expired(self._store, self._clock())

    async def sweep(self) -> None:
        """Forget grants that nobody uses: once in a while will do, for it looks at all of them."""
        await forget_grants(self._store, self._clock())


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


def resource_metadata(issuer: Issuer, audience: Audience | None = None) -> dict[str, Any]:
    """Return the metadata of one door, or of the whole origin (RFC 9728, section 2)."""
    return {
        "resource": f"{issuer.url}{AUDIENCES[audience]}" if audience else issuer.url,
        "resource_name": _NAMES[audience] if audience else "Fore-edge",
        "authorization_servers": [issuer.url],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{issuer.url}/auth.md",
    }
