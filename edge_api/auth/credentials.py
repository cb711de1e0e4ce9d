"""Credentials: the actor of each, what it may do, and the refusal of requests without one.

What the store says of a credential is believed until the store changes, so that most requests read
nothing, and a revocation counts from the next request on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from edge_api.auth.actor import Actor, Clock
from edge_api.auth.secrets import hash_secret, is_well_formed
from edge_api.auth.tokens import AccessTokenValidator, is_jwt
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store, Update
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.db.versioned_cache import SingleFlight
from edge_api.schema.credentials import DEFAULT_SCOPES, PREFIXES, Scope, SecretKind
from edge_api.schema.paths import AUDIENCES, RESOURCE_METADATA, Audience

_REQUIRED: Mapping[Audience, tuple[Scope, ...]] = {"rest": (), "mcp": ("mcp",)}
"""The scopes of any request there. A client asks for all that a challenge names, and no more."""
_WRONG_KIND: Mapping[Audience, str] = {
    "rest": f"This access token is for the MCP endpoint, {AUDIENCES['mcp']}: the REST API takes an "
    "API key, or a token whose resource is the REST API",
    "mcp": f"This API key is for the REST API, {AUDIENCES['rest']}/: the MCP endpoint takes an "
    "access token",
}
"""The sentence for a credential that only the other API takes."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """Makes the refusals of one audience; `site_url` is the origin of the service."""

    site_url: str
    audience: Audience = "rest"

    def missing(self) -> Problem:
        """Return the problem of a request without a credential: no error code (RFC 6750, 3.1)."""
        return Problem("unauthenticated", headers=self._header(*self._wanted()))

    def refused(self, *, is_wrong_kind: bool = False) -> Problem:
        """Return the problem of an invalid credential, or of one for the other audience."""
        parameters = ('error="invalid_token"', *self._wanted())
        message = _WRONG_KIND[self.audience] if is_wrong_kind else ""
        return Problem("unauthenticated", message, headers=self._header(*parameters))

    def insufficient(self, *scopes: Scope) -> Problem:
        """Return the problem of a valid credential without the scopes."""
        needed = " ".join(dict.fromkeys((*_REQUIRED[self.audience], *scopes)))
        return Problem(
            "insufficient_scope",
            f"The credential lacks the scope {' '.join(scopes)}",
            headers=self._header('error="insufficient_scope"', f'scope="{needed}"'),
        )

    def _wanted(self) -> tuple[str, ...]:
        """Return the scopes that a client should ask for: MCP's tools need more than one."""
        if self.audience == "rest":
            return ()
        return (f'scope="{" ".join((*_REQUIRED[self.audience], *DEFAULT_SCOPES))}"',)

    def _header(self, *parameters: str) -> dict[str, str]:
        """Return the header field (RFC 9110, section 11.6.1; RFC 9728, section 5.1)."""
        realm = "api" if self.audience == "rest" else self.audience
        metadata = (
            f'resource_metadata="{self.site_url}{RESOURCE_METADATA}{AUDIENCES[self.audience]}"'
        )
        return {"WWW-Authenticate": ", ".join((f'Bearer realm="{realm}"', *parameters, metadata))}


