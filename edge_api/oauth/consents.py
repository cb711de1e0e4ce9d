"""Consent: a person decides whether a client may act in their name.

The only accounts are API keys: the holder of a key may grant a client some of its scopes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from urllib.parse import urlencode

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]

from edge_api.auth.actor import Actor, Clock, audit_entry, new_id
from edge_api.auth.keys import confirm_scopes
from edge_api.auth.secrets import hash_secret, mint
from edge_api.auth.tokens import Issuer
from edge_api.db.internal_tables import AUTHORIZATION_CODES, OAUTH_GRANTS
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Store
from edge_api.db.types import format_instant
from edge_api.oauth.authlib_server import UNKNOWN_CLIENT_ACTOR, AuthorizationServer
from edge_api.oauth.client import Client, FindClient, TokenContext, client_actor, oauth_problem
from edge_api.oauth.request import (
    KNOWN_PARAMETERS,
    MAX_VALUE_LENGTH,
    AuthRequest,
    is_local_redirect,
)
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES
from edge_api.schema.paths import AUDIENCES
from edge_api.schema.sentences import sentence

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """A valid authorization request, for the consent page."""

    client: Client
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    state: str | None
    challenge: str
    pairs: Pairs  # the request's parameters, which the form sends again with the decision


@dataclass(frozen=True, slots=True)
class ErrorRedirect:
    """The redirect that reports an invalid request to the client."""

    location: str
    is_trusted: bool
    """Whether the operator registered the client, or it runs on the person's own machine. Else
    a page links to it, since anybody could misuse redirects (RFC 9700, section 4.11.2)."""


class Consents:
    """Checks authorization requests, and stores grants."""

    def __init__(self, issuer: Issuer, store: Store, clock: Clock, find: FindClient) -> None:
        self._issuer = issuer
        self._store = store
        self._clock = clock
        self._find = find

    async def read(self, pairs: Pairs) -> ConsentRequest | ErrorRedirect:
        """Return the valid request, or the redirect that reports its error.

        Raises Problem if the client is unknown or did not register the redirect URI: then the
        browser must not be redirected. Each refusal is in the audit log.
        """
        pairs = tuple((name, value) for name, value in pairs if name in KNOWN_PARAMETERS and value)
        named = dict(pairs)
        client = await self._require_client(named.get("client_id"))
        try:
            redirect_uri = _find_redirect_uri(client, pairs)
        except Problem:
            await self.audit_refusal(client)
            raise
        try:
            request = AuthRequest(pairs, {}, method="GET")
            context = TokenContext(self._clock(), {client.client_id: client})
            server = AuthorizationServer(self._issuer, context)
            server.get_consent_grant(request)
            return ConsentRequest(
                client=client,
                redirect_uri=redirect_uri,
                resource=server.check_target(request, self._issuer.resources),
                scopes=tuple(request.scope.split()),
                state=request.payload.state,
                challenge=request.payload.data["code_challenge"],
                pairs=pairs,
            )
        except OAuth2Error as error:
            problem = oauth_problem(error)
        except Problem as found:
            problem = found
        await self.audit_refusal(client)
        answer = {"error": problem.oauth, "error_description": problem.message}
        location = self._redirect_to(redirect_uri, answer, named.get("state"))
        is_trusted = client.row["kind"] == "registered" or is_local_redirect(redirect_uri)
        return ErrorRedirect(location, is_trusted)

    async def allow(self, request: ConsentRequest, owner: Actor, chosen: Iterable[str]) -> str:
        """Grant the chosen scopes that the owner's key has; return the redirect.

        Raises Problem `invalid` if no scope remains, if access to MCP lacks the scope `mcp`, and
        for publishing with enquiries, unless that is chosen too.
        """
        allowed = (owner.scopes | {PUBLISH_WITH_ENQUIRIES}).intersection(chosen)
        offered = (*request.scopes, PUBLISH_WITH_ENQUIRIES)
        scopes = confirm_scopes(name for name in offered if name in allowed)
        if request.resource.endswith(AUDIENCES["mcp"]) and "mcp" not in scopes:
            raise Problem(
                "invalid", sentence("Access to MCP needs the scope mcp: use a key that has it")
            )
        if not scopes:
            raise Problem(
                "invalid", sentence("Choose at least one thing that your key may do itself")
            )
        code = await self._grant(request, owner, scopes)
        return self._redirect_to(request.redirect_uri, {"code": code}, request.state)

    async def deny(self, request: ConsentRequest) -> str:
        """Write the denial into the audit log; return the redirect."""
        await self.audit_refusal(request.client)
        error = {"error": "access_denied", "error_description": "The person did not allow it"}
        return self._redirect_to(request.redirect_uri, error, request.state)

    async def audit_refusal(self, client: Client | None) -> None:
        """Write the refusal of a grant into the audit log. Raises Problem."""
        actor = client_actor(client) if client else UNKNOWN_CLIENT_ACTOR
        await self._store.run(audit_entry(actor, "refuse", OAUTH_GRANTS, 0, self._clock()))

    async def _require_client(self, client_id: str | None) -> Client:
        if not client_id:
            raise Problem("invalid", sentence("The address names no client: client_id is missing"))
        client = None
        unknown = Problem("forbidden", sentence("No client is known by that client_id"))
        try:
            client = await self._find(client_id)
        except Problem as problem:
            if problem.code != "invalid":
                raise
            unknown = Problem("forbidden", problem.message)
        if client is None:
            await self.audit_refusal(None)
            raise unknown
        return client

    async def _grant(self, request: ConsentRequest, owner: Actor, scopes: tuple[str, ...]) -> str:
        """Store a grant and the code for it; return the code."""
        now, code = self._clock(), mint("authorization_code")
        timestamp, make_id = format_instant(now), partial(new_id, now)
        granted = {
            "client_id": request.client.client_id,
            "credential_id": owner.credential_id,
            "scopes": " ".join(scopes),
            "resource": request.resource,
        }
        grant = OAUTH_GRANTS.new_row(granted, timestamp, make_id)
        given = {
            "id": hash_secret(code),
            "grant_id": grant["id"],
            "redirect_uri": request.redirect_uri,
            "challenge": request.challenge,
            "expires_at": format_instant(now + timedelta(seconds=60)),
        }
        row = AUTHORIZATION_CODES.new_row(given, timestamp, make_id)
        actor = replace(owner, client_id=request.client.client_id)
        audit = audit_entry(actor, "grant", OAUTH_GRANTS, 1, now)
        await self._store.run(
            Insert(OAUTH_GRANTS, [grant]), Insert(AUTHORIZATION_CODES, [row]), audit
        )
        return code

    def _redirect_to(self, redirect_uri: str, answer: dict[str, str], state: str | None) -> str:
        """Return the redirect URI with an answer, the state and the issuer (RFC 9207)."""
        if state is not None and 0 < len(state) <= MAX_VALUE_LENGTH:
            answer = {**answer, "state": state}
        separator = "&" if "?" in redirect_uri else "?"
        return f"{redirect_uri}{separator}{urlencode({**answer, 'iss': self._issuer.url})}"


def _find_redirect_uri(client: Client, pairs: Pairs) -> str:
    """Return the redirect URI of a request. Raises Problem if it is not one of the client."""
    named = [value for name, value in pairs if name == "redirect_uri"]
    if not named and (default := client.get_default_redirect_uri()):
        return default
    if len(named) != 1:
        raise Problem("forbidden", sentence("The address must name one redirect_uri of its client"))
    if not client.check_redirect_uri(named[0]):
        raise Problem("forbidden", sentence("The client did not register this redirect_uri"))
    return named[0]
