"""The authorization server: its parts, its metadata, and the deletion of expired rows.

Tokens are issued and revoked in three steps: read the context, decide the request, write the
decision. If two requests use the same code or token at once, one writes; the other conflicts in the
store, reads the context again, and is refused as a replay.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import (  # type: ignore[import-untyped]
    InvalidGrantError,
    InvalidRequestError,
)

from edge_api.auth.actor import Clock, audit_entry
from edge_api.auth.credentials import CREDENTIAL_KINDS
from edge_api.auth.tokens import (
    AccessToken,
    AccessTokenValidator,
    Issuer,
    SigningKeys,
    is_jwt,
    read,
)
from edge_api.db.internal_tables import (
    AUTHORIZATION_CODES,
    OAUTH_CLIENTS,
    OAUTH_GRANTS,
    REFRESH_TOKENS,
)
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Query, Read, Store, Update, read_all
from edge_api.db.table import Row, Table
from edge_api.db.transfer import read_pages
from edge_api.db.types import format_instant
from edge_api.oauth.authlib_server import (
    ASSERTION_ALGORITHMS,
    AUTH_METHODS,
    GRANT_TYPES,
    REFRESH_TOKEN_LIFETIME,
    UNKNOWN_CLIENT_ACTOR,
    AuthorizationServer,
)
from edge_api.oauth.client import (
    BASIC_CHALLENGE,
    Fetch,
    TokenContext,
    basic_client_id,
    client_actor,
    client_ids,
    oauth_problem,
    read_context,
)
from edge_api.oauth.clients import NOT_REVOKED, UNUSED, UNVETTED, Clients, delete_clients
from edge_api.oauth.consents import Consents, Pairs
from edge_api.oauth.request import AuthRequest, ConsentCsrf
from edge_api.outbox import run_unless_conflict
from edge_api.schema.credentials import CREDENTIAL_SCOPES, SCOPES
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
from edge_api.settings import Settings

Decide = Callable[[AuthorizationServer, AuthRequest], Row]
"""Decides a request; returns the answer. Raises OAuth2Error, and ValueError for bad input."""
_TOKEN_PARAMETERS: Final[Mapping[str | None, tuple[str, Table]]] = {
    "authorization_code": ("code", AUTHORIZATION_CODES),
    "refresh_token": ("refresh_token", REFRESH_TOKENS),
}
"""The parameter with a code or refresh token, and the table with its digest, by grant type."""


def _attempt(server: AuthorizationServer, request: AuthRequest, decide: Decide) -> Row | Problem:
    try:
        _require_one_method(request)
        return decide(server, request)
    except OAuth2Error as error:
        return oauth_problem(error)
    except ValueError:  # a library could not parse a header or an assertion
        message = "The client's credentials cannot be read"
        return Problem("unauthenticated", message, oauth="invalid_client", headers=BASIC_CHALLENGE)


def _issue(server: AuthorizationServer, request: AuthRequest) -> Row:
    if not request.payload.grant_type:
        raise InvalidRequestError("Missing grant_type")
    grant = server.get_token_grant(request)
    grant.validate_token_request()
    answer: Row = grant.create_token_response()[1]
    return answer


def _revoke(token: AccessToken | None, server: AuthorizationServer, request: AuthRequest) -> Row:
    """Revoke an access token, or if `token` is `None`, the grant of a refresh token."""
    client = request.client = server.authenticate_client(request, AUTH_METHODS, "revocation")
    if "token" not in request.form:
        raise InvalidRequestError("Missing token")
    grant = server.context.grant
    owner = token.client_id if token else grant and grant["client_id"]
    if owner not in (None, client.client_id):
        raise InvalidGrantError
    if token is not None:
        server.revoke_token(token, client)
    else:
        server.revoke_grant(client)
    return {}


def _require_one_method(request: AuthRequest) -> None:
    """Reject a client that uses more than one authentication method (RFC 6749, section 2.3)."""
    basic = basic_client_id(request.headers)
    methods = [basic, request.form.get("client_secret"), request.form.get("client_assertion")]
    if sum(method is not None for method in methods) > 1:
        raise InvalidRequestError("Authenticate the client in one way")
    if len(client_ids(request)) > 1:
        raise InvalidRequestError("Two different clients are named")


def _final_queries(
    context: TokenContext, request: AuthRequest, outcome: Row | Problem
) -> Iterable[Query]:
    """Return the audit entry of a refusal, or the update of the client's last use."""
    if isinstance(outcome, Problem):
        known = [context.clients[name] for name in client_ids(request) if name in context.clients]
        actor = client_actor(known[0]) if known else UNKNOWN_CLIENT_ACTOR
        return (audit_entry(actor, "refuse", OAUTH_GRANTS, 0, context.now),)
    client = request.client
    if client is None:
        return ()
    where = (Filter("id", "eq", client.client_id),)
    return (Update(OAUTH_CLIENTS, {"last_used_at": context.timestamp}, where),)


UNUSED_CLIENT_RETENTION: Final = timedelta(days=1)
"""The time that an unvetted client without a token is stored."""
IDLE_CLIENT_RETENTION: Final = timedelta(days=180)
"""The time that an unvetted client is stored after its last token."""
GRANT_BATCH: Final = 500


