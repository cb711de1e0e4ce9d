"""The stored state that a token request is decided on, and OAuth errors as problems."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final

import orjson
from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.util import (  # type: ignore[import-untyped]
    extract_basic_authorization,
)
from joserfc import jws

from edge_api.auth.actor import Clock
from edge_api.auth.secrets import hash_secret
from edge_api.db.internal_tables import OAUTH_GRANTS, USED_ASSERTIONS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store
from edge_api.db.table import Row, Table
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.oauth.client import Client
from edge_api.oauth.request import AuthRequest

BASIC: Final = {"WWW-Authenticate": 'Basic realm="oauth"'}
"""RFC 6749, section 5.2, and RFC 7617."""


class InvalidTargetError(OAuth2Error):  # type: ignore[misc]
    """A resource that tokens of this server are not for (RFC 8707, section 2)."""

    error = "invalid_target"


def oauth_problem(error: OAuth2Error) -> Problem:
    """Return an error as a problem: 401 for a failed authentication (RFC 6749, section 5.2)."""
    description = _MESSAGES.get(error.error) or error.get_error_description()
    message = (description or _DEFAULT_MESSAGES.get(error.error, ""))[:_MAX_MESSAGE_LENGTH]
    if error.error == "invalid_client":
        message = _NO_CLIENT if message.startswith(_AUTHLIB_WORDS) else message
        return Problem("unauthenticated", message, oauth=error.error, headers=BASIC)
    return Problem("invalid", message, oauth=error.error)


_MAX_MESSAGE_LENGTH: Final = 200  # some of the library's sentences repeat what was sent
_AUTHLIB_WORDS: Final = "The client cannot authenticate with methods"
_NO_CLIENT: Final = "No client is known by these credentials, or it is registered for another way"
_MESSAGES: Final = {"unsupported_response_type": "response_type: only code is known"}
"""Replaces the library's message, which repeats itself."""
_DEFAULT_MESSAGES: Final = {
    "invalid_grant": "The code or token is unknown, expired, used, revoked, or of another client",
    "invalid_scope": "A scope is unknown, or not within what was granted",
    "unauthorized_client": "The client is not registered for this",
}

MAX_ASSERTION_LENGTH: Final = 16 * 1024  # characters
FindClient = Callable[[str], Awaitable[Client | None]]
"""Returns a client that may be used. Raises Problem."""


@dataclass(frozen=True, slots=True)
class TokenContext:
    """The input of a decision; if it has changed since, the queries fail."""

    now: datetime
    clients: Mapping[str, Client] = field(default_factory=dict)
    used_assertion: bool = False
    presented: Row | None = None  # the code or the refresh token: one only
    grant: Row | None = None  # to which it belongs
    credential: Row | None = None  # the API key that consented to the grant

    @property
    def timestamp(self) -> str:
        """The current time, formatted as in rows."""
        return format_instant(self.now)

    @property
    def is_grant_valid(self) -> bool:
        """Whether the grant and its API key are neither revoked nor expired."""
        if self.grant is None or self.grant["revoked_at"] is not None or self.credential is None:
            return False
        expiry = self.credential["expires_at"]
        return self.credential["revoked_at"] is None and (expiry is None or expiry > self.timestamp)


async def read_context(
    store: Store,
    clock: Clock,
    find: FindClient,
    request: AuthRequest,
    presented: tuple[str, Table] | None,
) -> TokenContext:
    """Read the context of a request. Raises Problem `unavailable`.

    `presented` are the parameter with a code or refresh token, and the table that has its digest.
    """
    named = {name: await find(name) for name in client_ids(request)}
    name, table = presented or ("", OAUTH_GRANTS)
    secret = request.form.get(name)
    row = await _find(store, table, hash_secret(secret) if secret else None)
    grant = await _find(store, OAUTH_GRANTS, row["grant_id"] if row else None)
    return TokenContext(
        clock(),
        {name: client for name, client in named.items() if client is not None},
        await _find(store, USED_ASSERTIONS, assertion_digest(request)) is not None,
        row,
        grant,
        await _find(store, CREDENTIALS, grant["credential_id"] if grant else None),
    )


def client_ids(request: AuthRequest) -> tuple[str, ...]:
    """Return every client id in the request: of HTTP Basic, the form, the assertion."""
    ids = (request.form.get("client_id"), _claims(request).get("sub"))
    names = (basic_client(request.headers), *ids)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def basic_client(headers: Mapping[str, str]) -> str | None:
    """Return the client id in HTTP Basic (RFC 6749, section 2.3.1), if it can be read."""
    try:
        name: str | None = extract_basic_authorization(headers)[0]
    except ValueError:
        return None
    return name


def assertion_digest(request: AuthRequest) -> str | None:
    """Return the digest of the issuer and `jti` of an assertion (RFC 7523, section 3)."""
    claims = _claims(request)
    if "jti" not in claims:
        return None
    return sha256(orjson.dumps([str(claims.get("iss")), str(claims["jti"])])).hexdigest()


def _claims(request: AuthRequest) -> Mapping[str, object]:
    """Return the unverified claims of an assertion."""
    text = request.form.get("client_assertion", "")
    if not text or len(text) > MAX_ASSERTION_LENGTH:
        return {}
    try:
        claims = orjson.loads(jws.extract_compact(text.encode()).payload)
    except Exception:  # noqa: BLE001  untrusted input; the parser may raise anything
        return {}
    return claims if isinstance(claims, dict) else {}


async def _find(store: Store, table: Table, key: str | None) -> Row | None:
    if key is None:
        return None
    (result,) = await store.run(Read(table, where=(Filter(table.key, "eq", key),)))
    return result.rows[0] if result.rows else None
