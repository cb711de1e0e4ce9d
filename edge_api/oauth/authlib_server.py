"""Authlib's authorization server, grants and client authentication, with a `TokenContext`.

There is no I/O: the `TokenContext` has the stored rows that a request needs, and the decision about
it collects queries, which the caller runs in one transaction. Beyond
Authlib, challenges must be S256, resources are checked, each code and refresh token can be used
once, and a second use revokes its grant.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import (  # type: ignore[import-untyped]
    AuthorizationServer as AuthlibServer,
)
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidRequestError, grants
from authlib.oauth2.rfc6749.errors import InvalidScopeError  # type: ignore[import-untyped]
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion  # type: ignore[import-untyped]
from authlib.oauth2.rfc7636 import CodeChallenge  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from edge_api.auth.actor import Actor, audit_entry, new_id
from edge_api.auth.keys import revoke_grants
from edge_api.auth.secrets import hash_secret, mint
from edge_api.auth.tokens import JWT_LIFETIME, AccessToken, Issuer, sign
from edge_api.db.internal_tables import (
    AUTHORIZATION_CODES,
    OAUTH_GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
    USED_ASSERTIONS,
)
from edge_api.db.query import Delete, Filter, Insert, Query, RowCount, Update
from edge_api.db.table import Row, Table
from edge_api.db.types import format_instant
from edge_api.oauth.client import (
    Client,
    InvalidTargetError,
    TokenContext,
    assertion_digest,
    client_actor,
)
from edge_api.oauth.request import AuthRequest
from edge_api.schema.credentials import SCOPES

REFRESH_TOKEN_LIFETIME: Final = timedelta(days=30)  # the lifetime of an unused refresh token
AUTH_METHODS: Final = ("client_secret_basic", "client_secret_post", "private_key_jwt", "none")
ASSERTION_ALGORITHMS: Final = ("ES256", "RS256", "Ed25519", "EdDSA")
GRANT_TYPES: Final = ("authorization_code", "refresh_token", "client_credentials")
UNKNOWN_CLIENT_ACTOR: Final = Actor("", "unknown", "access_token", frozenset(), client_id="unknown")
"""The actor of an unknown client in the audit log."""

_CHALLENGE_LENGTH: Final = 43  # characters of a SHA-256 digest in base64url
_MAX_ASSERTION_LIFETIME: Final = timedelta(hours=1)

_TokenResponse = tuple[int, Row, list[tuple[str, str]]]


class AuthorizationServer(AuthlibServer):  # type: ignore[misc]
    """Decides one request, and collects its `queries`. `signing_key` is needed to issue tokens."""

    def __init__(
        self, issuer: Issuer, context: TokenContext, signing_key: ECKey | None = None
    ) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        self.issuer = issuer
        self.context = context
        self.queries: list[Query] = []
        self._signing_key = signing_key
        self.register_grant(_CodeGrant, [_Challenge()])
        self.register_grant(_RefreshGrant)
        self.register_grant(_ClientGrant)
        self.register_client_auth_method("private_key_jwt", _Assertion(self))

    def query_client(self, client_id: str) -> Client | None:
        """Return a client from the context; `None` if it is unknown."""
        return self.context.clients.get(client_id)

    def create_oauth2_request(self, request: AuthRequest) -> AuthRequest:
        """Return the request unchanged: it is Authlib's class already."""
        return request

    def send_signal(self, name: str, *args: object, **more: object) -> None:
        """Do nothing: the service uses no signals of Authlib."""

    def check_target(self, request: AuthRequest, allowed: tuple[str, ...]) -> str:
        """Return the token's resource. Raises InvalidTargetError (RFC 8707, section 2)."""
        if not request.resources:
            return allowed[0]
        # Documents and clients may add a slash at the end: it is the same resource.
        named = {name.removesuffix("/") for name in request.resources}
        if len(named) > 1:
            raise InvalidTargetError("Name one resource: a token is for one")
        (resource,) = named
        if resource not in allowed:
            raise InvalidTargetError(f"Tokens can be for {' or '.join(allowed)}")
        return resource

    def issue_token(self, client: Client, scope: str, grant: Row | None, resource: str) -> Row:
        """Return the answer with an access token (RFC 6749, section 5.1), and audit it."""
        context = self.context
        token = AccessToken(
            id=new_id(context.now),
            subject=grant["credential_id"] if grant else client.client_id,
            client_id=client.client_id,
            scopes=tuple(scope.split()),
            resource=resource,
            grant_id=grant["id"] if grant else None,
            expires_at=context.now + JWT_LIFETIME,
        )
        assert self._signing_key is not None  # noqa: S101  token requests pass it
        self._audit("issue", OAUTH_GRANTS, client)
        return {
            "access_token": sign(token, self.issuer.url, self._signing_key),
            "token_type": "Bearer",
            "expires_in": int(JWT_LIFETIME.total_seconds()),
            "scope": scope,
        }

    def redeem(self, request: AuthRequest, table: Table, found: "_Redeemable", scope: str) -> Row:
        """Return the answer to a code or refresh token, and mark it as used.

        Raises InvalidTargetError (RFC 8707, section 2.2). If it is used twice at the same moment,
        the second use conflicts.
        """
        client, grant = request.client, found.grant
        resource = self.check_target(request, self.issuer.resources_within(grant["resource"]))
        unused = (Filter("id", "eq", found.row["id"]), Filter("used_at", "is", None))
        self.queries.append(Update(table, {"used_at": self.context.timestamp}, unused, at_least=1))
        answer = self.issue_token(client, scope, grant, resource)
        if client.check_grant_type("refresh_token"):
            answer["refresh_token"] = mint("refresh_token")
            now = self.context.now
            given = {
                "id": hash_secret(answer["refresh_token"]),
                "grant_id": grant["id"],
                "expires_at": format_instant(now + REFRESH_TOKEN_LIFETIME),
            }
            row = REFRESH_TOKENS.new_row(given, self.context.timestamp, partial(new_id, now))
            self.queries.append(Insert(REFRESH_TOKENS, [row]))
        return answer

    def find_redeemable(
        self, client: Client, redirect_uri: str | None = None
    ) -> "_Redeemable | None":
        """Return the code or refresh token if it may be used; a replay revokes its grant."""
        row, grant = self.context.presented_row, self.context.grant
        if row is None or grant is None or grant["client_id"] != client.client_id:
            return None
        if row["used_at"] is not None:
            self.revoke_grant(client)
            return None
        is_valid = row["expires_at"] > self.context.timestamp and self.context.is_grant_valid
        return _Redeemable(row, grant, redirect_uri) if is_valid else None

    def revoke_grant(self, client: Client) -> None:
        """Revoke the grant with all its tokens (RFC 9700, sections 2.1.1 and 4.14)."""
        grant = self.context.grant
        if grant is not None and grant["revoked_at"] is None:
            self.queries.append(
                revoke_grants(Filter("id", "eq", grant["id"]), self.context.timestamp)
            )
            self._audit("revoke", OAUTH_GRANTS, client, RowCount(len(self.queries) - 1))

    def revoke_token(self, token: AccessToken, client: Client) -> None:
        """Revoke an access token without its grant; it may be revoked already."""
        row = {"id": token.id, "expires_at": format_instant(token.expires_at)}
        same = (Filter("id", "eq", token.id),)
        self.queries += [Delete(REVOKED_TOKENS, same), Insert(REVOKED_TOKENS, [row])]
        self._audit("revoke", REVOKED_TOKENS, client)

    def _audit(self, verb: str, table: Table, client: Client, rows: int | RowCount = 1) -> None:
        actor = client_actor(client, self.context.grant)
        self.queries.append(audit_entry(actor, verb, table, rows, self.context.now))


