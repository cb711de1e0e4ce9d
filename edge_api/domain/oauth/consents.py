"""The question that a person is asked: whether a client may do something in their name.

The only account there is is an API key: whoever holds it may grant a part of what it may do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final
from urllib.parse import urlencode

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]

from edge_api.domain.actor import Actor, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.identity import new_id
from edge_api.domain.oauth.client import Client
from edge_api.domain.oauth.errors import problem_of
from edge_api.domain.oauth.facts import Facts, FindClient
from edge_api.domain.oauth.grants import make_judge
from edge_api.domain.oauth.issuer import Issuer
from edge_api.domain.oauth.request import KNOWN, VALUE_LONGEST, AuthRequest
from edge_api.domain.secrets import digest_of, mint
from edge_api.schema.kinds import spell_instant
from edge_api.schema.oauth_tables import AUTHORIZATION_CODES, OAUTH_GRANTS
from edge_api.schema.paths import DOORS
from edge_api.schema.problems import Problem
from edge_api.store.plan import Insert, Store

CODE_LIFE: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Asked:
    """An authorization request that may be put to a person."""

    client: Client
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    state: str | None
    challenge: str
    pairs: Sequence[tuple[str, str]]
    """The request as it came, to be sent along with the answer to the question."""


@dataclass(frozen=True, slots=True)
class SentBack:
    """A request that its client has to mend: the browser goes back with an error."""

    location: str


class Consents:
    """Asks, and grants what was allowed."""

    def __init__(self, issuer: Issuer, store: Store, clock: Clock, find: FindClient) -> None:
        self._issuer = issuer
        self._store = store
        self._clock = clock
        self._find = find

    async def read(self, pairs: Sequence[tuple[str, str]]) -> Asked | SentBack:
        """Return the request that the parameters make, or where a faulty one is sent back.

        Raises Problem where nobody may be sent anywhere: the client is unknown or its redirect
        URI is not one that it registered.
        """
        pairs = tuple((name, value) for name, value in pairs if name in KNOWN and value)
        named = dict(pairs)
        client = await self._client(named.get("client_id"))
        redirect_uri = _redirect(client, [value for name, value in pairs if name == "redirect_uri"])
        facts = Facts(self._clock(), {client.client_id: client})
        try:
            request = AuthRequest(pairs, {}, method="GET")
            judge = make_judge(self._issuer, facts)
            judge.get_consent_grant(request)
            resource = judge.check_target(request, self._issuer.resources)
        except OAuth2Error as error:
            return self._refused(problem_of(error), redirect_uri, named.get("state"))
        except Problem as problem:
            return self._refused(problem, redirect_uri, named.get("state"))
        return Asked(
            client=client,
            redirect_uri=redirect_uri,
            scopes=tuple(request.scope.split()),
            resource=resource,
            state=request.payload.state,
            challenge=request.payload.data["code_challenge"],
            pairs=pairs,
        )

    async def allow(self, asked: Asked, holder: Actor, chosen: Iterable[str]) -> str:
        """Grant what was chosen, as far as the key may do it; return where the browser goes.

        Raises Problem `invalid` when nothing is left, or too little to be of use.
        """
        scopes = _granted(asked, holder, frozenset(chosen))
        if asked.resource.endswith(DOORS["mcp"]) and "mcp" not in scopes:
            raise Problem("invalid", "Access to MCP needs the scope mcp: use a key that has it")
        if not scopes:
            raise Problem("invalid", "Choose at least one thing that your key may do itself")
        code = await self._grant(asked, holder, scopes)
        return self._back(asked.redirect_uri, {"code": code}, asked.state)

    async def deny(self, asked: Asked) -> str:
        """Note that the person said no; return where the browser goes."""
        actor = Actor("", "person", "api_key", frozenset(), client_id=asked.client.client_id)
        refusal = audit_entry(actor, Change("refuse", OAUTH_GRANTS, 0), self._clock())
        await self._store.run(refusal)
        error = {"error": "access_denied", "error_description": "The person did not allow it"}
        return self._back(asked.redirect_uri, error, asked.state)

    async def _client(self, client_id: str | None) -> Client:
        if not client_id:
            raise Problem("invalid", "The address names no client: client_id is missing")
        try:
            client = await self._find(client_id)
        except Problem as problem:
            if problem.code != "invalid":
                raise
            raise Problem("forbidden", problem.sentence) from None
        if client is None:
            raise Problem("forbidden", "No client is known by that client_id")
        return client

    async def _grant(self, asked: Asked, holder: Actor, scopes: tuple[str, ...]) -> str:
        """Store a grant and the code for it; return the code."""
        now, code = self._clock(), mint("authorization_code")
        present, make_id = spell_instant(now), partial(new_id, now)
        grant = OAUTH_GRANTS.new_row(
            {
                "client_id": asked.client.client_id,
                "credential_id": holder.credential_id,
                "scopes": " ".join(scopes),
                "resource": asked.resource,
            },
            present,
            make_id,
        )
        given = {
            "id": digest_of(code),
            "grant_id": grant["id"],
            "redirect_uri": asked.redirect_uri,
            "challenge": asked.challenge,
            "expires_at": spell_instant(now + CODE_LIFE),
        }
        row = AUTHORIZATION_CODES.new_row(given, present, make_id)
        actor = replace(holder, client_id=asked.client.client_id)
        audit = audit_entry(actor, Change("grant", OAUTH_GRANTS, 1), now)
        plans = (Insert(OAUTH_GRANTS, [grant]), Insert(AUTHORIZATION_CODES, [row]), audit)
        await self._store.run(*plans)
        return code

    def _refused(self, problem: Problem, redirect_uri: str, state: str | None) -> SentBack:
        error = {"error": problem.oauth, "error_description": problem.sentence}
        return SentBack(self._back(redirect_uri, error, state))

    def _back(self, redirect_uri: str, answer: dict[str, str], state: str | None) -> str:
        """Return the redirect URI with an answer, the state and who says it (RFC 9207)."""
        fits = state is not None and 0 < len(state) <= VALUE_LONGEST
        told = {**answer, **({"state": state} if fits else {}), "iss": self._issuer.url}
        separator = "&" if "?" in redirect_uri else "?"
        return f"{redirect_uri}{separator}{urlencode(told)}"


def _redirect(client: Client, named: Sequence[str]) -> str:
    """Return the one redirect URI of a request, if it is the client's. Raises Problem."""
    if len(named) != 1 or not named[0]:
        raise Problem("invalid", "The address must name one redirect_uri")
    if not client.check_redirect_uri(named[0]):
        raise Problem("forbidden", "The client did not register this redirect_uri")
    return named[0]


def _granted(asked: Asked, holder: Actor, chosen: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in asked.scopes if name in chosen and name in holder.scopes)
