"""Access tokens (RFC 9068), the keys that sign them, and the holder of a token.

The keys are in the store, encrypted with the service's secret, so that every edge has the same.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, TypeGuard

import orjson
from joserfc import jwe, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, OctKey

from edge_api.auth.actor import OPERATOR, SERVICE, Actor, Clock, audit_entry
from edge_api.db.internal_tables import OAUTH_CLIENTS, OAUTH_GRANTS, REVOKED_TOKENS, SIGNING_KEYS
from edge_api.db.query import Delete, Filter, Insert, Order, Read, Store, read_all
from edge_api.db.table import Row, Table
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.schema.credentials import add_implied
from edge_api.schema.paths import AUDIENCES, TOKEN, Audience


@dataclass(frozen=True, slots=True)
class Issuer:
    """An authorization server; its origin is its identifier (RFC 8414, section 2)."""

    url: str

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that a token may be for (RFC 8707): the whole origin, or one audience."""
        return (self.url, *(f"{self.url}{path}" for path in AUDIENCES.values()))

    def resources_within(self, resource: str) -> tuple[str, ...]:
        """Return the resources of tokens under a grant for `resource`: itself, then its parts."""
        return self.resources if resource == self.url else (resource,)

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences that an assertion may name (RFC 7523, section 3)."""
        return (self.url, f"{self.url}{TOKEN}")

    def accepts(self, resource: str, audience: Audience) -> bool:
        """Return whether a token for `resource` is meant for the audience."""
        return resource in (self.url, f"{self.url}{AUDIENCES[audience]}")


ALGORITHM: Final = "ES256"
JWT_LIFETIME: Final = timedelta(hours=1)
_TYPE: Final = "at+jwt"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """The claims of an access token."""

    id: str  # its `jti`
    subject: str  # the API key that consented, or the client itself
    client_id: str
    scopes: tuple[str, ...]
    resource: str  # its audience
    grant_id: str | None  # `None` if a client acts for itself
    expires_at: datetime


def is_jwt(text: str) -> bool:
    """Return whether `text` has the form of a signed token, unlike an opaque secret."""
    return text.count(".") == 2 and text.startswith("ey")  # noqa: PLR2004  three parts


def sign(token: AccessToken, issuer: str, key: ECKey) -> str:
    """Return the compact form of a token (RFC 9068, section 2)."""
    claims: dict[str, Any] = {
        "iss": issuer,
        "aud": token.resource,
        "sub": token.subject,
        "client_id": token.client_id,
        "scope": " ".join(token.scopes),
        "iat": int((token.expires_at - JWT_LIFETIME).timestamp()),
        "exp": int(token.expires_at.timestamp()),
        "jti": token.id,
    }
    if token.grant_id is not None:
        claims["grant_id"] = token.grant_id
    return jwt.encode({"alg": ALGORITHM, "typ": _TYPE, "kid": key.kid}, claims, key)


def read(text: str, issuer: str, keys: KeySet) -> AccessToken | None:
    """Return the claims of a token of ours, expired or not, or `None` (RFC 9068, section 4)."""
    if len(text) > 8 * 1024:  # ours have some 700 characters
        return None
    try:
        token = jwt.decode(text, keys, algorithms=[ALGORITHM])
    except Exception:  # noqa: BLE001  untrusted input; the parser may raise anything
        return None
    claims = token.claims
    if token.header.get("typ") != _TYPE or claims.get("iss") != issuer:
        return None
    return AccessToken(
        id=claims["jti"],
        subject=claims["sub"],
        client_id=claims["client_id"],
        scopes=tuple(claims["scope"].split()),
        resource=claims["aud"],
        grant_id=claims.get("grant_id"),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
    )


KEY_LIFETIME: Final = timedelta(days=90)  # from the activation of a key to that of the next one
KEY_PUBLICATION_LEAD: Final = timedelta(hours=1)
"""The time from a key's publication to its activation: longer than caches keep the key set."""