class _CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc]
    """The authorization code grant (OAuth 2.1, section 4.1)."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    server: AuthorizationServer

    def query_authorization_code(self, _code: str, client: Client) -> "_Redeemable | None":
        return self.server.find_redeemable(client, self.request.form.get("redirect_uri"))

    def authenticate_user(self, code: "_Redeemable") -> Row:
        return code.grant

    def create_token_response(self) -> _TokenResponse:
        code = self.request.authorization_code
        answer = self.server.redeem(self.request, AUTHORIZATION_CODES, code, code.get_scope())
        return 200, answer, []


class _Challenge(CodeChallenge):  # type: ignore[misc]
    """PKCE by S256, always (RFC 7636; OAuth 2.1, section 7.5.1)."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ("S256",)

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        params = grant.request.payload.data
        if not params.get("code_challenge"):
            raise InvalidRequestError("Missing code_challenge: PKCE is required")
        if params.get("code_challenge_method") != "S256":
            raise InvalidRequestError("code_challenge_method must be S256")
        if len(params["code_challenge"]) != _CHALLENGE_LENGTH:
            raise InvalidRequestError("code_challenge must be a SHA-256 digest in base64url")
        super().validate_code_challenge(grant, redirect_uri)


class _Redeemable:
    """A code or refresh token with the methods that Authlib calls."""

    code_challenge_method = "S256"

    def __init__(self, row: Row, grant: Row, redirect_uri: str | None = None) -> None:
        self.row = row
        self.grant = grant
        self.code_challenge = row.get("challenge")
        self._redirect_uri = redirect_uri

    def get_redirect_uri(self) -> str:
        """Return the URI that the request must repeat, if it has one (OAuth 2.1, section 10.2)."""
        return "" if self._redirect_uri is None else str(self.row["redirect_uri"])

    def get_scope(self) -> str:
        return str(self.grant["scopes"])

    def check_client(self, client: Client) -> bool:
        return bool(self.grant["client_id"] == client.client_id)


