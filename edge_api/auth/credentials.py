"""Who holds a credential, what it lets them do, and how a request without one is refused.

What the store says of a credential is believed until the store changes, so that a revocation
counts from the next request on and yet most requests read nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from edge_api.auth.actor import Actor, Clock
from edge_api.auth.secrets import digest_of, is_well_formed
from edge_api.auth.signing_keys import AccessTokenValidator
from edge_api.auth.tokens import is_jwt
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store, Update
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import spell_instant
from edge_api.db.versioned_cache import SingleFlight
from edge_api.schema.credentials import DEFAULT_SCOPES, PREFIXES, Scope, SecretKind
from edge_api.schema.paths import AUDIENCES, RESOURCE_METADATA, Audience

_AT_THE_DOOR: Mapping[Audience, tuple[Scope, ...]] = {"rest": (), "mcp": ("mcp",)}
"""What is needed for any request there: a client asks for all that a challenge names, and no more.
"""
_WRONG_KIND: Mapping[Audience, str] = {
    "rest": f"This access token is for the MCP endpoint, {AUDIENCES['mcp']}: the REST API takes an "
    "API key, or a token whose resource is the REST API",
    "mcp": f"This API key is for the REST API, {AUDIENCES['rest']}/: the MCP endpoint takes an "
    "access token",
}
"""The sentence for a credential that only the other API takes."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """Makes the refusals at one door of a service, whose origin is `site_url`."""

    site_url: str
    audience: Audience = "rest"

    def missing(self) -> Problem:
        """Return the problem of a request without a credential: no error code (RFC 6750, 3.1)."""
        return Problem("unauthenticated", headers=self._header(*self._wanted()))

    def refused(self, *, is_wrong_kind: bool = False) -> Problem:
        """Return the problem of a credential that is not valid, or is one for the other door."""
        parameters = ('error="invalid_token"', *self._wanted())
        sentence = _WRONG_KIND[self.audience] if is_wrong_kind else ""
        return Problem("unauthenticated", sentence, headers=self._header(*parameters))

    def insufficient(self, *scopes: Scope) -> Problem:
        """Return the problem of a valid credential that lacks a scope of those that are needed."""
        needed = " ".join(dict.fromkeys((*_AT_THE_DOOR[self.audience], *scopes)))
        return Problem(
            "insufficient_scope",
            f"The credential lacks the scope {' '.join(scopes)}",
            headers=self._header('error="insufficient_scope"', f'scope="{needed}"'),
        )

    def _wanted(self) -> tuple[str, ...]:
        """Return what a client had best ask for: at MCP's door its tools need more than one."""
        if self.audience == "rest":
            return ()
        return (f'scope="{" ".join((*_AT_THE_DOOR[self.audience], *DEFAULT_SCOPES))}"',)

    def _header(self, *parameters: str) -> dict[str, str]:
        """Return the header field (RFC 9110, section 11.6.1; RFC 9728, section 5.1)."""
        realm = "api" if self.audience == "rest" else self.audience
        metadata = (
            f'resource_metadata="{self.site_url}{RESOURCE_METADATA}{AUDIENCES[self.audience]}"'
        )
        return {"WWW-Authenticate": ", ".join((f'Bearer realm="{realm}"', *parameters, metadata))}


