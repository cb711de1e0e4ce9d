"""Authentication: the actor of a credential, its scopes, and the errors without a valid one.

Credentials are cached until the store changes, so that most requests read nothing, and a
revocation counts from the next request on.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from edge_api.auth.actor import Actor, Clock
from edge_api.auth.secrets import hash_secret, is_well_formed
from edge_api.auth.tokens import AccessTokenValidator, UnrevokedCredential, is_jwt
from edge_api.db.caches import SingleFlight
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store, Update, read_first
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.schema.credentials import (
    DEFAULT_SCOPES,
    PREFIXES,
    Scope,
    SecretKind,
    add_implied,
)
from edge_api.schema.paths import AUDIENCES, RESOURCE_METADATA, Audience

_REQUIRED_SCOPES: Mapping[Audience, tuple[Scope, ...]] = {"rest": (), "mcp": ("mcp",)}
"""The scopes that every request to an audience needs. Clients request exactly the scopes that a
challenge names."""
_WRONG_KIND: Mapping[Audience, str] = {
    "rest": f"This access token is for the MCP endpoint, {AUDIENCES['mcp']}: the REST API takes an "
    "API key, or a token whose resource is the REST API",
    "mcp": f"This API key is for the REST API, {AUDIENCES['rest']}/: the MCP endpoint takes an "
    "access token",
}
"""The sentence for a credential that only the other API takes."""


OUTAGE_GRACE: Final = timedelta(seconds=0.5)
"""The time that a credential is accepted after its last confirmed use while the store is
unavailable. An engine answers for 1.5 s after its last contact with the database, so a revocation
by another edge counts within two seconds, whatever was cut off."""

CREDENTIAL_KINDS: Mapping[Audience, SecretKind] = {"rest": "api_key", "mcp": "access_token"}
"""The kind of opaque credential of each audience; signed tokens are accepted too."""


class Authenticator:
    """Finds the actor of a secret. `site_url` is the origin that challenges name."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        site_url: str,
        token_validator: AccessTokenValidator,
        scopes: tuple[Scope, ...] = DEFAULT_SCOPES,
    ) -> None:
        """`scopes` are those that MCP clients should request, for all tools."""
        self._store = store
        self._clock = clock
        self._token_validator = token_validator
        self._site_url = site_url
        self._scope_parameters: Mapping[Audience, tuple[str, ...]] = {
            "rest": (),
            "mcp": (f'scope="{" ".join((*_REQUIRED_SCOPES["mcp"], *scopes))}"',),
        }
        self._cache: dict[str, UnrevokedCredential] = {}
        self._reading: SingleFlight[UnrevokedCredential | None] = SingleFlight()

    async def authenticate(self, secret: str, audience: Audience = "rest") -> Actor:
        """Return the actor of a secret for the audience.

        Raises Problem `unauthenticated`, with the same sentence whatever is wrong unless it is a
        credential for the other audience, and `unavailable` if the store is away for longer than
        `OUTAGE_GRACE`.
        """
        now = self._clock()
        digest = hash_secret(secret)
        cached = self._cache.get(digest)
        if cached is None and not (
            is_jwt(secret) or is_well_formed(secret, CREDENTIAL_KINDS[audience])
        ):
            raise self._invalid(secret, audience)
        try:
            version = self._store.version()
            if cached is None or cached.version != version:
                read = partial(self._read, secret, digest, version)
                cached = await self._reading.run((digest, version), read)
            is_confirmed = True
        except Problem as problem:
            # The read may have taken seconds: compare with the current time.
            is_late = cached is None or self._clock() - cached.confirmed_at >= OUTAGE_GRACE
            if problem.code != "unavailable" or is_late:
                raise
            is_confirmed = False
        if cached is None or audience not in cached.audiences or _is_expired(cached, now):
            raise self._invalid(secret, audience)
        if is_confirmed:
            cached.confirmed_at = now
        return cached.actor

    def authorise(self, actor: Actor, scope: Scope, audience: Audience = "rest") -> None:
        """Raise Problem `insufficient_scope` unless the actor has the scope."""
        if scope not in actor.scopes:
            needed = " ".join(dict.fromkeys((*_REQUIRED_SCOPES[audience], scope)))
            parameters = 'error="insufficient_scope"', f'scope="{needed}"'
            raise Problem(
                "insufficient_scope",
                f"The credential lacks the scope {scope}",
                headers=self._challenge(audience, *parameters),
            )

    def missing_credential(self, audience: Audience = "rest") -> Problem:
        """Return the problem of a request without a credential: no error code (RFC 6750, 3.1)."""
        headers = self._challenge(audience, *self._scope_parameters[audience])
        return Problem("unauthenticated", headers=headers)

    def _invalid(self, secret: str, audience: Audience) -> Problem:
        """Return the problem of an invalid credential, or of one for the other audience."""
        other = CREDENTIAL_KINDS["mcp" if audience == "rest" else "rest"]
        message = _WRONG_KIND[audience] if secret.startswith(PREFIXES[other]) else ""
        parameters = ('error="invalid_token"', *self._scope_parameters[audience])
        return Problem("unauthenticated", message, headers=self._challenge(audience, *parameters))

    def _challenge(self, audience: Audience, *parameters: str) -> dict[str, str]:
        """Return the header field (RFC 9110, section 11.6.1; RFC 9728, section 5.1)."""
        realm = "api" if audience == "rest" else audience
        metadata = f'resource_metadata="{self._site_url}{RESOURCE_METADATA}{AUDIENCES[audience]}"'
        return {"WWW-Authenticate": ", ".join((f'Bearer realm="{realm}"', *parameters, metadata))}

    async def flush(self) -> None:
        """Store the last use of each key, or retry next time; drop expired ones from the cache."""
        unsaved = [
            (cached, cached.confirmed_at)
            for cached in self._cache.values()
            if cached.actor.credential_id and cached.confirmed_at > cached.stored_at
        ]
        try:
            if unsaved:
                await self._store.run(
                    *(
                        Update(
                            CREDENTIALS,
                            {"last_used_at": format_instant(at)},
                            (Filter("id", "eq", cached.actor.credential_id),),
                        )
                        for cached, at in unsaved
                    )
                )
        except Problem:
            return
        for cached, at in unsaved:
            cached.stored_at = at
        now = self._clock()
        for digest in [each for each, cached in self._cache.items() if _is_expired(cached, now)]:
            del self._cache[digest]

    async def _read(self, secret: str, digest: str, version: int) -> UnrevokedCredential | None:
        """Return the credential unless it is unknown or revoked. Raises Problem `unavailable`."""
        find_token = self._token_validator.find
        found = await (find_token(secret) if is_jwt(secret) else self._find_row(digest))
        before = self._cache.pop(digest, None)
        if found is not None:
            self._cache[digest], found.version = found, version
            if before is not None:
                found.confirmed_at, found.stored_at = before.confirmed_at, before.stored_at
        return found

    async def _find_row(self, digest: str) -> UnrevokedCredential | None:
        query = Read(CREDENTIALS, where=(Filter("digest", "eq", digest),), limit=1)
        row = await read_first(self._store, query)
        if row is None or row["revoked_at"] is not None:
            return None
        expiry = row["expires_at"]
        audiences = frozenset(
            audience for audience, kind in CREDENTIAL_KINDS.items() if kind == row["type"]
        )
        return UnrevokedCredential(
            actor_of(row), expiry and datetime.fromisoformat(expiry), audiences
        )


def actor_of(row: Row) -> Actor:
    """Return the actor of a row of credentials."""
    return Actor(
        credential_id=row["id"],
        name=row["name"],
        type=row["type"],
        scopes=add_implied(row["scopes"].split()),
        tables=None if row["tables"] is None else frozenset(row["tables"].split()),
    )


def _is_expired(cached: UnrevokedCredential, now: datetime) -> bool:
    return cached.expires_at is not None and cached.expires_at <= now