_log = logging.getLogger(__name__)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class SecretBox:
    """Encryption for one purpose (JWE, RFC 7516: direct encryption with A256GCM)."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        # A key for each purpose: a leak of one says nothing about another.
        self._key = OctKey.import_key(sha256(purpose.encode() + b"\n" + secret).digest())

    def encrypt(self, content: bytes) -> str:
        """Return the content encrypted, in ASCII."""
        return jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, content, self._key)

    def decrypt(self, encrypted: str) -> bytes:
        """Return the content. Raises ValueError if another secret encrypted it."""
        try:
            return jwe.decrypt_compact(encrypted, self._key).plaintext or b""
        except JoseError:
            raise ValueError("was encrypted with another secret, or damaged") from None


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One key; `id` is its thumbprint (RFC 7638)."""

    id: str
    key: ECKey
    active_from: datetime


class SigningKeys:
    """The signing keys of one store. Every method may raise Problem."""

    def __init__(self, store: Store, clock: Clock, secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._box = SecretBox(secret, "signing keys")
        self._decrypted: dict[str, SigningKey | None] = {}
        self._version = -1
        self._keys: Sequence[SigningKey] = ()
        self._foreign: tuple[str, ...] = ()  # ids of the keys that another secret encrypted
        self._is_foreign: bool | None = None  # whether the oldest is one; `None` without keys

    async def signing_key(self) -> ECKey:
        """Return the active key; the first call makes it."""
        for _ in range(2):
            now = self._clock()
            keys = [each for each in await self._all() if each.active_from <= now]
            if keys:
                break
            await self._make(now, SERVICE)
        return keys[-1].key

    async def verification_keys(self) -> KeySet:
        """Return all keys that verify tokens."""
        await self.signing_key()
        return KeySet([each.key for each in await self._all()])

    async def jwks(self) -> dict[str, Any]:
        """Return the public key set (RFC 7517, section 5)."""
        keys = (await self.verification_keys()).keys
        members = {"use": "sig", "alg": ALGORITHM}
        return {"keys": [{**key.as_dict(private=False), **members} for key in keys]}

    async def rotate(self, actor: Actor = OPERATOR) -> str:
        """Publish a new key, which signs after `KEY_PUBLICATION_LEAD`; return its id.

        A rotation by the operator also deletes the keys that another secret encrypted, since it
        confirms that the present secret is the right one.
        """
        if actor is OPERATOR:
            await self._all()
            await self._forget(self._foreign, actor)
        return await self._make(self._clock() + KEY_PUBLICATION_LEAD, actor)

    async def rows(self) -> list[Row]:
        """Return the rows of all keys, oldest first."""
        return await read_all(self._store, Read(SIGNING_KEYS, order=(Order("active_from"),)))

    async def is_foreign(self) -> bool | None:
        """Return whether another secret encrypted the oldest key; `None` if there is no key."""
        await self._all()
        return self._is_foreign

    async def _forget(self, ids: tuple[str, ...], actor: Actor) -> None:
        audit = audit_entry(actor, "forget", SIGNING_KEYS, len(ids), self._clock(), "id")
        if ids:
            await self._store.run(Delete(SIGNING_KEYS, (Filter("id", "in", ids),)), audit)

    async def maintain(self) -> None:
        """Rotate an old key; delete keys whose tokens have expired.

        Also delete keys that another secret encrypted, unless the oldest is one: then the present
        secret may be the wrong one.
        """
        keys, now = await self._all(), self._clock()
        if keys and keys[-1].active_from + KEY_LIFETIME <= now:
            await self.rotate(SERVICE)
        # The last tokens of a key are issued when the next one becomes active; an hour to spare.
        latest_activation = now - JWT_LIFETIME - timedelta(hours=1)
        expired = (old.id for old, new in pairwise(keys) if new.active_from <= latest_activation)
        await self._forget((*expired, *(() if self._is_foreign else self._foreign)), SERVICE)

    async def _all(self) -> Sequence[SigningKey]:
        """Return every key that can be decrypted, oldest first; read again after changes."""
        version = self._store.version()
        if version != self._version:
            rows = await self.rows()
            for row in rows:
                if row["id"] not in self._decrypted:
                    self._decrypted[row["id"]] = self._decrypt(row)
            decrypted = (self._decrypted[row["id"]] for row in rows)
            self._keys = [each for each in decrypted if each is not None]
            self._foreign = tuple(row["id"] for row in rows if not self._decrypted[row["id"]])
            self._is_foreign = rows[0]["id"] in self._foreign if rows else None
            self._version = version
        return self._keys

    def _decrypt(self, row: Row) -> SigningKey | None:
        try:
            key = ECKey.import_key(orjson.loads(self._box.decrypt(row["private_key"])))
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
            "private_key": self._box.encrypt(text),
            "active_from": format_instant(active_from),
        }
        row = SIGNING_KEYS.new_row(given, format_instant(now), lambda: kid)
        audit = audit_entry(actor, "issue", SIGNING_KEYS, 1, now)
        await self._store.run(Insert(SIGNING_KEYS, [row]), audit)
        return kid


