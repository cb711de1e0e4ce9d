"""Authlib's grants and client authentication, made to ask a judge's facts.

What is ours to add: S256 alone, resources, one use of each code and token, replays that revoke.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749 import (  # type: ignore[import-untyped]
    InvalidClientError,
    InvalidRequestError,
    grants,
)
from authlib.oauth2.rfc6749.errors import InvalidScopeError  # type: ignore[import-untyped]
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion  # type: ignore[import-untyped]
from authlib.oauth2.rfc7636 import CodeChallenge  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from edge_api.auth.tokens import Issuer
from edge_api.db.oauth_tables import AUTHORIZATION_CODES, REFRESH_TOKENS, USED_ASSERTIONS
from edge_api.db.query import Insert
from edge_api.db.table import Row
from edge_api.db.types import spell_instant
from edge_api.oauth.authlib_server import AuthorizationServer
from edge_api.oauth.client import Client
from edge_api.oauth.request import AuthRequest
from edge_api.oauth.token_context import TokenContext, assertion_digest

AUTH_METHODS: Final = ("client_secret_basic", "client_secret_post", "private_key_jwt", "none")
ASSERTION_ALGORITHMS: Final = ("ES256", "RS256", "Ed25519", "EdDSA")
GRANTS: Final = ("authorization_code", "refresh_token", "client_credentials")
_CHALLENGE_LENGTH: Final = 43
"""Characters of a SHA-256 digest in base64url."""
_ASSERTION_LONGEST_LIFE: Final = timedelta(hours=1)
"""How far ahead an assertion may end."""
_ASSERTION_KEPT: Final = _ASSERTION_LONGEST_LIFE + timedelta(minutes=10)
"""How long a used one is remembered: the library lets it be late by a minute."""


def make_judge(
    issuer: Issuer, facts: TokenContext, signer: ECKey | None = None
) -> AuthorizationServer:
    """Return who decides a request, with every grant; `signer` is needed to hand out tokens."""
    judge = AuthorizationServer(issuer, facts, signer)
    judge.register_grant(_Code, [_Challenge()])
    judge.register_grant(_Refresh)
    judge.register_grant(_Client)
    judge.register_client_auth_method("private_key_jwt", _Assertion(judge))
    return judge


class _Code(grants.AuthorizationCodeGrant):  # type: ignore[misc]
    """Codes for tokens (OAuth 2.1, section 4.1)."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    server: AuthorizationServer

    def query_authorization_code(self, _code: str, client: Client) -> "_Issued | None":
        """Return the code if it may be exchanged; one that was used before ends its grant."""
        facts = self.server.facts
        if (
            facts.code is None
            or facts.grant is None
            or facts.grant["client_id"] != client.client_id
        ):
            return None
        if facts.code["used_at"] is not None:
            self.server.revoke_grant(client)
            return None
        if facts.code["expires_at"] <= facts.present or not facts.holds:
            return None
        return _Issued(facts.code, facts.grant, self.request.form.get("redirect_uri"))

    def authenticate_user(self, code: "_Issued") -> Row:
        """Return on whose behalf: the grant says it."""
        return code.grant

    def create_token_response(self) -> tuple[int, Row, list[tuple[str, str]]]:
        """Hand out tokens for the code."""
        issued, client = self.request.authorization_code, self.request.client
        grant, resource = issued.grant, self.server.restrict_resource(self.request, issued.grant)
        self.server.use_once(AUTHORIZATION_CODES, issued.row)
        return 200, self.server.hand_out_refreshing(client, grant["scopes"], grant, resource), []


