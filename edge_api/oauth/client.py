"""OAuth clients for Authlib, the metadata of unvetted clients, and stored data for requests.

An unvetted client sends its metadata to register (RFC 7591, section 2), or has it in a document at
its URL (draft-ietf-oauth-client-id-metadata-document, section 4.1). It gets no secret: it is
public, or signs assertions with its own key.
"""

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Final

import orjson
from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import ClientMixin  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.util import (  # type: ignore[import-untyped]
    extract_basic_authorization,
)
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from edge_api.auth.actor import Actor, Clock
from edge_api.auth.secrets import hash_secret
from edge_api.db.internal_tables import MAX_CLIENT_ID_LENGTH, OAUTH_GRANTS, USED_ASSERTIONS
from edge_api.db.problems import Problem, format_validation_error
from edge_api.db.query import Store, find_row
from edge_api.db.table import Row, Table
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.oauth.request import (
    MAX_URI_LENGTH,
    AuthRequest,
    matches_uri,
    redirect_uri_error,
    split_uri,
)
from edge_api.operation.input import TextRule
from edge_api.schema.credentials import GRANTABLE_SCOPES, UNVETTED_SCOPES

SECRET_METHODS = ("client_secret_basic", "client_secret_post")

Fetch = Callable[[str], Awaitable[bytes]]
"""Returns the content of a public https address, without following redirects. Raises Problem."""


class UnreachableError(Problem):
    """A client's document cannot be fetched."""


