"""Issuing and revoking tokens: read the context, decide the request, write the decision.

Two requests that would use the same code or token at once meet in the store: one writes, the other
finds a conflict, reads again, and sees a replay.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import (  # type: ignore[import-untyped]
    InvalidGrantError,
    InvalidRequestError,
)

from edge_api.auth.actor import AuditChange, Clock, audit_entry
from edge_api.auth.tokens import AccessToken, Issuer, SigningKeys, is_jwt, read
from edge_api.db.internal_tables import OAUTH_CLIENTS, OAUTH_GRANTS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Query, Store, Update
from edge_api.db.table import Row
from edge_api.oauth.authlib_server import AUTH_METHODS, UNKNOWN_CLIENT, AuthorizationServer
from edge_api.oauth.client import client_actor
from edge_api.oauth.clients import Clients
from edge_api.oauth.request import AuthRequest
from edge_api.oauth.token_context import (
    BASIC,
    PresentedSecret,
    TokenContext,
    basic_client,
    client_ids,
    oauth_problem,
    read_context,
)
from edge_api.outbox import run_unless_conflict

_ATTEMPTS: Final = 3
"""Attempts to decide a request when writes conflict."""

Pairs = Sequence[tuple[str, str]]
Decide = Callable[[AuthorizationServer, AuthRequest], Row]


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """The token endpoint and the revocation endpoint."""

    issuer: Issuer
    store: Store
    clock: Clock
    clients: Clients
    keys: SigningKeys

    async def issue(self, pairs: Pairs, headers: Mapping[str, str]) -> Row:
        """Return the answer to a token request (RFC 6749, 5.1). Raises Problem (5.2)."""
        return await self._run(pairs, headers, _issue, _presented)

    async def revoke(self, pairs: Pairs, headers: Mapping[str, str]) -> None:
        """Revoke a refresh token's grant, or an access token (RFC 7009, 2). Raises Problem."""
        text = dict(pairs).get("token", "")
        verification_keys = await self.keys.verification_keys() if is_jwt(text) else None
        token = read(text, self.issuer.url, verification_keys) if verification_keys else None

        def presented(request: AuthRequest) -> PresentedSecret:
            return PresentedSecret("refresh_token", request.form.get("token"))

        await self._run(pairs, headers, partial(_revoke, token), presented)

    async def _run(
        self,
        pairs: Pairs,
        headers: Mapping[str, str],
        decide: Decide,
        presented: Callable[[AuthRequest], PresentedSecret],
    ) -> Row:
        for _ in range(_ATTEMPTS):
            request = AuthRequest(pairs, headers)
            context = await self._read_context(request, presented(request))
            server = AuthorizationServer(self.issuer, context, await self.keys.signing_key())
            outcome = _attempt(server, request, decide)
            final = _final_queries(context, request, outcome)
            if await run_unless_conflict(self.store, *server.queries, *final):
                if isinstance(outcome, Problem):
                    raise outcome
                return outcome
        raise Problem("unavailable", "Others use this at the same moment: try again")

    async def _read_context(self, request: AuthRequest, presented: PresentedSecret) -> TokenContext:
        """Return the context, after fetching the client's document if stale. Raises Problem.

        A document is only fetched for a code or token of its client: otherwise anybody could make
        this service send requests.
        """
        load = partial(
            read_context, self.store, self.clock, self.clients.look_up, request, presented
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


def _presented(request: AuthRequest) -> PresentedSecret:
    match request.payload.grant_type:
        case "authorization_code":
            return PresentedSecret("code", request.form.get("code"))
        case "refresh_token":
            return PresentedSecret("refresh_token", request.form.get("refresh_token"))
    return PresentedSecret("nothing", None)


def _attempt(server: AuthorizationServer, request: AuthRequest, decide: Decide) -> Row | Problem:
    try:
        _require_one_method(request)
        return decide(server, request)
    except OAuth2Error as error:
        return oauth_problem(error)
    except ValueError:  # what a library could not read of a header or an assertion
        message = "The client's credentials cannot be read"
        return Problem("unauthenticated", message, oauth="invalid_client", headers=BASIC)


def _issue(server: AuthorizationServer, request: AuthRequest) -> Row:
    if not request.payload.grant_type:
        raise InvalidRequestError("Missing grant_type")
    grant = server.get_token_grant(request)
    grant.validate_token_request()
    answer: Row = grant.create_token_response()[1]
    return answer


def _revoke(token: AccessToken | None, server: AuthorizationServer, request: AuthRequest) -> Row:
    """Revoke an access token; without one, the grant of the context."""
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
    basic = basic_client(request.headers)
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
        actor = client_actor(known[0]) if known else UNKNOWN_CLIENT
        return (audit_entry(actor, AuditChange("refuse", OAUTH_GRANTS, 0), context.now),)
    client = request.client
    if client is None:
        return ()
    where = (Filter("id", "eq", client.client_id),)
    return (Update(OAUTH_CLIENTS, {"last_used_at": context.timestamp}, where),)