@dataclass(slots=True)
class UnrevokedCredential:
    """The holder of an unrevoked credential, its expiry, and the audiences that it is for."""

    actor: Actor
    expires_at: datetime | None
    audiences: frozenset[Audience]
    version: int = -1  # the store's version when the credential was read
    confirmed_at: datetime = _NEVER  # its last use while the store was available
    stored_at: datetime = _NEVER  # the last use that was stored


class AccessTokenValidator:
    """Validates the access tokens of one server."""

    def __init__(self, issuer: Issuer, store: Store, keys: SigningKeys) -> None:
        self._issuer = issuer
        self._store = store
        self._keys = keys

    async def find(self, text: str) -> UnrevokedCredential | None:
        """Return the holder of an unrevoked token, expired or not. Raises Problem."""
        token = read(text, self._issuer.url, await self._keys.verification_keys())
        if token is None:
            return None
        revoked, client, grant = await self._rows(
            (REVOKED_TOKENS, token.id),
            (OAUTH_CLIENTS, token.client_id),
            (OAUTH_GRANTS, token.grant_id or ""),
        )
        if revoked is not None or not _in_force(client):
            return None
        key: Row | None = None
        if token.grant_id is not None:  # it is valid only with the API key that granted it
            if _in_force(grant):
                (key,) = await self._rows((CREDENTIALS, grant["credential_id"]))
            if not _in_force(key):
                return None
        end = token.expires_at  # or that of the key, if that is sooner
        if key is not None and key["expires_at"] is not None:
            end = min(end, datetime.fromisoformat(key["expires_at"]))
        scopes = add_implied(token.scopes)
        tables = key["tables"] if key else None
        actor = Actor(
            credential_id=key["id"] if key else "",
            name=client["name"],
            type="access_token",
            # The key's scopes may be fewer now.
            scopes=scopes & add_implied(key["scopes"].split()) if key else scopes,
            tables=None if tables is None else frozenset(tables.split()),
            client_id=token.client_id,
        )
        audiences = (each for each in AUDIENCES if self._issuer.accepts(token.resource, each))
        return UnrevokedCredential(actor, end, frozenset(audiences))

    async def _rows(self, *keys: tuple[Table, str]) -> list[Row | None]:
        """Return the rows with these keys, read in one transaction."""
        reads = (Read(table, where=(Filter(table.key, "eq", key),)) for table, key in keys)
        return [next(iter(each.rows), None) for each in await self._store.run(*reads)]


def _in_force(row: Row | None) -> TypeGuard[Row]:
    return row is not None and row["revoked_at"] is None