class Client(ClientMixin):  # type: ignore[misc]
    """One client, with the methods that Authlib calls."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.client_id: str = row["id"]
        self.scopes: tuple[str, ...] = tuple(row["scopes"].split())
        self.redirect_uris: tuple[str, ...] = tuple(row["redirect_uris"].split())

    @property
    def keys(self) -> KeySet:
        """The public keys of the client, for `private_key_jwt`."""
        jwks: Any = self.row["jwks"] or {"keys": []}
        return KeySet.import_key_set(jwks)

    def get_default_redirect_uri(self) -> str | None:
        """Return its redirect URI if it has exactly one (OAuth 2.1, section 4.1.1)."""
        return self.redirect_uris[0] if len(self.redirect_uris) == 1 else None

    def needs_refetch(self, timestamp: str) -> bool:
        """Return whether the document that describes it should be fetched again."""
        return self.row["kind"] == "document" and (self.row["fresh_until"] or "") <= timestamp

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """Return the requested scopes that it may have; all of its scopes if none is requested."""
        wanted = scope.split() if scope else self.scopes
        return " ".join(name for name in self.scopes if name in wanted) or None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Return whether the URI is one that it registered."""
        return any(matches_uri(registered, redirect_uri) for registered in self.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        """Return whether the secret is the client's, in constant time."""
        known = self.row["secret_digest"] or ""
        return hmac.compare_digest(known, hash_secret(client_secret))

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        """Return whether it may use the method; a secret may be in the header or the form."""
        own = self.row["auth_method"]
        return method == own or (method in SECRET_METHODS and own in SECRET_METHODS)

    def check_response_type(self, response_type: str) -> bool:
        """Return whether the response type is `code`, the only one (OAuth 2.1, section 10)."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Return whether it may use the grant."""
        return grant_type in self.row["grant_types"].split()


def client_actor(client: Client, grant: Row | None = None) -> Actor:
    """Return a client as an actor of the audit log, with the API key that it acts for."""
    key = grant["credential_id"] if grant else ""
    return Actor(key, client.row["name"], "access_token", frozenset(), client_id=client.client_id)


MAX_KEYS: Final = 10
MAX_RSA_EXPONENT_LENGTH: Final = 8  # base64url characters; nearly all are `AQAB`
MAX_NAME_LENGTH: Final = 200
CLIENT_NAME: Final = TextRule(MAX_NAME_LENGTH)
_INVALID_METADATA: Final = "invalid_client_metadata"

Uri = Annotated[str, Field(min_length=1, max_length=MAX_URI_LENGTH)]


class ClientMetadata(BaseModel, extra="ignore", strict=True):
    """The metadata of a client; members not listed here are ignored (RFC 7591, section 2)."""

    redirect_uris: Annotated[list[Uri], Field(min_length=1, max_length=20)]
    client_name: Annotated[str, AfterValidator(CLIENT_NAME.clean)] | None = None
    token_endpoint_auth_method: str = "none"  # noqa: S105  a method's name, no secret
    grant_types: list[str] | None = None
    response_types: list[str] | None = None
    scope: Annotated[str, Field(max_length=1000)] | None = None
    jwks: dict[str, Any] | None = None
    jwks_uri: Uri | None = None


def read_metadata(given: Any, schemes: Iterable[str]) -> ClientMetadata:
    """Return checked metadata. Raises Problem with the codes of RFC 7591, section 3.2.2."""
    try:
        metadata = ClientMetadata.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "body"
        code = "invalid_redirect_uri" if where.startswith("redirect") else _INVALID_METADATA
        raise Problem("invalid", f"{where}: {format_validation_error(first)}", oauth=code) from None
    for uri in metadata.redirect_uris:
        uri_error = redirect_uri_error(uri, tuple(schemes))
        if uri_error is not None:
            raise Problem("invalid", f"redirect_uris: {uri_error}", oauth="invalid_redirect_uri")
    if metadata.response_types not in (None, ["code"]):
        raise Problem("invalid", "response_types: only code is known", oauth=_INVALID_METADATA)
    return metadata


def public_client_row(client_id: str, metadata: ClientMetadata) -> Row:
    """Return the row of a public client, with unvetted scopes only (RFC 7591, 3.2.1)."""
    asked = metadata.scope.split() if metadata.scope else UNVETTED_SCOPES
    granted = [name for name in GRANTABLE_SCOPES if name in asked] or UNVETTED_SCOPES[:1]
    return {
        "id": client_id,
        "kind": "dynamic",
        "name": metadata.client_name or client_id[:MAX_NAME_LENGTH],
        "auth_method": "none",
        "redirect_uris": " ".join(metadata.redirect_uris),
        "grant_types": "authorization_code refresh_token",
        "scopes": " ".join(granted),
    }


def is_document_id(client_id: str) -> bool:
    """Return whether a client id is the URL of a document (section 3 of the draft)."""
    parts = split_uri(client_id) if client_id.startswith("https://") else None
    if parts is None or len(client_id) > MAX_CLIENT_ID_LENGTH:
        return False
    is_plain = not parts.fragment and "@" not in parts.netloc and bool(parts.hostname)
    has_dots = any(step in (".", "..") for step in parts.path.split("/"))
    return is_plain and parts.path not in ("", "/") and not has_dots


async def fetch_metadata(fetch: Fetch, url: str, schemes: Iterable[str]) -> Row:
    """Fetch a document; return the row of its client. Raises Problem, UnreachableError."""
    try:
        given = orjson.loads(await fetch(url))
    except orjson.JSONDecodeError:
        given = None
    except Problem as problem:
        raise UnreachableError(problem.code, problem.message) from None
    if not isinstance(given, dict):
        raise Problem("invalid", "The client's document is not a JSON object")
    if given.get("client_id") != url:
        raise Problem("invalid", "client_id: the document does not name its own address")
    if "client_secret" in given:
        raise Problem("invalid", "client_secret: must not be in a public document")
    metadata = read_metadata(given, schemes)
    method = metadata.token_endpoint_auth_method
    if method not in ("none", "private_key_jwt"):
        raise Problem(
            "invalid",
            "token_endpoint_auth_method: a document can have none or private_key_jwt",
            oauth=_INVALID_METADATA,
        )
    jwks = metadata.jwks if method == "private_key_jwt" else None
    if method == "private_key_jwt":
        if metadata.jwks_uri is not None:
            raise Problem("invalid", "jwks_uri: put the keys into jwks", oauth=_INVALID_METADATA)
        check_keys(jwks)
    client = public_client_row(url, metadata)
    return {**client, "kind": "document", "auth_method": method, "jwks": jwks}


def check_keys(jwks: Any) -> None:
    """Raise Problem unless `jwks` is a set of public keys (RFC 7517, section 5)."""
    keys = jwks.get("keys") if isinstance(jwks, dict) else None
    is_set = isinstance(keys, list) and 1 <= len(keys) <= MAX_KEYS and all(map(_is_public, keys))
    try:
        if is_set:
            KeySet.import_key_set(jwks)
            return
    except (JoseError, ValueError, TypeError, KeyError):
        pass
    raise Problem(
        "invalid",
        f"jwks: must be a set of 1 to {MAX_KEYS} public keys, of ordinary size",
        oauth=_INVALID_METADATA,
    )


def _is_public(key: Any) -> bool:
    """Return whether a key looks public and of ordinary size (RFC 7518, 6.2 and 6.3; RFC 8037, 2).

    This is checked before a library reads it, since completing a private key can take hours.
    """
    if not isinstance(key, dict) or key.get("kty") not in ("RSA", "EC", "OKP"):
        return False
    # A modulus of 8,192 bits has 1,366 characters.
    is_small = all(len(value) <= 4 * 1024 for value in key.values() if isinstance(value, str))
    is_private = not key.keys().isdisjoint(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))
    return is_small and not is_private and len(str(key.get("e", ""))) <= MAX_RSA_EXPONENT_LENGTH


