"""Whose an access token is: what it says, and whether that still holds.

The signature says who handed it out and what for; the store says whether the grant, the key that
consented and the client are still in force.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeGuard

from edge_api.domain.actor import Actor
from edge_api.domain.oauth.issuer import Issuer
from edge_api.domain.oauth.signing import SigningKeys
from edge_api.domain.oauth.tokens import AccessToken, read
from edge_api.schema.oauth_tables import OAUTH_CLIENTS, OAUTH_GRANTS, REVOKED_TOKENS
from edge_api.schema.paths import Door
from edge_api.schema.table import Row, Table
from edge_api.schema.tables import CREDENTIALS
from edge_api.store.plan import Condition, Read, Store


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who holds a token, until when, and which resource it is for."""

    actor: Actor
    expires_at: datetime
    resource: str


class Bearers:
    """Reads the access tokens of one server."""

    def __init__(self, issuer: Issuer, store: Store, keys: SigningKeys) -> None:
        self._issuer = issuer
        self._store = store
        self._keys = keys

    def opens(self, bearer: Bearer, door: Door) -> bool:
        """Tell whether the token is meant for the door that it is shown at."""
        return self._issuer.opens(bearer.resource, door)

    async def find(self, text: str) -> Bearer | None:
        """Return who holds a token that is in force, its time aside. Raises Problem."""
        token = read(text, self._issuer.url, await self._keys.published())
        if token is None:
            return None
        revoked, client, grant = await self._rows(
            (REVOKED_TOKENS, token.id),
            (OAUTH_CLIENTS, token.client_id),
            (OAUTH_GRANTS, token.grant_id or ""),
        )
        if revoked is not None or not _in_force(client):
            return None
        key = await self._key(grant)
        if token.grant_id is not None and key is None:
            return None
        return Bearer(_actor(token, client, key), _end(token, key), token.resource)

    async def _key(self, grant: Row | None) -> Row | None:
        """Return the API key that a grant in force stands on, unless it was revoked."""
        if not _in_force(grant):
            return None
        (key,) = await self._rows((CREDENTIALS, grant["credential_id"]))
        return key if _in_force(key) else None

    async def _rows(self, *keys: tuple[Table, str]) -> list[Row | None]:
        """Return the rows with these keys, as they are at one moment."""
        reads = (Read(table, where=(Condition(table.key, "eq", key),)) for table, key in keys)
        return [next(iter(each.rows), None) for each in await self._store.run(*reads)]


def _in_force(row: Row | None) -> TypeGuard[Row]:
    return row is not None and row["revoked_at"] is None


def _actor(token: AccessToken, client: Row, key: Row | None) -> Actor:
    """Return who acts: never with more than the key itself may do."""
    scopes = frozenset(token.scopes)
    tables = key["tables"] if key else None
    return Actor(
        credential_id=key["id"] if key else "",
        name=client["name"],
        type="access_token",
        scopes=scopes & frozenset(key["scopes"].split()) if key else scopes,
        tables=None if tables is None else frozenset(tables.split()),
        client_id=token.client_id,
    )


def _end(token: AccessToken, key: Row | None) -> datetime:
    """Return when the token ends: with the key behind it, if that is sooner."""
    if key is None or key["expires_at"] is None:
        return token.expires_at
    return min(token.expires_at, datetime.fromisoformat(key["expires_at"]))