class OAuthServer:
    """The authorization server of one site; `fetch` fetches documents of clients."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, secret: bytes, *, fetch: Fetch
    ) -> None:
        self.issuer = Issuer(settings.site_url)
        self.clients = Clients(store, clock, fetch, settings.redirect_schemes)
        self.keys = SigningKeys(store, clock, secret)
        self.consents = Consents(self.issuer, store, clock, self.clients.find)
        self.csrf = ConsentCsrf(secret)
        self.token_validator = AccessTokenValidator(self.issuer, store, self.keys)
        self._store = store
        self._clock = clock

    async def issue(self, pairs: Pairs, headers: Mapping[str, str]) -> Row:
        """Return the answer to a token request (RFC 6749, 5.1). Raises Problem (5.2)."""
        return await self._run(pairs, headers, _issue)

    async def revoke(self, pairs: Pairs, headers: Mapping[str, str]) -> None:
        """Revoke a refresh token's grant, or an access token (RFC 7009, 2). Raises Problem."""
        text = dict(pairs).get("token", "")
        verification_keys = await self.keys.verification_keys() if is_jwt(text) else None
        token = read(text, self.issuer.url, verification_keys) if verification_keys else None
        await self._run(pairs, headers, partial(_revoke, token), ("token", REFRESH_TOKENS))

    async def _run(
        self,
        pairs: Pairs,
        headers: Mapping[str, str],
        decide: Decide,
        token_parameter: tuple[str, Table] | None = None,
    ) -> Row:
        for _ in range(3):  # again after a conflict
            request = AuthRequest(pairs, headers)
            source = token_parameter or _TOKEN_PARAMETERS.get(request.payload.grant_type)
            context = await self._read_context(request, source)
            server = AuthorizationServer(self.issuer, context, await self.keys.signing_key())
            outcome = _attempt(server, request, decide)
            final = _final_queries(context, request, outcome)
            if await run_unless_conflict(self._store, *server.queries, *final):
                if isinstance(outcome, Problem):
                    raise outcome
                return outcome
        raise Problem("unavailable", "Others use this at the same moment: try again")

    async def _read_context(
        self, request: AuthRequest, token_parameter: tuple[str, Table] | None
    ) -> TokenContext:
        """Return the context, after fetching the client's document if stale. Raises Problem.

        A document is only fetched for a code or token of its client: otherwise anybody could make
        this service send requests.
        """
        load = partial(
            read_context,
            self._store,
            self._clock,
            self.clients.find_stored,
            request,
            token_parameter,
        )
        context = await load()
        owner = context.clients.get(context.grant["client_id"]) if context.grant else None
        if owner is None or not owner.needs_refetch(context.timestamp):
            return context
        try:
            await self.clients.find(owner.client_id)
        except Problem as problem:
            if problem.code != "invalid":
                raise
            raise Problem("unauthenticated", problem.message, oauth="invalid_client") from None
        return await load()

    async def maintain(self) -> None:
        """Rotate signing keys, and delete idle clients. Raises Problem."""
        await self.keys.maintain()
        now = self._clock()
        never = (*UNUSED, Filter("created_at", "lt", format_instant(now - UNUSED_CLIENT_RETENTION)))
        last_used = Filter("last_used_at", "lt", format_instant(now - IDLE_CLIENT_RETENTION))
        for where in (never, (UNVETTED, NOT_REVOKED, last_used)):
            if await read_all(self._store, Read(OAUTH_CLIENTS, ("id",), where, limit=1)):
                await delete_clients(self._store, where, now)

    async def sweep(self) -> None:
        """Delete old grants without codes and refresh tokens. Raises Problem.

        This reads all old grants, so run it seldom.
        """
        before = format_instant(self._clock() - 2 * REFRESH_TOKEN_LIFETIME)
        old = Read(OAUTH_GRANTS, ("id",), (Filter("created_at", "lte", before),))
        async for rows in read_pages(self._store, old, GRANT_BATCH):
            grants = tuple(row["id"] for row in rows)
            theirs = (Filter("grant_id", "in", grants),)
            tables = (AUTHORIZATION_CODES, REFRESH_TOKENS)
            found = await self._store.run(*(Read(table, ("grant_id",), theirs) for table in tables))
            in_use = {row["grant_id"] for each in found for row in each.rows}
            if unused := tuple(grant for grant in grants if grant not in in_use):
                await self._store.run(Delete(OAUTH_GRANTS, (Filter("id", "in", unused),)))


def server_metadata(issuer: Issuer) -> dict[str, Any]:
    """Return the metadata of the server (RFC 8414, section 2)."""
    url = issuer.url
    requests, claims = f"{url}{REQUEST_ACCESS}", f"{url}{CLAIM_CREDENTIAL}"
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
        "agent_auth": {  # for agents without an account, as auth.md says
            "skill": f"{url}/auth.md",
            "register_uri": requests,
            "claim_uri": claims,
            # The same two URIs, by the names in later drafts of auth.md.
            "identity_endpoint": requests,
            "claim_endpoint": claims,
            "identity_types_supported": ["anonymous"],
            "anonymous": {"credential_types_supported": ["api_key", "access_token"]},
        },
    }


def resource_metadata(issuer: Issuer, audience: Audience | None = None) -> dict[str, Any]:
    """Return the metadata of one audience, or of the whole origin (RFC 9728, section 2)."""
    names = {"rest": "Public API", "mcp": "Model Context Protocol endpoint", None: "Fore-edge"}
    return {
        "resource": f"{issuer.url}{AUDIENCES[audience]}" if audience else issuer.url,
        "resource_name": names[audience],
        "authorization_servers": [issuer.url],
        "scopes_supported": list(
            CREDENTIAL_SCOPES[CREDENTIAL_KINDS[audience]] if audience else SCOPES
        ),
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{issuer.url}/auth.md",
    }