class _RefreshGrant(grants.RefreshTokenGrant):  # type: ignore[misc]
    """The refresh token grant, with rotation (OAuth 2.1, section 4.3.1)."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    server: AuthorizationServer

    def authenticate_refresh_token(self, _token: str) -> _Redeemable | None:
        return self.server.find_redeemable(self.request.client)

    def create_token_response(self) -> _TokenResponse:
        """Issue tokens, for the requested subset of the scopes."""
        token, request = self.request.refresh_token, self.request
        scope = request.payload.scope or token.get_scope()
        return 200, self.server.redeem(request, REFRESH_TOKENS, token, scope), []


class _ClientGrant(grants.ClientCredentialsGrant):  # type: ignore[misc]
    """The client credentials grant (OAuth 2.1, section 4.2)."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS[:3]
    server: AuthorizationServer

    def create_token_response(self) -> _TokenResponse:
        """Issue an access token without a refresh token."""
        client: Client = self.request.client
        scope = client.get_allowed_scope(self.request.payload.scope)
        if scope is None:
            raise InvalidScopeError
        resource = self.server.check_target(self.request, self.server.issuer.resources)
        return 200, self.server.issue_token(client, scope, None, resource), []


class _Assertion(JWTBearerClientAssertion):  # type: ignore[misc]
    """Client authentication by a signed assertion (RFC 7523, section 2.2)."""

    CLIENT_AUTH_METHOD = "private_key_jwt"

    def __init__(self, server: AuthorizationServer) -> None:
        super().__init__()
        self._server = server

    def get_audiences(self) -> list[str]:
        return list(self._server.issuer.audiences)

    def resolve_client_public_key(self, client: Client) -> KeySet:
        return client.keys

    def process_assertion_claims(self, assertion: str, resolve_key: Any) -> dict[str, Any]:
        """Return the verified claims; only the algorithms in the server's metadata are accepted."""
        try:
            token = jwt.decode(assertion, resolve_key, algorithms=list(ASSERTION_ALGORITHMS))
        except JoseError as error:
            raise InvalidClientError("The client assertion is not signed by its key") from error
        self.verify_claims(token.claims)
        return token.claims

    def validate_jti(self, claims: Mapping[str, Any], jti: object) -> bool:
        """Return whether the assertion was not used before; add the query that stores its use."""
        context = self._server.context
        if claims["exp"] > (context.now + _MAX_ASSERTION_LIFETIME).timestamp():
            raise InvalidClientError("The client assertion must end within an hour")
        if self._digest is None:  # a replay could not be recognized
            raise InvalidClientError("The client assertion cannot be read")
        if context.is_assertion_used or not isinstance(jti, str):
            return False
        # The row is kept for longer than the assertion is valid: the library allows clock skew.
        until = context.now + _MAX_ASSERTION_LIFETIME + timedelta(minutes=10)
        row = {"id": self._digest, "expires_at": format_instant(until)}
        self._server.queries.append(Insert(USED_ASSERTIONS, [row]))
        return True

    def __call__(self, query_client: Any, request: AuthRequest) -> Client | None:
        """Return the client that signed the assertion; `None` if the request has no assertion."""
        self._digest = assertion_digest(request)
        try:
            client: Client | None = super().__call__(query_client, request)
        except OAuth2Error:
            raise
        except Exception:  # noqa: BLE001  untrusted input; the parser may raise anything
            raise InvalidClientError("The client assertion cannot be read") from None
        return client
