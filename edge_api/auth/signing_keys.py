"""Keys that access tokens are signed with, and whose token a bearer's is.

They lie in the store, encrypted with the service's secret, so that every edge has the same.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, TypeGuard

import orjson
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from edge_api.auth.actor import OPERATOR, SERVICE, Actor, Change, Clock, audit_entry
from edge_api.auth.sealing import Wrapping
from edge_api.auth.tokens import ALGORITHM, TOKEN_LIFE, AccessToken, Issuer, read
from edge_api.db.oauth_tables import OAUTH_CLIENTS, OAUTH_GRANTS, REVOKED_TOKENS, SIGNING_KEYS
from edge_api.db.query import Delete, Filter, Insert, Order, Query, Read, Store
from edge_api.db.table import Row, Table
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import spell_instant
from edge_api.schema.paths import Audience

KEY_LIFE: Final = timedelta(days=90)
"""How long a key signs before the next one takes over."""
PUBLISHED_BEFORE: Final = timedelta(hours=1)
"""How long a key is published before it signs: longer than anybody keeps the key set."""
KEPT_AFTER: Final = TOKEN_LIFE + timedelta(hours=1)
"""How long a key is kept after the next one took over: its last token must have ended."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One key; `id` is its thumbprint (RFC 7638)."""

    id: str
    key: ECKey
    active_from: datetime


class SigningKeys:
    """The keys of one store."""

    def __init__(self, store: Store, clock: Clock, secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._wrapping = Wrapping(secret, "signing keys")
        self._opened: dict[str, SigningKey | None] = {}
        self._version = -1
        self._keys: Sequence[SigningKey] = ()

    async def signer(self) -> ECKey:
        """Return the key that signs now; the first call of all makes it. Raises Problem."""
        keys = await self._active()
        if not keys:
            await self._make(self._clock(), SERVICE)
            keys = await self._active()
        return keys[-1].key

    async def published(self) -> KeySet:
        """Return every key that a token may be signed with. Raises Problem."""
        await self.signer()
        return KeySet([each.key for each in await self._all()])

    async def jwks(self) -> dict[str, Any]:
        """Return the key set as others may see it (RFC 7517, section 5). Raises Problem."""
        keys = (await self.published()).keys
        members = {"use": "sig", "alg": ALGORITHM}
        return {"keys": [{**key.as_dict(private=False), **members} for key in keys]}

    async def rotate(self, actor: Actor = OPERATOR) -> str:
        """Publish a new key, which signs after `PUBLISHED_BEFORE`; return its id."""
        return await self._make(self._clock() + PUBLISHED_BEFORE, actor)

    async def rows(self) -> list[Row]:
        """Return what is stored of every key, oldest first."""
        (outcome,) = await self._store.run(Read(SIGNING_KEYS, order=(Order("active_from"),)))
        return outcome.rows

    async def tend(self) -> None:
        """Rotate a key that has had its time, and forget those that no token needs. Raises."""
        keys, now = await self._all(), self._clock()
        if keys and keys[-1].active_from + KEY_LIFE <= now:
            await self.rotate(SERVICE)
        unneeded = [old.id for old, new in pairwise(keys) if new.active_from + KEPT_AFTER <= now]
        if unneeded:
            await self._store.run(*_forget(unneeded, now))

    async def _active(self) -> list[SigningKey]:
        now = self._clock()
        return [each for each in await self._all() if each.active_from <= now]

    async def _all(self) -> Sequence[SigningKey]:
        """Return every key that can be opened, oldest first; read again when the store changed."""
        version = self._store.version()
        if version != self._version:
            opened = [self._open(row) for row in await self.rows()]
            self._keys = [each for each in opened if each is not None]
            self._version = version
        return self._keys

    def _open(self, row: Row) -> SigningKey | None:
        if row["id"] not in self._opened:
            self._opened[row["id"]] = self._decrypt(row)
        return self._opened[row["id"]]

    def _decrypt(self, row: Row) -> SigningKey | None:
        try:
            key = ECKey.import_key(orjson.loads(self._wrapping.unwrap(row["private_key"])))
        except (JoseError, ValueError):
            _log.warning("signing key %s was made with another SECRET_KEY: not used", row["id"])
            return None
        return SigningKey(row["id"], key, datetime.fromisoformat(row["active_from"]))

    async def _make(self, active_from: datetime, actor: Actor) -> str:
        key, now = ECKey.generate_key("P-256", auto_kid=True), self._clock()
        kid = str(key.kid)
        text = orjson.dumps({**key.as_dict(private=True), "kid": kid})
        given = {
            "id": kid,
            "private_key": self._wrapping.wrap(text),
            "active_from": spell_instant(active_from),
        }
        row = SIGNING_KEYS.new_row(given, spell_instant(now), lambda: kid)
        audit = audit_entry(actor, Change("issue", SIGNING_KEYS, 1), now)
        await self._store.run(Insert(SIGNING_KEYS, [row]), audit)
        return kid


def _forget(ids: Sequence[str], now: datetime) -> tuple[Query, ...]:
    gone = Delete(SIGNING_KEYS, (Filter("id", "in", tuple(ids)),))
    return gone, audit_entry(SERVICE, Change("forget", SIGNING_KEYS, len(ids), ("id",)), now)


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who holds a token, until when, and which resource it is for."""

    actor: Actor
    expires_at: datetime
    resource: str


class AccessTokenValidator:
    """Reads the access tokens of one server."""

    def __init__(self, issuer: Issuer, store: Store, keys: SigningKeys) -> None:
        self._issuer = issuer
        self._store = store
        self._keys = keys

    def opens(self, bearer: Bearer, audience: Audience) -> bool:
        """Tell whether the token is meant for the door that it is shown at."""
        return self._issuer.opens(bearer.resource, audience)

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
        reads = (Read(table, where=(Filter(table.key, "eq", key),)) for table, key in keys)
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