GRACE: Final = timedelta(seconds=0.5)
"""The time that a credential is accepted after its last confirmed use while the store is
unavailable. An engine answers for 1.5 s after it last saw the store, so a revocation by another
edge counts within two seconds, whatever was cut off."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_KINDS: Mapping[Audience, SecretKind] = {"rest": "api_key", "mcp": "access_token"}
"""The kind of opaque credential of each audience; signed tokens are accepted too."""


@dataclass(slots=True)
class _Known:
    """A valid credential as the store has it."""

    actor: Actor
    expires_at: datetime | None
    version: int  # of the store
    audiences: frozenset[Audience]
    confirmed: datetime = _NEVER  # its last use while the store was available
    written: datetime = _NEVER  # the last use that was stored


class Authenticator:
    """Finds the actor of a secret. `site_url` is the origin that refusals name."""

    def __init__(
        self, store: Store, clock: Clock, site_url: str, token_validator: AccessTokenValidator
    ) -> None:
        self._store = store
        self._clock = clock
        self._token_validator = token_validator
        self._challenges = {audience: Challenge(site_url, audience) for audience in _KINDS}
        self._known: dict[str, _Known] = {}
        self._reading: SingleFlight[_Known | None] = SingleFlight()

    async def authenticate(self, secret: str, audience: Audience = "rest") -> Actor:
        """Return the holder of the secret for the audience.

        Raises Problem `unauthenticated`, with the same sentence whatever is wrong unless it is a
        credential for the other audience, and `unavailable` if the store is away for longer than
        `GRACE`.
        """
        now = self._clock()
        digest = hash_secret(secret)
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
        if known is None or audience not in known.audiences or _has_ended(known, now):
            raise self._refusal(secret, audience)
        if is_confirmed:
            known.confirmed = now
        return known.actor

    def authorise(self, actor: Actor, scope: Scope, audience: Audience = "rest") -> None:
        """Raise Problem `insufficient_scope` unless the actor has the scope."""
        if scope not in actor.scopes:
            raise self._challenges[audience].insufficient(scope)

    def missing_credential(self, audience: Audience = "rest") -> Problem:
        """Return the problem of a request that needs a credential and sent none."""
        return self._challenges[audience].missing()

    def _refusal(self, secret: str, audience: Audience) -> Problem:
        other = _KINDS["mcp" if audience == "rest" else "rest"]
        return self._challenges[audience].refused(is_wrong_kind=secret.startswith(PREFIXES[other]))

    async def flush(self) -> None:
        """Store the last use of each key, or keep it for the next time; drop expired tokens."""
        due = [
            (known, known.confirmed)
            for known in self._known.values()
            if known.actor.credential_id and known.confirmed > known.written
        ]
        try:
            if due:
                await self._store.run(*(_last_use(known.actor, at) for known, at in due))
        except Problem:
            return
        for known, at in due:
            known.written = at
        now = self._clock()
        for digest in [each for each, known in self._known.items() if _has_ended(known, now)]:
            del self._known[digest]

    async def _read(self, secret: str, digest: str, version: int) -> _Known | None:
        """Return the credential unless it is unknown or revoked. Raises Problem `unavailable`."""
        found = await (self._token(secret) if is_jwt(secret) else self._row(digest))
        before = self._known.pop(digest, None)
        if found is None:
            return None
        actor, expires_at, audiences = found
        known = self._known[digest] = _Known(actor, expires_at, version, audiences)
        if before is not None:
            known.confirmed, known.written = before.confirmed, before.written
        return known

    async def _token(self, text: str) -> "_Found | None":
        bearer = await self._token_validator.find(text)
        if bearer is None:
            return None
        audiences = frozenset(
            audience for audience in _KINDS if self._token_validator.opens(bearer, audience)
        )
        return bearer.actor, bearer.expires_at, audiences

    async def _row(self, digest: str) -> "_Found | None":
        query = Read(CREDENTIALS, where=(Filter("digest", "eq", digest),), limit=1)
        (outcome,) = await self._store.run(query)
        if not outcome.rows or outcome.rows[0]["revoked_at"] is not None:
            return None
        row = outcome.rows[0]
        expiry = row["expires_at"]
        audiences = frozenset(audience for audience, kind in _KINDS.items() if kind == row["type"])
        actor = Actor(
            credential_id=row["id"],
            name=row["name"],
            type=row["type"],
            scopes=frozenset(row["scopes"].split()),
            tables=None if row["tables"] is None else frozenset(row["tables"].split()),
        )
        return actor, expiry and datetime.fromisoformat(expiry), audiences


_Found = tuple[Actor, datetime | None, frozenset[Audience]]


def _has_ended(known: _Known, now: datetime) -> bool:
    return known.expires_at is not None and known.expires_at <= now


def _last_use(actor: Actor, at: datetime) -> Update:
    where = (Filter("id", "eq", actor.credential_id),)
    return Update(CREDENTIALS, {"last_used_at": format_instant(at)}, where)
