"""Tokens handed out and taken back: facts are read, a judge decides, the decision is written.

Two requests that would use the same code or token at once meet in the store: one writes, the other
finds that what it decided on has changed, looks again, and sees that it is a replay.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import (  # type: ignore[import-untyped]
    InvalidGrantError,
    InvalidRequestError,
)

from edge_api.auth.actor import Actor, Change, Clock, audit_entry
from edge_api.auth.signing_keys import SigningKeys
from edge_api.auth.tokens import AccessToken, Issuer, is_jwt, read
from edge_api.db.oauth_tables import OAUTH_CLIENTS, OAUTH_GRANTS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Query, Store, Update
from edge_api.db.table import Row
from edge_api.oauth.authlib_server import UNKNOWN, AuthorizationServer, client_actor
from edge_api.oauth.clients import Clients
from edge_api.oauth.grants import AUTH_METHODS, make_judge
from edge_api.oauth.request import AuthRequest
from edge_api.oauth.token_context import (
    BASIC,
    PresentedGrant,
    TokenContext,
    basic_client,
    client_ids,
    gather,
    problem_of,
)

_LOOKS: Final = 3
"""How often a request looks again after another one was faster: once is enough for a code."""

Pairs = Sequence[tuple[str, str]]
Decide = Callable[[AuthorizationServer, AuthRequest], Row]


class TokenEndpoint:
    """Answers `token` and `revoke`."""

    def __init__(
        self,
        issuer: Issuer,
        store: Store,
        clock: Clock,
        clients: Clients,
        keys: SigningKeys,
    ) -> None:
        self._issuer = issuer
        self._store = store
        self._clock = clock
        self._clients = clients
        self._keys = keys

    async def issue(self, pairs: Pairs, headers: Mapping[str, str]) -> Row:
        """Return the answer to a token request (RFC 6749, section 5.1).

        Raises Problem with the code of section 5.2; what is refused is in the audit log.
        """
        return await self._settle(pairs, headers, _issue, _shown)

    async def revoke(self, pairs: Pairs, headers: Mapping[str, str]) -> None:
        """End a refresh token's whole grant, or an access token alone (RFC 7009, section 2).

        Raises Problem; a token that nobody knows is no fault.
        """
        text = dict(pairs).get("token", "")
        published = await self._keys.published() if is_jwt(text) else None
        claimed = read(text, self._issuer.url, published) if published else None

        await self._settle(pairs, headers, partial(_take_back, claimed), _shown_to_end)

    async def _settle(
        self,
        pairs: Pairs,
        headers: Mapping[str, str],
        decide: Decide,
        look: Callable[[AuthRequest], PresentedGrant],
    ) -> Row:
        for _ in range(_LOOKS):
            request = AuthRequest(pairs, headers)
            shown = look(request)
            facts = await self._gather(request, shown)
            judge = make_judge(self._issuer, facts, await self._keys.signer())
            outcome = _attempt(judge, request, decide)
            try:
                await self._store.run(*judge.plans, *_closing(judge, request, outcome))
            except Problem as problem:
                if problem.code != "conflict":
                    raise
                continue
            if isinstance(outcome, Problem):
                raise outcome
            return outcome
        raise Problem("unavailable", "Others use this at the same moment: try again")

    async def _gather(self, request: AuthRequest, shown: PresentedGrant) -> TokenContext:
        """Return the facts, with the client as its document has it now. Raises Problem.

        The document is fetched for whoever shows a code or token of that client: nobody else makes
        this service ask others.
        """
        look = partial(gather, self._store, self._clock, self._clients.look_up, request, shown)
        facts = await look()
        owner = facts.clients.get(facts.grant["client_id"]) if facts.grant else None
        if owner is None or not owner.is_due(facts.present):
            return facts
        try:
            await self._clients.find(owner.client_id)
        except Problem as problem:
            if problem.code != "invalid":
                raise
            raise Problem("unauthenticated", problem.sentence, oauth="invalid_client") from None
        return await look()


def _shown(request: AuthRequest) -> PresentedGrant:
    """Return what the grant that is asked for looks at, and nothing else of the request."""
    match request.payload.grant_type:
        case "authorization_code":
            return PresentedGrant("code", request.form.get("code"))
        case "refresh_token":
            return PresentedGrant("refresh_token", request.form.get("refresh_token"))
    return PresentedGrant("nothing", None)


def _attempt(judge: AuthorizationServer, request: AuthRequest, decide: Decide) -> Row | Problem:
    try:
        _refuse_two_ways(request)
        return decide(judge, request)
    except OAuth2Error as error:
        return problem_of(error)
    except ValueError:  # what a library could not read of a header or an assertion
        sentence = "The client's credentials cannot be read"
        return Problem("unauthenticated", sentence, oauth="invalid_client", headers=BASIC)


def _issue(judge: AuthorizationServer, request: AuthRequest) -> Row:
    if not request.payload.grant_type:
        raise InvalidRequestError("Missing grant_type")
    grant = judge.get_token_grant(request)
    grant.validate_token_request()
    answer: Row = grant.create_token_response()[1]
    return answer


def _shown_to_end(request: AuthRequest) -> PresentedGrant:
    return PresentedGrant("refresh_token", request.form.get("token"))


def _take_back(
    claimed: AccessToken | None, judge: AuthorizationServer, request: AuthRequest
) -> Row:
    """Note that a token ends: `claimed` if it is an access token, else the grant of the facts."""
    client = request.client = judge.authenticate_client(request, AUTH_METHODS, "revocation")
    if "token" not in request.form:
        raise InvalidRequestError("Missing token")
    grant = judge.facts.grant
    owner = claimed.client_id if claimed else grant and grant["client_id"]
    if owner not in (None, client.client_id):
        raise InvalidGrantError
    if claimed is not None:
        judge.revoke_token(claimed, client)
    else:
        judge.revoke_grant(client)
    return {}


def _refuse_two_ways(request: AuthRequest) -> None:
    """Refuse a client that authenticates in more than one way (RFC 6749, section 2.3)."""
    basic = basic_client(request.headers)
    ways = [basic, request.form.get("client_secret"), request.form.get("client_assertion")]
    if sum(way is not None for way in ways) > 1:
        raise InvalidRequestError("Authenticate the client in one way")
    if len(client_ids(request)) > 1:
        raise InvalidRequestError("Two different clients are named")


def _closing(
    judge: AuthorizationServer, request: AuthRequest, outcome: Row | Problem
) -> Iterable[Query]:
    """Return what is written beside the decision: that it was refused, or that a client lives."""
    facts = judge.facts
    if isinstance(outcome, Problem):
        actor = _who(facts, request)
        return (audit_entry(actor, Change("refuse", OAUTH_GRANTS, 0), facts.now),)
    client = request.client
    if client is None:
        return ()
    where = (Filter("id", "eq", client.client_id),)
    return (Update(OAUTH_CLIENTS, {"last_used_at": facts.present}, where),)


def _who(facts: TokenContext, request: AuthRequest) -> Actor:
    known = [facts.clients[name] for name in client_ids(request) if name in facts.clients]
    return client_actor(known[0]) if known else UNKNOWN