GRACE: Final = timedelta(seconds=0.5)
"""How long a credential is honoured while the store cannot be asked about it: from its last use on
at which the store vouched for what is known. An engine vouches for 1.5 s after it last saw the
store, so that a revocation by another edge counts within two seconds, whatever was cut off."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_KINDS: Mapping[Audience, SecretKind] = {"rest": "api_key", "mcp": "access_token"}
"""The kind of opaque credential that each door takes; beside it, signed tokens meant for it."""


@dataclass(slots=True)
class _Known:
    """What the store said of a valid credential, and when that was last confirmed."""

    actor: Actor
    expires_at: datetime | None
    version: int
    """The version of the store that said so."""
    doors: frozenset[Audience]
    confirmed: datetime = _NEVER
    """Its last use while the store could be asked."""
    written: datetime = _NEVER
    """The last use that was written down."""


class Access:
    """Finds the actor behind a secret. `site_url` is the origin that refusals point to."""

    def __init__(
        self, store: Store, clock: Clock, site_url: str, bearers: AccessTokenValidator
    ) -> None:
        self._store = store
        self._clock = clock
        self._bearers = bearers
        self._challenges = {audience: Challenge(site_url, audience) for audience in _KINDS}
        self._known: dict[str, _Known] = {}
        self._reading: SingleFlight[_Known | None] = SingleFlight()

    async def actor_for(self, secret: str, audience: Audience = "rest") -> Actor:
        """Return who holds the secret, which must open that door.

        Raises Problem `unauthenticated`, in the same words whatever is wrong with it unless its
        prefix is that of the other door, and `unavailable` when the store could not be asked for
        longer than `GRACE`.
        """
        now = self._clock()
        digest = digest_of(secret)
        known = self._known.get(digest)
        if known is None and not (is_jwt(secret) or is_well_formed(secret, _KINDS[audience])):
            raise self._refusal(secret, audience)
        try:
            version = self._store.version()
            if known is None or known.version != version:
                read = partial(self._read, secret, digest, version)
                known = await self._reading.run((digest, version), read)
            is_confirmed = True
        except Problem as problem:
            # Asking may have taken seconds: what counts is how old that is which is known now.
            is_late = known is None or self._clock() - known.confirmed >= GRACE
            if problem.code != "unavailable" or is_late:
                raise
            is_confirmed = False
        if known is None or audience not in known.doors or _has_ended(known, now):
            raise self._refusal(secret, audience)
        if is_confirmed:
            known.confirmed = now
        return known.actor

    def authorise(self, actor: Actor, scope: Scope, audience: Audience = "rest") -> None:
        """Raise Problem `insufficient_scope` unless the actor has the scope."""
        if scope not in actor.scopes:
            raise self._challenges[audience].insufficient(scope)

    def no_credential(self, audience: Audience = "rest") -> Problem:
        """Return the problem of a request that needs a credential and sent none."""
        return self._challenges[audience].missing()

    def _refusal(self, secret: str, audience: Audience) -> Problem:
        other = _KINDS["mcp" if audience == "rest" else "rest"]
        return self._challenges[audience].refused(is_wrong_kind=secret.startswith(PREFIXES[other]))

    async def flush(self) -> None:
        """Write down the last use of each key; what cannot be written now is kept.

        Tokens that have ended are forgotten: unlike keys, there is no end of them.
        """
        due = [(known, known.confirmed) for known in self._known.values() if _is_due(known)]
        try:
            if due:
                await self._store.run(*(_last_use(known.actor, at) for known, at in due))
        except Problem:
            return
        for known, at in due:
            known.written = at
        now = self._clock()
        ended = [digest for digest, known in self._known.items() if _has_ended(known, now)]
        for digest in ended:
            del self._known[digest]

    async def _read(self, secret: str, digest: str, version: int) -> _Known | None:
        """Return what the store says of the credential unless it is unknown or revoked.

        Raises Problem `unavailable`.
        """
        found = await (self._token(secret) if is_jwt(secret) else self._row(digest))
        before = self._known.pop(digest, None)
        if found is None:
            return None
        actor, expires_at, doors = found
        known = self._known[digest] = _Known(actor, expires_at, version, doors)
        if before is not None:
            known.confirmed, known.written = before.confirmed, before.written
        return known

    async def _token(self, text: str) -> "_Found | None":
        bearer = await self._bearers.find(text)
        if bearer is None:
            return None
        doors = frozenset(audience for audience in _KINDS if self._bearers.opens(bearer, audience))
        return bearer.actor, bearer.expires_at, doors

    async def _row(self, digest: str) -> "_Found | None":
        query = Read(CREDENTIALS, where=(Filter("digest", "eq", digest),), limit=1)
        (outcome,) = await self._store.run(query)
        if not outcome.rows or outcome.rows[0]["revoked_at"] is not None:
            return None
        row = outcome.rows[0]
        expiry = row["expires_at"]
        doors = frozenset(audience for audience, kind in _KINDS.items() if kind == row["type"])
        return _holder(row), expiry and datetime.fromisoformat(expiry), doors


_Found = tuple[Actor, datetime | None, frozenset[Audience]]


def _holder(row: Row) -> Actor:
    return Actor(
        credential_id=row["id"],
        name=row["name"],
        type=row["type"],
        scopes=frozenset(row["scopes"].split()),
        tables=None if row["tables"] is None else frozenset(row["tables"].split()),
    )


def _has_ended(known: _Known, now: datetime) -> bool:
    return known.expires_at is not None and known.expires_at <= now


def _is_due(known: _Known) -> bool:
    return bool(known.actor.credential_id) and known.confirmed > known.written


def _last_use(actor: Actor, at: datetime) -> Update:
    where = (Filter("id", "eq", actor.credential_id),)
    return Update(CREDENTIALS, {"last_used_at": spell_instant(at)}, where)