class _Challenge(CodeChallenge):  # type: ignore[misc]
    """PKCE by S256, always (RFC 7636; OAuth 2.1, section 7.5.1)."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ("S256",)

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """Refuse a request without a challenge, or with one that is no SHA-256 digest."""
        asked = grant.request.payload.data
        if not asked.get("code_challenge"):
            raise InvalidRequestError("Missing code_challenge: PKCE is required")
        if asked.get("code_challenge_method") != "S256":
            raise InvalidRequestError("code_challenge_method must be S256")
        if len(asked["code_challenge"]) != _CHALLENGE_LENGTH:
            raise InvalidRequestError("code_challenge must be a SHA-256 digest in base64url")
        super().validate_code_challenge(grant, redirect_uri)


class _Issued:
    """A code, as Authlib asks about it."""

    code_challenge_method = "S256"

    def __init__(self, row: Row, grant: Row, redirect_uri: str | None) -> None:
        self.row = row
        self.grant = grant
        self.code_challenge = row["challenge"]
        self._redirect_uri = redirect_uri

    def get_redirect_uri(self) -> str:
        """Return what must be named again: OAuth 2.1, section 10.2, asks for it no more."""
        return "" if self._redirect_uri is None else str(self.row["redirect_uri"])

    def get_scope(self) -> str:
        return str(self.grant["scopes"])

    def check_client(self, client: Client) -> bool:
        return bool(self.grant["client_id"] == client.client_id)


class _Refresh(grants.RefreshTokenGrant):  # type: ignore[misc]
    """Refresh tokens for tokens, each once (OAuth 2.1, section 4.3.1)."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    server: AuthorizationServer

    def authenticate_refresh_token(self, _token: str) -> "_Refreshing | None":
        """Return the token if it may be exchanged; one that was used before ends its grant."""
        facts, client = self.server.facts, self.request.client
        row, grant = facts.refresh_token, facts.grant
        if row is None or grant is None or grant["client_id"] != client.client_id:
            return None
        if row["used_at"] is not None:
            self.server.revoke_grant(client)
            return None
        return (
            _Refreshing(row, grant) if row["expires_at"] > facts.present and facts.holds else None
        )

    def create_token_response(self) -> tuple[int, Row, list[tuple[str, str]]]:
        """Hand out tokens for the token, for fewer scopes if fewer are asked for."""
        token, client = self.request.refresh_token, self.request.client
        grant, resource = token.grant, self.server.restrict_resource(self.request, token.grant)
        scope = self.request.payload.scope or grant["scopes"]
        self.server.use_once(REFRESH_TOKENS, token.row)
        return 200, self.server.hand_out_refreshing(client, scope, grant, resource), []


class _Refreshing(_Issued):
    """A refresh token, as Authlib asks about it."""

    def __init__(self, row: Row, grant: Row) -> None:
        self.row = row
        self.grant = grant


class _Client(grants.ClientCredentialsGrant):  # type: ignore[misc]
    """A client for itself (OAuth 2.1, section 4.2)."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS[:3]
    server: AuthorizationServer

    def create_token_response(self) -> tuple[int, Row, list[tuple[str, str]]]:
        """Hand out an access token alone."""
        client: Client = self.request.client
        scope = client.get_allowed_scope(self.request.payload.scope)
        if scope is None:
            raise InvalidScopeError
        resource = self.server.check_target(self.request, self.server.issuer.resources)
        return 200, self.server.issue_token(client, scope, None, resource), []


class _Assertion(JWTBearerClientAssertion):  # type: ignore[misc]
    """Clients that sign for themselves (RFC 7523, section 2.2)."""

    CLIENT_AUTH_METHOD = "private_key_jwt"

    def __init__(self, judge: AuthorizationServer) -> None:
        super().__init__()
        self._judge = judge

    def get_audiences(self) -> list[str]:
        """Return what the server may be called."""
        return list(self._judge.issuer.audiences)

    def resolve_client_public_key(self, client: Client) -> KeySet:
        """Return the keys that the client registered."""
        return client.keys

    def process_assertion_claims(self, assertion: str, resolve_key: Any) -> dict[str, Any]:
        """Return what the assertion claims, once that is verified; by announced algorithms only."""
        try:
            token = jwt.decode(assertion, resolve_key, algorithms=list(ASSERTION_ALGORITHMS))
        except JoseError as error:
            raise InvalidClientError("The client assertion is not signed by its key") from error
        self.verify_claims(token.claims)
        return token.claims

    def validate_jti(self, claims: Mapping[str, Any], jti: object) -> bool:
        """Tell whether the assertion is fresh, and note that it is used now."""
        facts = self._judge.facts
        if claims["exp"] > (facts.now + _ASSERTION_LONGEST_LIFE).timestamp():
            raise InvalidClientError("The client assertion must end within an hour")
        if self._digest is None:  # what cannot be known again cannot be used once
            raise InvalidClientError("The client assertion cannot be read")
        if facts.used_assertion or not isinstance(jti, str):
            return False
        row = {"id": self._digest, "expires_at": spell_instant(facts.now + _ASSERTION_KEPT)}
        self._judge.plans.append(Insert(USED_ASSERTIONS, [row]))
        return True

    def __call__(self, query_client: Any, request: AuthRequest) -> Client | None:
        """Return the client that signed, if the request carries an assertion."""
        self._digest = assertion_digest(request)
        try:
            client: Client | None = super().__call__(query_client, request)
        except OAuth2Error:
            raise
        except Exception:  # noqa: BLE001  a stranger's text, and libraries that read all of it
            raise InvalidClientError("The client assertion cannot be read") from None
        return client