BASIC_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="oauth"'}
"""The header of a failed authentication (RFC 6749, section 5.2, and RFC 7617)."""


class InvalidTargetError(OAuth2Error):  # type: ignore[misc]
    """The request names a resource that this server has no tokens for (RFC 8707, section 2)."""

    error = "invalid_target"


def oauth_problem(error: OAuth2Error) -> Problem:
    """Return an error as a problem: 401 for a failed authentication (RFC 6749, section 5.2)."""
    message = error.get_error_description() or _DEFAULT_MESSAGES.get(error.error, "")
    if error.error == "unsupported_response_type":
        message = "response_type: only code is known"  # the library's sentence repeats itself
    if error.error == "invalid_client":
        if message.startswith("The client cannot authenticate with methods"):
            message = "No client is known by these credentials, or it is registered for another way"
        return Problem("unauthenticated", message[:200], oauth=error.error, headers=BASIC_CHALLENGE)
    # Cut, since some of the library's sentences repeat values of the request.
    return Problem("invalid", message[:200], oauth=error.error)


_DEFAULT_MESSAGES: Final = {
    "invalid_grant": "The code or token is unknown, expired, used, revoked, or of another client",
    "invalid_scope": "A scope is unknown, or not within what was granted",
    "unauthorized_client": "The client is not registered for this",
}

FindClient = Callable[[str], Awaitable[Client | None]]
"""Returns a client that may be used. Raises Problem."""


@dataclass(frozen=True, slots=True)
class TokenContext:
    """The stored rows that a request to the authorization server needs.

    If they change before the queries of its answer run, those queries conflict.
    """

    now: datetime
    clients: Mapping[str, Client] = field(default_factory=dict)
    is_assertion_used: bool = False
    presented_row: Row | None = None  # the row of the code or refresh token in the request
    grant: Row | None = None  # the grant of that code or token
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
    token_parameter: tuple[str, Table] | None,
) -> TokenContext:
    """Read the context of a request. Raises Problem `unavailable`.

    `token_parameter` is the name of the parameter with a code or refresh token, and the table that
    has its digest.
    """
    named = {name: await find(name) for name in client_ids(request)}
    name, table = token_parameter or ("", OAUTH_GRANTS)
    secret = request.form.get(name)
    row = await find_row(store, table, hash_secret(secret) if secret else None)
    grant = await find_row(store, OAUTH_GRANTS, row["grant_id"] if row else None)
    return TokenContext(
        clock(),
        {name: client for name, client in named.items() if client is not None},
        await find_row(store, USED_ASSERTIONS, assertion_digest(request)) is not None,
        row,
        grant,
        await find_row(store, CREDENTIALS, grant["credential_id"] if grant else None),
    )


def client_ids(request: AuthRequest) -> tuple[str, ...]:
    """Return every client id in a request: in HTTP Basic, the form and the assertion."""
    ids = (request.form.get("client_id"), _claims(request).get("sub"))
    names = (basic_client_id(request.headers), *ids)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def basic_client_id(headers: Mapping[str, str]) -> str | None:
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
    if not text or len(text) > 16 * 1024:
        return {}
    try:
        claims = orjson.loads(jws.extract_compact(text.encode()).payload)
    except Exception:  # noqa: BLE001  untrusted input; the parser may raise anything
        return {}
    return claims if isinstance(claims, dict) else {}
